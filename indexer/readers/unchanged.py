"""Detects files that change while they are read."""

import hashlib
from pathlib import Path

from ..errors import SondeError

_HEAD = 1 << 16


class Unchanged:
    """The state of a file at the beginning of a pass."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._status = path.stat()
        self._head = self._digest(self._status.st_size)

    def check(self, name: str) -> None:
        """Fail if the file was truncated or overwritten since then.

        A file that only grew, or that another file replaced, was read completely.

        Raises:
            SondeError: It has changed.
        """
        try:
            now = self._path.stat()
            if (now.st_dev, now.st_ino) != (self._status.st_dev, self._status.st_ino):
                return  # the pass has read the file that had this name before
            same = now.st_size == self._status.st_size and now.st_mtime_ns == self._status.st_mtime_ns
            grown = now.st_size > self._status.st_size and self._digest(self._status.st_size) == self._head
        except OSError:
            return  # it was removed, and the pass has read the whole of it
        if not same and not grown:
            raise SondeError(
                f"{name} changed while it was being read, so parts of it may be missing: run the same command again"
            )

    def _digest(self, size: int) -> bytes:
        """Return a digest of the beginning, as far as the file had it."""
        with self._path.open("rb") as file:
            return hashlib.sha256(file.read(min(size, _HEAD))).digest()

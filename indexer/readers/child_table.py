"""A table or a stream that a reader process reads, as the parent sees it; and whether its file changed."""

import hashlib
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import SondeError
from ..progress import Notify, silent
from .child import Child, DiedError, pipe_of
from .formats import format_by_name
from .frames import item_of, set_head
from .source import Item, Meter, Place, ReadOptions, Source, source_errors

LATE = 5.0
"""Seconds without data from a pipe, or standard input, after which the user is told what is awaited."""
_KEPT_ROWS, _KEPT_BYTES = 2_000, 1 << 26


class ChildTable(Source):
    """A file or stream, read in a process of its own.

    A first look at the rows and the pass over all of them share one process: what the look took is kept.
    """

    def __init__(self, name: str, path: Path | None, options: ReadOptions, notify: Notify = silent) -> None:
        self.name = name
        self._path = path
        self._piped = path is None or not path.is_file()
        self._before = None if self._piped or path is None else Unchanged(path)
        self._options = options
        late = threading.Timer(LATE, notify, [f"waiting for data from {name}"])
        late.daemon = True
        if self._piped:
            late.start()
        try:
            self._ready: _Pass | None = self._started()
        finally:
            late.cancel()

    def items(self, meter: Meter) -> Iterator[Item]:
        """The rows as the process reads them.

        Raises:
            SondeError: The file is broken or has changed meanwhile, or reading it took too long or too much memory.
        """
        if self._ready is None and self._path is not None and not self._piped:
            with source_errors(self.name, Place()):
                self._before = Unchanged(self._path)
        run, self._ready = self._ready or self._started(), None
        try:
            for fields in run.rows():
                meter.done, item = item_of(fields)
                yield item
            self._check_unchanged()
        except DiedError as error:
            raise self._died(error) from None
        finally:
            if run.kept is not None and self._ready is None:
                self._ready = run
            else:
                run.close()

    def _check_unchanged(self) -> None:
        if self._before is not None:
            self._before.check(self.name)

    def _started(self) -> "_Pass":
        run = _Pass(self._child())
        try:
            set_head(self, run.next()["head"])
        except DiedError as error:
            run.close()
            raise self._died(error) from None
        except BaseException:
            run.close()
            raise
        return run

    def _child(self) -> Child:
        request = {"name": self.name, "path": str(self._path) if self._path else None, "piped": self._piped}
        if not self._piped:
            return Child("table", self._options, request, subprocess.DEVNULL)
        stdin = pipe_of(self._path)
        child = Child("table", self._options, request, stdin)
        if stdin is subprocess.PIPE:
            threading.Thread(target=_hand_on, args=(child.process.stdin,), daemon=True).start()
        elif self._path is not None and not isinstance(stdin, int):
            stdin.close()
        return child

    def _died(self, error: DiedError) -> SondeError:
        far = "delete cells that lie far from the others" if self._is_workbook() else "get a new copy"
        return SondeError(f"{self.name}: {error}: {far}, or save it as CSV or JSONL")

    def _is_workbook(self) -> bool:
        return (self._options.format or (format_by_name(self._path) if self._path else None)) == "xlsx"


class _Pass:
    """One process and the frames that it wrote so far; `kept` is None once they are many."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.kept: list[dict[str, Any]] | None = []
        self._ended = False
        self._rows = self._bytes = 0
        self.close = weakref.finalize(self, child.close)

    def next(self) -> dict[str, Any]:
        """The next frame; one without items is the last.

        Raises:
            SondeError: The process reports an error.
            DiedError: It ended before it was done.
        """
        try:
            return self._child.frame()
        except BaseException:  # after Ctrl-C, half a frame may have been read
            self.kept = None
            raise

    def rows(self) -> Iterator[list[Any]]:
        """Every item from the first on."""
        for frame in list(self.kept or ()):
            yield from frame["items"]
        while not self._ended:
            frame = self.next()
            if "items" not in frame:
                self._ended = True
                self.close()
            else:
                self._keep(frame)
                yield from frame["items"]

    def _keep(self, frame: dict[str, Any]) -> None:
        self._rows += len(frame["items"])
        self._bytes += frame["bytes"]
        if self._rows > _KEPT_ROWS or self._bytes > _KEPT_BYTES:
            self.kept = None
        if self.kept is not None:
            self.kept.append(frame)


def _hand_on(pipe: Any) -> None:
    """Write our standard input to a process, which may end before it has read all."""
    with suppress(OSError, ValueError):
        shutil.copyfileobj(sys.stdin.buffer, pipe)
    with suppress(OSError):
        pipe.close()


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

"""Reading a late index: the pooled tokens of passages by row, checked one by one; and one thread to work on them."""

import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..errors import SondeError
from ..files import sha256
from ..progress import tell
from .codec import Codec
from .files import LateInfo, LateSegment, open_array, read_codec, read_info

ATTEMPTS = 3
"""How often a reader starts over when a writer merges segments between its look at `info.json` and their opening."""


REPAIR = "run `sonde repair`"
LINE = 32
"""Bytes of a line of the table."""

_limiting = threading.Lock()
_inside = 0
_limits: Any = None


class LateIndex:
    """The late index as of one `info.json`. Files that a writer removes later stay readable.

    A row that is numbered again, or whose text changed, has another key, and is not found.
    """

    def __init__(self, folder: Path, info: LateInfo, codec: Codec, segments: list["Opened"]) -> None:
        """Take the parts; `open` reads them."""
        self.folder = folder
        self.info = info
        self.codec = codec
        self._segments = segments

    @classmethod
    def open(cls, folder: Path, model: str) -> Self:
        """Open the index of a folder, for a model of this fingerprint.

        Raises:
            FileNotFoundError: There is none.
            SondeError: It is damaged, or belongs to another model.
        """
        info = read_info(folder)
        for attempt in range(ATTEMPTS):
            try:
                return cls._opened(folder, info, model)
            except SondeError:
                newer = read_info(folder)
                if newer == info or attempt == ATTEMPTS - 1:
                    raise
                info = newer
        raise AssertionError

    @classmethod
    def _opened(cls, folder: Path, info: LateInfo, model: str) -> Self:
        if info.model != model:
            raise SondeError("it was made with another model")
        codec = read_codec(folder, info)
        return cls(folder, info, codec, [Opened(folder, segment, codec.width) for segment in info.segments])

    def read(self, rows: np.ndarray, keys: np.ndarray) -> list[np.ndarray | None]:
        """Return the pooled tokens of passages, uint8 [tokens, width] for each; None where there are none to be used.

        Bytes that have changed since they were written are not used; one message says so.

        Args:
            rows: int64 [n].
            keys: int64 [n], what `key` makes of the passages' digests.
        """
        found: list[np.ndarray | None] = [None] * len(rows)
        left = np.arange(len(rows))
        for segment in reversed(self._segments):
            places, known = segment.find(rows[left], keys[left])
            for number, place in zip(left[known].tolist(), places[known].tolist(), strict=True):
                found[number] = segment.passage(place)
                if found[number] is None:
                    tell(f"the late index in {self.folder} is damaged: passages are embedded instead; {REPAIR}")
            left = left[~known]
        return found

    def covered(self, rows: int, keys: np.ndarray | None = None) -> np.ndarray:
        """Return bool [rows]: which rows of the collection have an entry; with keys, int64 [rows], one that fits."""
        found = np.zeros(rows, bool)
        for segment in self._segments:
            inside = segment.rows < rows
            mine = segment.rows[inside]
            found[mine] = True if keys is None else segment.keys[inside] == keys[mine]
        return found

    @property
    def bytes_per_passage(self) -> int:
        """Mean bytes of an entry, its line in the table included; 0 without entries."""
        segments = self.info.segments
        tokens, count = sum(each.tokens for each in segments), sum(each.count for each in segments)
        return round(LINE + tokens * self.codec.width / count) if count else 0


def key(digest: bytes) -> int:
    """Return a passage's key, the first 8 bytes of its digest: it tells whether an entry is of this text and model."""
    return int.from_bytes(digest[:8], "little", signed=True)


class Opened:
    """One segment, open."""

    def __init__(self, folder: Path, segment: LateSegment, width: int) -> None:
        """Open the files and check their form, and the table's digest.

        Raises:
            SondeError: One is missing, damaged or cut off.
        """
        path = segment.table_path(folder)
        table = open_array(path, "<i8", segment.count)
        codes = open_array(segment.codes_path(folder), "|u1", width)
        self.rows, self.keys, self.ends, self.sums = table if len(table) == 4 else np.empty((4, 0), np.int64)
        sound = len(codes) == segment.tokens and len(self.rows) == segment.count
        if not sound or sha256(path) != segment.table:
            raise SondeError(f"{path.name} does not match its digest, or the file of its tokens is cut off")
        self.codes = codes
        self._stream = segment.codes_path(folder).open("rb")

    def find(self, rows: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the place of each row in the table, int64 [n], and whether it is there with this key, bool [n]."""
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return places, (self.rows[places] == rows) & (self.keys[places] == keys)

    def passage(self, place: int) -> np.ndarray | None:
        """Return uint8 [tokens, width], the pooled tokens of the passage at a place of the table.

        None if they have changed since they were written.
        """
        start, end = int(self.ends[place - 1]) if place else 0, int(self.ends[place])
        data = self._read(start, end)
        if zlib.crc32(data) != self.sums[place]:
            return None
        return np.frombuffer(data, np.uint8).reshape(end - start, -1)

    def _read(self, start: int, end: int) -> bytes:
        width = self.codes.shape[1]
        if not hasattr(os, "pread"):
            return self.codes[start:end].tobytes()
        # Not through the mapping, so that what was read does not count as memory of the process.
        return os.pread(self._stream.fileno(), (end - start) * width, self.codes.offset + start * width)  # type: ignore[attr-defined]


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every thread multiply matrices by itself.

    Workers that each use all cores take twice the processor's time; and on a busy machine, the threads of one small
    product wait for each other longer than it takes.

    The limit holds for the whole process, until the last of those that are inside leaves.
    """
    global _inside, _limits
    with _limiting:
        if not _inside:
            _limits = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _limiting:
            _inside -= 1
            if not _inside:
                _limits.restore_original_limits()


@cache
def _controller() -> Any:
    """Return what limits the libraries; finding them takes milliseconds, so it is done once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

"""Writing a late index: segments are added, and small ones merged; the caller holds the collection's writer lock."""

import shutil
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from ..errors import SondeError
from ..files import make_folder, sha256, write_durably
from .codec import Codec
from .index import (
    CODEC,
    INFO,
    RARITY,
    LateInfo,
    LateSegment,
    open_array,
    read_codec,
    read_info,
    write_array,
    write_codec,
    write_info,
)  # fmt: skip

FAN = 8
"""Number of segments of similar size that are merged into one. An entry is rewritten once for each power of FAN."""
SMALLEST = 64


class LateWriter:
    """Adds passages to the index of a folder; killed at any moment, it leaves the old index or the new one."""

    def __init__(self, folder: Path, model: str) -> None:
        """Take the folder, which need not exist, and the fingerprint of the model.

        An index that cannot be read, or that belongs to another model, is removed: it is built again.
        """
        self.folder = folder
        self.model = model
        self._info: LateInfo | None = None
        self.codec: Codec | None = None
        try:
            self._info = read_info(folder)
            self.codec = read_codec(folder, self._info)
            if self._info.model != model:
                raise SondeError("it was made with another model")
            self._sweep()
        except FileNotFoundError:
            pass
        except SondeError:
            shutil.rmtree(folder, ignore_errors=True)
            self._info = self.codec = None

    def learn(self, ids: list[np.ndarray], vectors: list[np.ndarray]) -> Codec:
        """Learn the codec from the tokens of some passages, as `Codec.learn` takes them, and store it."""
        return self.begin(Codec.learn(ids, vectors))

    def begin(self, codec: Codec) -> Codec:
        """Start an index without entries."""
        make_folder(self.folder.parent)
        make_folder(self.folder)
        digests = write_codec(self.folder, codec)
        self._info, self.codec = LateInfo(self.model, codec.tokens, *digests), codec
        write_info(self.folder, self._info)
        return codec

    def add(self, rows: np.ndarray, keys: np.ndarray, packed: Sequence[np.ndarray]) -> None:
        """Add passages: int64 [n] rows, int64 [n] keys, and what `Codec.pack` made of each."""
        assert self._info is not None
        if not len(rows):
            return
        order = np.argsort(rows, kind="stable")
        parts = [np.ascontiguousarray(packed[place]) for place in order.tolist()]
        ends = np.cumsum([len(part) for part in parts])
        sums = [zlib.crc32(part.data) for part in parts]
        table = np.array([rows[order], keys[order], ends, sums], "<i8")
        self._name([*self._info.segments, self._written(table, parts)])
        self._merge()

    def damaged(self) -> list[LateSegment]:
        """Return the segments whose files have changed since they were written. Reads the whole index."""
        segments = self._info.segments if self._info else ()
        return [segment for segment in segments if segment.problem(self.folder)]

    def drop(self, segments: Sequence[LateSegment]) -> None:
        """Remove segments."""
        if self._info and segments:
            self._name([each for each in self._info.segments if each not in segments])
            self._sweep()

    def _written(self, table: np.ndarray, parts: Sequence[np.ndarray]) -> LateSegment:
        assert self._info is not None
        number = 1 + max((segment.number for segment in self._info.segments), default=0)
        tokens, width = int(table[2, -1]), parts[0].shape[1]
        found = LateSegment(number, table.shape[1], tokens, "", "")
        header = {"descr": "|u1", "fortran_order": False, "shape": (tokens, width)}

        def write(stream: IO[bytes]) -> None:
            np.lib.format.write_array_header_1_0(stream, header)
            for part in parts:
                stream.write(part.data)

        write_durably(found.codes_path(self.folder), write)
        digest = write_array(found.table_path(self.folder), table)
        return replace(found, table=digest, codes=sha256(found.codes_path(self.folder)))

    def _name(self, segments: Sequence[LateSegment]) -> None:
        assert self._info is not None
        self._info = replace(self._info, segments=tuple(segments))
        write_info(self.folder, self._info)

    def _merge(self) -> None:
        """Merge the newest segments for as long as FAN of them are of one tier, as segments of embeddings are."""
        assert self._info is not None
        while tail := due([segment.count for segment in self._info.segments]):
            kept, merged = self._info.segments[:-tail], self._info.segments[-tail:]
            self._name([*kept, self._joined(merged)])
            self._sweep()

    def _joined(self, segments: Sequence[LateSegment]) -> LateSegment:
        """Write segments as one; of two entries of a row, the later one is kept."""
        assert self.codec is not None
        tables = [open_array(each.table_path(self.folder), "<i8", each.count) for each in segments]
        codes = [open_array(each.codes_path(self.folder), "|u1", self.codec.width) for each in segments]
        owner = np.repeat(np.arange(len(tables)), [table.shape[1] for table in tables])
        together = np.concatenate(tables, axis=1)
        starts = np.concatenate([np.concatenate([[0], table[2, :-1]]) for table in tables])
        order = np.lexsort((-owner, together[0]))
        order = order[np.concatenate([[True], np.diff(together[0, order]) > 0])]
        parts = [codes[owner[each]][starts[each] : together[2, each]] for each in order.tolist()]
        table = together[:, order].copy()
        table[2] = np.cumsum([len(part) for part in parts])
        return self._written(table, parts)

    def _sweep(self) -> None:
        """Delete files that the description does not name: a writer that was killed left them, or they were merged."""
        assert self._info is not None
        named = {self.folder / INFO, self.folder / CODEC, self.folder / RARITY}
        for segment in self._info.segments:
            named |= {segment.table_path(self.folder), segment.codes_path(self.folder)}
        for path in self.folder.iterdir():
            if path not in named:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def due(counts: Sequence[int]) -> int:
    """Return how many of the newest segments, given by their sizes, are to be merged; 0 for none.

    These are the newest FAN segments of one tier, with the smaller ones before and between them: commits of a run grow,
    so segments of one tier are seldom neighbours.
    """
    highest = found = 0
    for back, count in enumerate(reversed(counts)):
        level = tier(count)
        if level >= highest and found == FAN:
            return back
        if level > highest:
            highest, found = level, 0
        found += level == highest
    return len(counts) if found == FAN else 0


def tier(count: int) -> int:
    """Return 0 for up to SMALLEST * FAN rows, one more for each power of FAN above."""
    level = 0
    while count > SMALLEST * FAN ** (level + 1):
        level += 1
    return level

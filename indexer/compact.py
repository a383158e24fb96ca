"""Compaction: the collection anew, without tombstones and with its segments merged, in one commit."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .ann import AnnSettings
from .catalog import Catalog
from .collection import check_folder
from .derived import update_derived
from .encoder import ModelSpec
from .lock import writer_lock
from .progress import Notify, Progress, silent
from .segments import Segment, Segments, write_segment
from .sweep import sweep

SEGMENT_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class CompactReport:
    """How many tombstones went, how many segments there were and are, and the bytes that vectors took and take."""

    removed: int
    segments_before: int
    segments: int
    bytes_before: int
    bytes: int


def compact(folder: Path, *, ann: AnnSettings = AnnSettings(), notify: Notify = silent) -> CompactReport:
    """Rewrite the collection without tombstones; readers go on with what they have opened.

    New segments and indexes are written beside the old ones; one transaction makes them the collection. Killed
    before it, the collection is as it was; after it, the next writer removes what is left of the old files.

    Raises:
        SondeError: Another process is writing.
    """
    with writer_lock(check_folder(folder)), closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        sweep(folder, catalog)
        before, (_, live, removed) = catalog.segments(), catalog.counts()
        size_before = _size(folder)
        if removed or len(before) > -(-live // SEGMENT_ROWS):
            with catalog.transaction(write=True):
                _rewrite(folder, catalog, before, notify)
                update_derived(folder, catalog, ann, notify)
            sweep(folder, catalog)
        return CompactReport(removed, len(before), len(catalog.segments()), size_before, _size(folder))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "vectors").iterdir())


def _rewrite(folder: Path, catalog: Catalog, before: list[Segment], notify: Notify) -> None:
    """Write new segments and renumber the passages, in the caller's transaction."""
    dimension = ModelSpec.from_dict(catalog.get("model")).dimension
    vectors = Segments(folder / "vectors", before, dimension)
    rows = np.flatnonzero(catalog.document_of_row() >= 0)
    number = 1 + max((segment.number for segment in before), default=0)
    catalog.connection.execute("DELETE FROM passages WHERE doc IS NULL")
    catalog.connection.execute("DELETE FROM segments")
    for start in range(0, len(rows), SEGMENT_ROWS):
        some = rows[start : start + SEGMENT_ROWS]
        segment = write_segment(folder / "vectors", number + start // SEGMENT_ROWS, start, vectors.read(some))
        values = (segment.number, segment.start, segment.count, segment.sha256)
        catalog.connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", values)
        notify(Progress("compacting", start + len(some), len(rows), "passages"))
    # New numbers never exceed old ones, so that in ascending order each target is free.
    moved = [(new, int(old)) for new, old in enumerate(rows) if new != old]
    catalog.connection.executemany("UPDATE passages SET row = ? WHERE row = ?", moved)
    catalog.set("epoch", catalog.get("epoch", 1) + 1)
    catalog.advance()

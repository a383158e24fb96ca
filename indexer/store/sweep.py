"""Housekeeping of a writer: merge small segments, remove the files that a killed writer left."""

import shutil
from pathlib import Path

from ..encoder import ModelSpec
from .catalog import Catalog
from .passages import add_segment, remove_segments
from .segments import Segment, Segments, write_parts

FAN = 8
"""So many segments of about the same size become one; a vector is rewritten once for each power of FAN above it."""

SMALLEST = 64


def merge_segments(folder: Path, catalog: Catalog) -> None:
    """Merge the newest segments for as long as FAN of them are of one tier; rows keep their numbers.

    The merged segment is written beside the others, and one transaction puts it in their place.
    """
    while mergeable(tail := catalog.segments()[-FAN:]):
        dimension = ModelSpec.from_dict(catalog.get("model")).dimension
        vectors = Segments(folder / "vectors", tail, dimension)
        number = 1 + max(segment.number for segment in catalog.segments())
        merged = write_parts(folder / "vectors", number, tail[0].start, list(vectors.raw()))
        with catalog.transaction(write=True):
            remove_segments(catalog, tail)
            add_segment(catalog, merged)
            catalog.advance()
        for segment in tail:
            segment.path(folder / "vectors").unlink(missing_ok=True)


def mergeable(tail: list[Segment]) -> bool:
    """Whether these are FAN segments of one tier: sizes within a factor of FAN of each other."""
    return len(tail) == FAN and len({tier(segment.count) for segment in tail}) == 1


def tier(count: int) -> int:
    """Return 0 for up to SMALLEST * FAN rows, one more for each power of FAN above."""
    level = 0
    while count > SMALLEST * FAN ** (level + 1):
        level += 1
    return level


def sweep(folder: Path, catalog: Catalog) -> list[Path]:
    """Delete unnamed segments, temporary files and indexes of an earlier epoch; return what was deleted.

    The caller holds the writer lock.
    """
    vectors = folder / "vectors"
    named = {segment.path(vectors) for segment in catalog.segments()}
    epoch = str(catalog.get("epoch", 1))
    orphans = [path for path in vectors.glob("*") if path not in named]
    orphans += [path for kind in ("ann", "lexical") for path in (folder / kind).glob("*") if path.name != epoch]
    orphans += list(folder.rglob("*.tmp"))
    for path in orphans:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return orphans

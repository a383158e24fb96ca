"""What a collection takes on disk, in parts that add up. A file with several names, such as a segment, counts once."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path, PurePath

from .derived import DERIVED

PARTS = (
    "catalog", "vectors", *DERIVED, "runs", "other", "unfinished", "earlier_generation", "previous_model",
    "unused_models",
)  # fmt: skip
"""The parts, in the order in which they are shown; a file that two of them have belongs to the first."""
MODELS = "models"
"""The folder of other models' embeddings in a collection's folder."""
WORK = "work"
"""The folder of unfinished runs of a sharded collection."""


def disk_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum({inode: size for _, inode, size in _files(folder)}.values())


def own_bytes(part: Path, folder: Path) -> int:
    """Return the bytes of a part of a collection's folder whose files no other part has: what its removal frees."""
    inside, place = {}, part.relative_to(folder)
    outside = set()
    for path, inode, size in _files(folder):
        if path.is_relative_to(place):
            inside[inode] = size
        else:
            outside.add(inode)
    return sum(size for inode, size in inside.items() if inode not in outside)


def disk_parts(folder: Path, previous: str | None, versions: Collection[str] = ()) -> dict[str, int]:
    """Return the bytes of each part of a collection that takes any; their sum is `disk_bytes`.

    Args:
        folder: The collection.
        previous: The fingerprint of the previous model, whose embeddings are kept; None if there is none.
        versions: The folders of the newest generation of a sharded collection, such as "shards/00/000001-ab".
    """
    found = sorted((PARTS.index(_part(path, previous, versions)), inode, size) for path, inode, size in _files(folder))
    total: dict[str, int] = {}
    seen = set()
    for place, inode, size in found:
        if inode not in seen:
            total[PARTS[place]] = total.get(PARTS[place], 0) + size
            seen.add(inode)
    return total


def _part(path: PurePath, previous: str | None, versions: Collection[str]) -> str:
    top, *rest = path.parts
    if top in ("shards", "runs") and len(rest) > 1:
        depth = 3 if top == "shards" else 2
        if PurePath(*path.parts[:depth]).as_posix() not in versions:
            return "earlier_generation" if len(path.parts) > depth else "other"
        return "runs" if top == "runs" else _part(PurePath(*path.parts[depth:]), previous, ())
    if top == MODELS and len(rest) > 1:
        return "previous_model" if rest[0] == previous else "unused_models"
    if top == WORK:
        return "unfinished"
    if top.startswith("catalog.db"):
        return "catalog"
    return top if rest and top in ("vectors", *DERIVED) else "other"


def _files(folder: Path) -> Iterator[tuple[PurePath, tuple[int, int], int]]:
    """Yield each file's path in the folder, its inode and its bytes, but not one that a writer removes meanwhile."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            try:
                found = path.stat()
            except OSError:
                continue
            yield path.relative_to(folder), (found.st_dev, found.st_ino), found.st_size

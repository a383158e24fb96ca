"""Removing what a killed writer left behind: files that no transaction names."""

import shutil
from pathlib import Path

from .catalog import Catalog


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

"""What a list of collections shows of each: read from the catalog and small files, without loading any index."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .ann.settings import AnnInfo
from .catalog import Catalog
from .derived import ann_folder
from .errors import SondeError


@dataclass(frozen=True, slots=True)
class Glance:
    """A collection in one line.

    Attributes:
        documents: How many there are.
        passages: Live ones.
        model: Name of the bi-encoder; None before the first run has written it down.
        recall: recall@10 of the FAISS index as it was measured; None where vectors are scanned exactly.
        bytes: On disk.
        changed: When it was last written, in seconds since the epoch.
        problem: Why it cannot be read, empty if it can.
    """

    documents: int = 0
    passages: int = 0
    model: str | None = None
    recall: float | None = None
    bytes: int = 0
    changed: float = 0.0
    problem: str = ""


def glance(folder: Path) -> Glance:
    """Look at the collection in `folder`; one that is damaged gives its `problem`."""
    size, changed = _size(folder), last_change(folder)
    try:
        with closing(Catalog.open(folder / "catalog.db")) as catalog:
            documents, passages, _ = catalog.counts()
            model = (catalog.get("model") or {}).get("name")
            recall = _recall(ann_folder(folder, catalog.get("epoch", 1)))
            return Glance(documents, passages, model, recall, size, changed)
    except (SondeError, sqlite3.Error) as error:
        return Glance(bytes=size, changed=changed, problem=str(error))


def last_change(folder: Path) -> float:
    """Return when the catalog was last written, in seconds since the epoch; 0 where there is none.

    An empty write-ahead log does not count: a reader makes one.
    """
    times = [0.0]
    for name in ("catalog.db", "catalog.db-wal"):
        try:
            found = (folder / name).stat()
        except OSError:
            continue
        times += [found.st_mtime] if found.st_size else []
    return max(times)


def _recall(folder: Path) -> float | None:
    try:
        info = AnnInfo.from_dict(json.loads((folder / "info.json").read_text("utf-8")))
    except (OSError, ValueError, SondeError):
        return None
    return None if info.kind == "exact" else info.recall


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # a writer has just removed it
            continue
    return total

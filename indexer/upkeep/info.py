"""What a collection holds: a quick look from small files, and the full, measured report."""

import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..ann import AnnIndex
from ..ann.settings import AnnInfo
from ..ann.tuning import TIMED, latency_ms
from ..errors import SondeError
from ..small_files import read_json
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.derived import ann_folder
from ..store.disk import disk_bytes, disk_parts
from ..store.late import is_wanted
from ..store.models import PREVIOUS, other_models
from ..store.view import View


@dataclass(frozen=True, slots=True)
class QuickLook:
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


def quick_look(folder: Path) -> QuickLook:
    """Look at the collection in `folder`; one that is damaged gives its `problem`."""
    size, changed = disk_bytes(folder), last_change(folder)
    try:
        with closing(Catalog.open(folder / "catalog.db")) as catalog:
            documents, passages, _ = catalog.counts()
            model = (catalog.get("model") or {}).get("name")
            recall = stored_recall(ann_folder(folder, catalog.epoch()))
            return QuickLook(documents, passages, model, recall, size, changed)
    except (SondeError, sqlite3.Error) as error:
        return QuickLook(bytes=size, changed=changed, problem=str(error))


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


def stored_recall(folder: Path) -> float | None:
    """Return recall@10 of the FAISS index in a folder as it was measured; None if there is no approximate one."""
    found = stored_info(folder)
    return None if found is None or found.kind == "exact" else found.recall


def stored_info(folder: Path) -> AnnInfo | None:
    """Return the description of the FAISS index in a folder, which is not loaded; None if there is none."""
    try:
        return AnnInfo.from_dict(read_json(folder / "info.json"))
    except (OSError, ValueError, SondeError):
        return None


@dataclass(frozen=True, slots=True)
class Info:
    """A collection in numbers; sizes are bytes on disk.

    `bytes` holds the size of each part of the folder; their sum, `disk`, is that of all its files. Besides catalog,
    vectors and indexes there may be `earlier_generation` (a sharded collection keeps it for searches that are still
    reading it), `unfinished` (a run that was stopped), `previous_model` and `unused_models` (see `other_models`), and
    `other` (small files).
    `ann` describes the FAISS index (kind, recall, latency_ms and so on), None where vectors are scanned exactly. Its
    recall and latency are those on the device that it names, "cpu" or "cuda".
    `search_defaults` holds what `sonde tune` stored, None where Sonde's own settings hold.
    `late` describes the late index (passages covered, bytes, bytes a passage), None where the collection keeps none.
    `other_models` lists other models whose embeddings are kept: the previous model, for `sonde model --undo`, and
    models that were not switched to.
    `shards` is the number of shards, None for an ordinary collection. If there are shards, the other numbers are sums,
    and `ann` describes their FAISS indexes together: `kind` names all kinds, and recall and latency are those of the
    worst shard.
    `newer` counts passages that the index does not hold yet: they are searched exactly.
    """

    path: str
    documents: int
    passages: int
    tombstones: int
    newer: int
    model: str
    model_settings: dict[str, Any]
    dimension: int
    language: str | None
    ann: dict[str, Any] | None
    lexical: int | None
    fields: dict[str, str]
    bytes: dict[str, int]
    generation: int
    search_defaults: dict[str, Any] | None = None
    late: dict[str, Any] | None = None
    other_models: tuple[dict[str, Any], ...] = ()
    shards: int | None = None

    @property
    def disk(self) -> int:
        """Bytes that the collection takes on disk."""
        return sum(self.bytes.values())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        return asdict(self) | {"disk": self.disk}


def info(collection: StoredCollection, load: bool = True) -> Info:
    """Return what the collection holds.

    Args:
        collection: Any but a sharded one.
        load: Whether to load its FAISS index, which is then measured on this machine if it was built on another device.
    """
    with collection.view() as view:
        documents, passages, tombstones = view.catalog.counts()
        generation = view.generation
        spec = collection.spec
        ann = generation.ann if load else None
        built = ann.info if ann else None if load else stored_info(ann_folder(collection.path, generation.epoch))
        return Info(
            path=str(collection.path),
            documents=documents,
            passages=passages,
            tombstones=tombstones,
            newer=len(generation.owners) - built.rows if built else 0,
            model=spec.name,
            model_settings=spec.to_dict(),
            dimension=spec.dimension,
            language=view.catalog.get("language"),
            ann=_measured(view, ann) if ann else built and built.to_dict(),
            lexical=generation.lexical.rows if generation.lexical else None,
            fields={field.name: field.type for field in view.fields.values()},
            bytes=disk_parts(collection.path, view.catalog.get(PREVIOUS)),
            generation=generation.number,
            search_defaults=view.catalog.get("search_defaults"),
            late=_late(view, passages),
            other_models=tuple(each.to_dict() for each in other_models(collection.path, view.catalog)),
        )


def _late(view: View, passages: int) -> dict[str, Any] | None:
    if not is_wanted(view.catalog):
        return None
    index, alive = view.late, view.generation.alive
    covered = int((index.covered(len(alive)) & alive).sum()) if index else 0
    size = sum(path.stat().st_size for path in index.folder.glob("*")) if index else 0
    each = index.bytes_per_passage if index else 0
    return {"passages": passages, "covered": covered, "bytes": size, "bytes_per_passage": each}


def _measured(view: View, ann: AnnIndex) -> dict[str, Any]:
    """Return the index as JSON values, with recall and latency on the device of the collection, not of the build."""
    here, found = ann.place.name.partition(":")[0], ann.info.to_dict()
    if here == ann.info.device or not view.generation.alive[: ann.info.rows].any():
        return found
    from .verify import measured_recall

    vectors, live = view.generation.segments, np.flatnonzero(view.generation.alive[: ann.info.rows])
    queries = vectors.read(live[np.linspace(0, len(live) - 1, min(TIMED, len(live))).astype(np.int64)])
    recall, latency = measured_recall(view, ann), latency_ms(ann, vectors, queries)
    return found | {"device": here, "recall": recall, "latency_ms": latency, "reached": recall >= ann.info.target}

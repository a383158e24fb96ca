"""One shard's part of a run: an ordinary index run in a folder of its own, published under a new name."""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..encoder import Encoder, ModelSpec
from ..files import make_folder, sha256, sync_folder, write_durably
from ..ingest import BuildSettings, index_documents
from ..ingest.index import encoder_of
from ..progress import Notify, silent
from ..store.catalog import Catalog
from ..store.documents import document_ids, ids_by_number
from ..store.lock import PUBLISHED as MANIFEST
from ..store.writing import declare_fields
from ..upkeep.delete import delete_chosen
from .layout import ShardState, shard_folder, work_folder
from .spool import places, read_spool, spool_file

ORDER = "order.npy"
_LEFT_OUT = ("writer.lock", "writer.json", "catalog.db-wal", "catalog.db-shm", MANIFEST, "skipped.jsonl")


@dataclass(frozen=True, slots=True)
class ShardTask:
    """What one shard is to do in a run; all of it can be sent to another process.

    Attributes:
        folder: The sharded collection.
        shard: Its number.
        base: Name of the version that it has, None if it has no documents yet.
        version: Name of the version that it is to publish.
        documents: How many documents the run has for it.
        fields: Types of all metadata fields by name.
        settings: Of the run.
        model: The model, as `ModelSpec.to_dict` gives it.
        read: How many documents earlier runs have read: the place of the first one of this run.
        delete: Ids of documents to delete, instead of documents to index.
    """

    folder: Path
    shard: int
    base: str | None
    version: str
    documents: int
    fields: dict[str, str]
    settings: BuildSettings
    model: dict[str, object]
    read: int
    delete: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShardDone:
    """What a shard did.

    Attributes:
        shard: Its number.
        state: The version that it published; None if nothing changed.
        counts: Counts of the run by name, as in `BuildReport`.
    """

    shard: int
    state: ShardState | None
    counts: dict[str, int]


COUNTS: tuple[str, ...] = (
    "added",
    "replaced",
    "unchanged",
    "deleted",
    "embedded",
    "reused",
    "tokens",
    "cut_tokens",
    "cut_documents",
)


def build_shard(task: ShardTask, encoder: Encoder | None = None, notify: Notify = silent) -> ShardDone:
    """Bring one shard up to date and publish the new version. Killed at any moment, the same call goes on.

    Nobody sees the version until a generation names it.

    Raises:
        SondeError: The disk is full, or the model is not available.
    """
    final = shard_folder(task.folder, task.shard) / task.version
    if (final / MANIFEST).is_file():
        return published(task, final)
    place = work_folder(task.folder) / f"{task.shard:02d}"
    folder = _begun(task, place)
    counts = _deleted(task, folder, notify) if task.delete else _indexed(task, folder, encoder, notify)
    if not _changed(task, folder):
        shutil.rmtree(place)
        return ShardDone(task.shard, None, counts)
    _order(task, folder)
    _publish(folder, final, counts)
    return published(task, final)


def _begun(task: ShardTask, place: Path) -> Path:
    """Return the folder that the shard works in: the one of a stopped run, or a copy of the version that it has."""
    folder = place / "collection.sonde"
    if folder.exists() or task.base is None:
        make_folder(place)
        (folder / MANIFEST).unlink(missing_ok=True)  # of a run that was stopped just before it published
        return folder
    shutil.rmtree(place, ignore_errors=True)
    copy = place / "copy"
    make_folder(copy)
    base = shard_folder(task.folder, task.shard) / task.base
    for path in sorted(base.rglob("*")):
        there = copy / path.relative_to(base)
        if path.is_dir():
            make_folder(there)
        elif path.name not in _LEFT_OUT:
            _taken_over(path, there)
    copy.rename(folder)
    return folder


def _taken_over(path: Path, there: Path) -> None:
    """Link a file that writers replace and never change, such as a segment of embeddings; copy any other."""
    if path.parent.name == "vectors":
        try:
            os.link(path, there)
            return
        except OSError:
            pass  # a file system without links
    shutil.copy2(path, there)


def _indexed(task: ShardTask, folder: Path, encoder: Encoder | None, notify: Notify) -> dict[str, int]:
    path = spool_file(work_folder(task.folder) / "spool", task.shard)
    if not task.documents:
        return _without_documents(task, folder, notify)
    encoder = encoder or encoder_of(ModelSpec.from_dict(task.model), task.settings, notify)
    report = index_documents(
        read_spool(path), folder, settings=task.settings, encoder=encoder, fields=task.fields, notify=notify
    )
    found = report.to_dict()
    return {name: int(found[name]) for name in COUNTS}  # type: ignore[call-overload]


def _without_documents(task: ShardTask, folder: Path, notify: Notify) -> dict[str, int]:
    """Do what a run without documents for this shard does: new fields, and with `sync`, everything is deleted."""
    counts = _counts()
    if task.base is None:
        return counts
    with closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        declare_fields(catalog, task.fields)
    if task.settings.sync:
        counts["deleted"] = delete_chosen(folder, lambda catalog: [doc for doc, _ in document_ids(catalog)], notify)
    return counts


def _deleted(task: ShardTask, folder: Path, notify: Notify) -> dict[str, int]:
    wanted = set(task.delete)
    chosen = delete_chosen(folder, lambda catalog: [doc for doc, key in document_ids(catalog) if key in wanted], notify)
    return _counts() | {"deleted": chosen}


def _counts() -> dict[str, int]:
    return dict.fromkeys(COUNTS, 0)


def _changed(task: ShardTask, folder: Path) -> bool:
    """Whether the shard differs from the version that it has."""
    if not (folder / "catalog.db").exists():
        return False
    if task.base is None:
        return True
    return _generation(folder) != _generation(shard_folder(task.folder, task.shard) / task.base)


def _generation(folder: Path) -> int:
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        return catalog.get("generation", 0)


def _order(task: ShardTask, folder: Path) -> None:
    """Write when each passage came, as the place of its document among all that were ever read.

    One collection orders equal scores by row, that is, in the order in which passages came. With these places, a
    search over shards has the same order.
    """
    path = folder / ORDER
    known = np.load(path) if path.exists() else np.empty(0, np.int64)
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        owners = catalog.document_of_row()[len(known) :]
        keys = ids_by_number(catalog, np.unique(owners[owners >= 0]).tolist())
    spool = spool_file(work_folder(task.folder) / "spool", task.shard)
    found = places(spool) if len(owners) and spool.exists() else {}
    new = np.array([task.read + found.get(keys.get(doc, ""), 0) for doc in owners.tolist()], np.int64)
    every = np.maximum.accumulate(np.concatenate([known, new])) if len(known) + len(new) else known
    write_durably(path, lambda stream: np.save(stream, every))


def _publish(folder: Path, final: Path, counts: dict[str, int]) -> None:
    """Give the finished collection its name, with a list of its files and their digests."""
    with closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        catalog.checkpoint()
        documents, passages, tombstones = catalog.counts()
    for name in _LEFT_OUT:
        (folder / name).unlink(missing_ok=True)
    for path in folder.rglob("*.lock"):
        path.unlink()
    files = {str(path.relative_to(folder)): sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    stored = {"documents": documents, "passages": passages, "tombstones": tombstones, "counts": counts, "files": files}
    write_durably(folder / MANIFEST, lambda stream: stream.write(json.dumps(stored, indent=1).encode()))
    make_folder(final.parent)
    folder.rename(final)
    sync_folder(final.parent)


def published(task: ShardTask, final: Path) -> ShardDone:
    """Return what a published version says of itself."""
    content = (final / MANIFEST).read_bytes()
    stored = json.loads(content)
    numbers = (stored["documents"], stored["passages"], stored["tombstones"])
    state = ShardState(task.version, *numbers, hashlib.sha256(content).hexdigest())
    return ShardDone(task.shard, state, stored["counts"])


def changed_files(version: Path, state: ShardState) -> Sequence[str]:
    """Return the files of a published version that are missing or have changed since; its manifest if that has."""
    try:
        content = (version / MANIFEST).read_bytes()
    except OSError:
        return [MANIFEST]
    if hashlib.sha256(content).hexdigest() != state.sha256:
        return [MANIFEST]
    files = json.loads(content)["files"]
    return [
        name for name, digest in files.items() if not (version / name).is_file() or sha256(version / name) != digest
    ]

"""One shard's part of a run: ordinary work on a collection, in a folder of its own, published under a new name."""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ..encoder import Encoder
from ..errors import SondeError
from ..files import remove_folder
from ..ingest import BuildSettings, index_documents
from ..ingest.index import encoder_of
from ..ingest.late import fill_late, remove_late
from ..late import Codec, LateWriter
from ..progress import Notify, silent
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.documents import document_ids, ids_by_number
from ..store.late import late_folder, want
from ..store.writing import declare_fields
from ..upkeep.delete import compact, delete_chosen, vectors_size
from ..upkeep.repair import repair
from .beside import embed_shard, take_embeddings
from .generations import LEFT_OUT, MANIFEST, alone, begun, manifest_of, publish
from .layout import ORDER, Sharding, ShardState, read_order, shard_folder, write_order
from .spool import first_places, last_places, read_spool, spool_file, spools

Action = Literal["index", "delete", "compact", "repair", "late", "without late", "embed beside", "model"]


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
        sharding: What never changes in the collection.
        read: How many documents earlier runs have read: the place of the first one of this run.
        action: What is to be done.
        delete: Ids of documents to delete.
        spool: Name of the folder of the run's documents; empty if it has none.
        codec: What the late index of the whole collection has learned; None if it has not.
    """

    folder: Path
    shard: int
    base: str | None
    version: str
    documents: int
    fields: dict[str, str]
    settings: BuildSettings
    sharding: Sharding
    read: int
    action: Action = "index"
    delete: tuple[str, ...] = ()
    spool: str = ""
    codec: Codec | None = None


@dataclass(frozen=True, slots=True)
class ShardDone:
    """What a shard did.

    Attributes:
        shard: Its number.
        state: The version that it published; None if nothing changed.
        counts: Counts of the run by name, as in `BuildReport` or `CompactReport`.
        said: What was repaired.
    """

    shard: int
    state: ShardState | None
    counts: dict[str, int]
    said: tuple[str, ...] = ()


COUNTS: tuple[str, ...] = (
    "added",
    "replaced",
    "new_texts",
    "known_texts",
    "unchanged",
    "deleted",
    "embedded",
    "reused",
    "tokens",
    "cut_tokens",
    "cut_documents",
)

COMPACTED: tuple[str, ...] = ("removed", "segments_before", "segments", "bytes_before", "bytes")
"""Counts of a shard that was compacted, as in `CompactReport`."""


def build_shard(task: ShardTask, encoder: Encoder | None = None, notify: Notify = silent) -> ShardDone:
    """Bring one shard up to date and publish the new version. Killed at any moment, the same call goes on.

    Nobody sees the version until a generation names it. If another process builds the shard, this waits for its end.

    Raises:
        SondeError: The disk is full, or the model is not available.
    """
    if task.action == "embed beside":  # which publishes nothing, and leaves the shard to others meanwhile
        return ShardDone(task.shard, None, embed_shard(task, encoder, notify))
    with alone(task.folder, task.shard):
        final = shard_folder(task.folder, task.shard) / task.version
        return _found(task, final) if (final / MANIFEST).is_file() else _built(task, final, encoder, notify)


def _found(task: ShardTask, final: Path) -> ShardDone:
    """Return a version that a stopped run has published. This run counts its documents as unchanged.

    Documents that a stopped run committed to a collection without shards are counted in the same way.
    """
    done = published(task, final)
    if task.action != "index":
        return done
    documents = len(first_places(_spool(task))) if task.documents else 0
    return replace(done, counts=_counts() | {"unchanged": documents})


def _built(task: ShardTask, final: Path, encoder: Encoder | None, notify: Notify) -> ShardDone:
    folder = begun(task.folder, task.shard, task.base, task.version)
    counts: dict[str, int] = {}
    said: list[str] = []
    if task.action == "index":
        counts = _indexed(task, folder, encoder, notify)
    elif task.action == "delete":
        counts = _deleted(task, folder, notify)
    elif task.action == "compact":
        counts = _compacted(task, folder, notify)
    elif task.action == "late":
        counts = _with_late(task, folder, encoder, notify)
    elif task.action == "model":
        counts = take_embeddings(task, folder)
    elif task.action == "without late":
        remove_late(folder)
    else:
        said = _repaired(folder, encoder, notify)
    if not _changed(task, folder):
        remove_folder(folder.parent)
        return ShardDone(task.shard, None, counts)
    _order(task, folder)
    _publish(folder, final, counts, said)
    return published(task, final)


def _indexed(task: ShardTask, folder: Path, encoder: Encoder | None, notify: Notify) -> dict[str, int]:
    path = _spool(task)
    if not task.documents:
        return _without_documents(task, folder, notify)
    encoder = encoder or encoder_of(task.sharding.spec, task.settings, notify)
    report = index_documents(
        read_spool(path), folder, settings=task.settings, encoder=encoder, fields=task.fields, notify=notify,
        numbers=_numbers(task, path), part=True,
    )  # fmt: skip
    found = report.to_dict()
    return {name: int(found[name]) for name in COUNTS}  # type: ignore[call-overload]


def _spool(task: ShardTask) -> Path:
    return spool_file(spools(task.folder) / (task.spool or "none"), task.shard)


def _numbers(task: ShardTask, spool: Path) -> dict[str, int]:
    """Return the number of each of the run's documents, should it be new; one that is there keeps its number."""
    return {key: task.sharding.number(task.read + place, task.shard) for key, place in first_places(spool).items()}


def _without_documents(task: ShardTask, folder: Path, notify: Notify) -> dict[str, int]:
    """Do what a run without documents for this shard does: new fields; `sync` deletes all but unreadable files."""
    counts = _counts()
    if task.base is None:
        return counts
    with closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        declare_fields(catalog, task.fields)
    if task.settings.sync:
        kept = last_places(_spool(task))
        gone = delete_chosen(
            folder, lambda catalog: [doc for doc, key in document_ids(catalog) if key not in kept], notify
        )
        counts["deleted"] = gone
    return counts


def _deleted(task: ShardTask, folder: Path, notify: Notify) -> dict[str, int]:
    wanted = set(task.delete)
    chosen = delete_chosen(folder, lambda catalog: [doc for doc, key in document_ids(catalog) if key in wanted], notify)
    return _counts() | {"deleted": chosen}


def _compacted(task: ShardTask, folder: Path, notify: Notify) -> dict[str, int]:
    """Remove tombstones, and count what that changed since the version that the shard has."""
    base = shard_folder(task.folder, task.shard) / (task.base or "")
    compact(folder, notify=notify)
    with closing(Catalog.open(base / "catalog.db")) as old, closing(Catalog.open(folder / "catalog.db")) as new:
        before, after = (old.segments(), old.counts()[2]), (new.segments(), new.counts()[2])
        order = read_order(base / ORDER, old.rows())
        if before != after:
            order = order[old.document_of_row()[: len(order)] >= 0]
    write_order(folder / ORDER, order)
    counts = (before[1] - after[1], len(before[0]), len(after[0]), vectors_size(base), vectors_size(folder))
    return dict(zip(COMPACTED, counts, strict=True))


def _with_late(task: ShardTask, folder: Path, encoder: Encoder | None, notify: Notify) -> dict[str, int]:
    """Complete the shard's late index, which begins with what the whole collection has learned."""
    encoder = encoder or encoder_of(task.sharding.spec, task.settings, notify)
    with closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        want(catalog, True)
        assert task.codec is not None
        writer = LateWriter(late_folder(folder, catalog.epoch()), encoder.spec.fingerprint)
        if writer.codec is None or writer.codec.digest != task.codec.digest:
            writer.begin(task.codec)
        return {"embedded": fill_late(folder, catalog, encoder, notify, estimated=True).embedded}


def _repaired(folder: Path, encoder: Encoder | None, notify: Notify) -> list[str]:
    with closing(StoredCollection(folder, encoder)) as collection:
        return repair(collection, notify)


def _counts() -> dict[str, int]:
    return dict.fromkeys(COUNTS, 0)


def _changed(task: ShardTask, folder: Path) -> bool:
    """Whether the shard differs from the version that it has."""
    if not (folder / "catalog.db").exists():
        return False
    if task.base is None or task.action in ("repair", "late"):  # only shards that need it get the task
        return True
    base = shard_folder(task.folder, task.shard) / task.base
    if task.action == "compact" and _catalog_size(folder) < _catalog_size(base):
        return True
    return _generation(folder) != _generation(base)


def _catalog_size(folder: Path) -> int:
    return (folder / "catalog.db").stat().st_size


def _generation(folder: Path) -> int:
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        return catalog.get("generation", 0)


def _order(task: ShardTask, folder: Path) -> None:
    """Write when each passage came, as the place of its document among all that were ever read.

    One collection orders equal scores by row, that is, in the order in which passages came. With these places, a
    search over shards has the same order.
    """
    path = folder / ORDER
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        known = read_order(path, catalog.rows()) if path.exists() else np.empty(0, np.int64)
        owners = catalog.document_of_row()[len(known) :]
        keys = ids_by_number(catalog, np.unique(owners[owners >= 0]).tolist())
    spool = _spool(task)
    found = last_places(spool) if len(owners) and spool.exists() else {}
    new = np.array([task.read + found.get(keys.get(doc, ""), 0) for doc in owners.tolist()], np.int64)
    every = np.maximum.accumulate(np.concatenate([known, new])) if len(known) + len(new) else known
    write_order(path, every)


def _publish(folder: Path, final: Path, counts: dict[str, int], said: list[str]) -> None:
    """Give the finished collection its name."""
    with closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        catalog.checkpoint()
        documents, passages, tombstones = catalog.counts()
    for name in LEFT_OUT:
        (folder / name).unlink(missing_ok=True)
    for path in folder.rglob("*.lock"):
        path.unlink()
    facts = {"documents": documents, "passages": passages, "tombstones": tombstones, "counts": counts, "said": said}
    publish(folder, final, facts)


def published(task: ShardTask, final: Path) -> ShardDone:
    """Return what a published version says of itself.

    Raises:
        SondeError: Its manifest is damaged.
    """
    stored, sha256 = manifest_of(final)
    try:
        state = ShardState(task.version, sha256, stored["documents"], stored["passages"], stored["tombstones"])
        counts = {str(name): int(count) for name, count in stored["counts"].items()}
        return ShardDone(task.shard, state, counts, tuple(map(str, stored["said"])))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"{final / MANIFEST} is damaged ({type(error).__name__}: {error})"
        raise SondeError(f"{said}: remove {final}, and run the same command again", code="damaged") from None

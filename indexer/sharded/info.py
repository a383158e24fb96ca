"""What a collection holds: a quick look at any, and the full report of a sharded one, its shards as one."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SondeError
from ..ingest.columns import known_columns
from ..store.disk import disk_bytes, disk_parts
from ..store.models import PREVIOUS, other_models
from ..upkeep import info as unsharded
from ..upkeep.info import Info, QuickLook, stored_recall
from ..wording import counted
from . import is_sharded
from .generations import committed_generation
from .layout import ShardedGeneration, Sharding

if TYPE_CHECKING:
    from .collection import ShardedCollection

_SUMMED = ("rows", "vectors", "trained_on", "queries", "bytes")
"""What the FAISS indexes of all shards have together."""


def quick_look(folder: Path) -> QuickLook:
    """Look at the collection in `folder`; one that is damaged gives its `problem`."""
    if not is_sharded(folder):
        return unsharded.quick_look(folder)
    size, changed = disk_bytes(folder), last_change(folder)
    try:
        sharding, newest = Sharding.read(folder), committed_generation(folder)
    except SondeError as error:
        return QuickLook(bytes=size, changed=changed, problem=str(error))
    if sharding is None or newest is None:
        return QuickLook(bytes=size, changed=changed)
    states = [state for state in newest.shards if state]
    documents, passages = sum(state.documents for state in states), sum(state.passages for state in states)
    model = sharding.with_model_of(newest).spec.name
    return QuickLook(documents, passages, model, _recall(folder, newest), size, changed)


def remembered_ids(folder: Path) -> str | None:
    """Return the column from which a collection takes its ids, "" if it is new, None if it has no column for them."""
    sharding = Sharding.read(folder) if is_sharded(folder) else None
    if sharding:
        return sharding.id_column or None
    known = known_columns(folder)
    return "" if known.new else known.id or None


def _recall(folder: Path, newest: ShardedGeneration) -> float | None:
    """Return the lowest recall of a shard's index; None if no shard has an approximate one."""
    found = [
        stored_recall(path)
        for name, state in newest.folders.items()
        for path in (folder / name / state.version / "ann").glob("*")
    ]
    return min((recall for recall in found if recall is not None), default=None)


def last_change(folder: Path) -> float:
    """Return when a collection was last written, in seconds since the epoch; 0 if there is none."""
    if not is_sharded(folder):
        return unsharded.last_change(folder)
    return max((path.stat().st_mtime for path in folder.glob("generations/*.json")), default=0.0)


def sharded_info(collection: "ShardedCollection") -> Info:
    """Return what the collection holds: sums over its shards, and their FAISS indexes as one."""
    with collection.view() as view:
        parts = [unsharded.info(shard, load=collection.elsewhere is None) for shard in collection.shards.values()]
        documents, passages, tombstones = view.catalog.counts()
        versions = {f"{name}/{state.version}" for name, state in collection.stored_generation.folders.items()}
        return Info(
            path=str(collection.path),
            documents=documents,
            passages=passages,
            tombstones=tombstones,
            newer=sum(part.newer for part in parts),
            model=collection.spec.name,
            model_settings=collection.spec.to_dict(),
            dimension=collection.spec.dimension,
            language=collection.sharding.language,
            ann=joined_ann([part.ann for part in parts]),
            lexical=view.generation.lexical.rows if view.generation.lexical else None,
            fields={field.name: field.type for field in view.fields.values()},
            bytes=disk_parts(collection.path, view.catalog.get(PREVIOUS), versions),
            generation=view.generation.number,
            search_defaults=view.catalog.get("search_defaults"),
            shards=collection.sharding.shards,
            late=_late(parts),
            other_models=tuple(each.to_dict() for each in other_models(collection.path, view.catalog)),
        )


def joined_ann(found: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the FAISS indexes of shards as one; None if no shard has one.

    Counts and sizes are sums, `kind` names all kinds, and `recall` and `latency_ms` are those of the worst shard.
    Parameters that differ between shards are left out, and so is the digest, which is that of one file.
    """
    known = [each for each in found if each]
    if not known:
        return None
    worst = min(known, key=lambda each: each["recall"])
    kinds = Counter(each["kind"] if each else "none" for each in found)
    shared = {
        name: value
        for name, value in worst["parameters"].items()
        if all(each["parameters"].get(name) == value for each in known)
    }
    return worst | {
        **{name: sum(each[name] for each in known) for name in _SUMMED},
        "kind": ", ".join(kinds),
        "reason": f"{counted(len(found), 'shard')}: " + ", ".join(f"{kind} in {n}" for kind, n in kinds.items()),
        "reached": all(each["reached"] for each in known),
        "latency_ms": max(each["latency_ms"] for each in known),
        "parameters": shared,
        "digest": "",
    }


def _late(parts: Sequence[Info]) -> dict[str, Any] | None:
    """Return what the late indexes of the shards hold together; None if there are none."""
    found = [part.late for part in parts if part.late]
    if not found:
        return None
    total: dict[str, Any] = {name: sum(each[name] for each in found) for name in ("covered", "bytes")}
    sizes = sum(each["covered"] * each["bytes_per_passage"] for each in found)
    passages = sum(part.passages for part in parts)
    return {"passages": passages, **total, "bytes_per_passage": round(sizes / (total["covered"] or 1))}

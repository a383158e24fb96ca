"""A quick look at a collection, sharded or not."""

from pathlib import Path

from ..errors import SondeError
from ..ingest.columns import known_columns
from ..store.disk import disk_bytes
from ..upkeep import info
from ..upkeep.info import QuickLook, stored_recall
from . import is_sharded
from .generations import committed_generation
from .layout import ShardedGeneration, Sharding


def quick_look(folder: Path) -> QuickLook:
    """Look at the collection in `folder`; one that is damaged gives its `problem`."""
    if not is_sharded(folder):
        return info.quick_look(folder)
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
        return info.last_change(folder)
    return max((path.stat().st_mtime for path in folder.glob("generations/*.json")), default=0.0)

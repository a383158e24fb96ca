"""Embeddings of another model beside a sharded collection: one collection for each shard, which is searched as one.

The folder is itself a sharded collection. Until a switch, the collection of a shard is written where it is, so that
each batch is a commit, and its version never gets a new name.
"""

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..encoder import Encoder
from ..errors import SondeError
from ..files import remove_folder, sync_folder, write_durably
from ..ingest.index import encoder_of
from ..progress import Notify, silent
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.exchange import TUNED, copy_derived, differing, keep_embeddings, take_over
from ..store.models import HISTORY, PREVIOUS, History, model_folder
from ..upkeep.delete import compact
from ..upkeep.model import catch_up, holds_something, leave_out
from . import COLLECTION
from .generations import alone, generation_number, newest_generation
from .layout import ORDER, ShardedGeneration, Sharding, ShardState, read_order, shard_folder, write_order
from .objects import LocalTruth

if TYPE_CHECKING:
    from .shard import ShardTask

AGAIN = "remove {}, and change the model again"
"""What to do about damaged embeddings of another model; `{}` is their folder."""
_VERSION = "000001-beside"


def beside_folder(other: Path, shard: int) -> Path:
    """Return the collection of one shard in the folder of another model."""
    return shard_folder(other, shard) / _VERSION


def beside_folders(other: Path) -> list[Path]:
    """Return the collections of all shards in the folder of another model."""
    return sorted(path.parent for path in other.glob(f"shards/*/{_VERSION}/catalog.db"))


def embed_shard(task: "ShardTask", encoder: Encoder | None, notify: Notify = silent) -> dict[str, int]:
    """Embed the documents of one shard with the model of the task; return how many differed and were embedded.

    If it is killed, the same call continues after the last batch. What the shard holds now is embedded, not what
    it held when the task was made.

    Raises:
        SondeError: The disk is full, or the model is not available.
    """
    other = model_folder(task.folder, task.sharding.spec.fingerprint)
    newest = newest_generation(LocalTruth(task.folder), task.folder)
    state = newest.shards[task.shard] if newest else None
    place = beside_folder(other, task.shard)
    with alone(other, task.shard):
        if state is None or not state.documents:
            shutil.rmtree(place, ignore_errors=True)
            return {"differed": 0, "embedded": 0}
        _settle_order(place)
        part = StoredCollection(shard_folder(task.folder, task.shard) / state.version, device=task.settings.device)

        def load() -> Encoder:
            return encoder or encoder_of(task.sharding.spec, task.settings, notify)

        differed, embedded = catch_up(part, place, load, notify, same_numbers=True)
        return {"differed": differed, "embedded": embedded}


def take_embeddings(task: "ShardTask", folder: Path) -> dict[str, int]:
    """Give the copy of a shard the embeddings of the task's model. If it is killed, the same call continues."""
    spec = task.sharding.spec
    other = beside_folder(model_folder(task.folder, spec.fingerprint), task.shard)
    with closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        if History(catalog).fingerprint != spec.fingerprint:
            take_over(folder, catalog, other)
        with catalog.transaction(write=True):
            for name in (PREVIOUS, HISTORY, TUNED):  # the whole collection has these, not its shards
                catalog.remove(name)
    _copy(other / ORDER, folder / ORDER)
    return {}


def compact_beside(parts: Mapping[int, StoredCollection], other: Path) -> None:
    """Remove documents that the shards lack, or have with another text, from the folder of a model, and compact it.

    If it is killed, the next call or `--undo` completes it.
    """
    for path in other.glob(f"shards/*/{_VERSION}"):
        shard = int(path.parent.name)
        if shard not in parts:
            remove_folder(path)
        elif holds_something(path):
            leave_out(parts[shard].catalog_path, path)
            _compact(path, other)
    if newest := newest_generation(LocalTruth(other), other):
        publish_beside(other, newest.read)


def _compact(place: Path, other: Path) -> None:
    _settle_order(place)
    with closing(Catalog.open(place / "catalog.db")) as catalog:
        order, live, epoch = _known_order(other, place, catalog), catalog.document_of_row() >= 0, catalog.epoch()
    if not live.all():
        write_order(_compacted_order(place, epoch + 1), order[live[: len(order)]])
    compact(place)
    _settle_order(place)


def _compacted_order(place: Path, epoch: int) -> Path:
    """Return the file with the order that holds from an epoch on, which the commit of `compact` begins."""
    return place / f"order-{epoch}.npy"


def _settle_order(place: Path) -> None:
    """Give the order of a compacted shard its name, or remove it if `compact` was killed before its commit."""
    if not holds_something(place):
        return
    with closing(Catalog.open(place / "catalog.db")) as catalog:
        compacted = _compacted_order(place, catalog.epoch())
    if compacted.is_file():
        compacted.replace(place / ORDER)
        sync_folder(place)
    for left in place.glob("order-*.npy"):
        left.unlink()


def keep_shards(parts: Mapping[int, StoredCollection], other: Path, sharding: Sharding, read: int) -> None:
    """Keep what shards are now as the embeddings of their model, without metadata.

    Args:
        parts: The shards, by number.
        other: The folder of their model; what it holds is replaced.
        sharding: The collection's own, with their model.
        read: How many documents were ever read.
    """
    shutil.rmtree(other, ignore_errors=True)
    for shard, part in parts.items():
        place = beside_folder(other, shard)
        with closing(Catalog.open(part.catalog_path)) as catalog:
            if catalog.counts()[0]:
                keep_embeddings(part.path, catalog, place)
                copy_derived(part.path, catalog.epoch(), place, catalog.epoch())
                _copy(part.path / ORDER, place / ORDER)
    LocalTruth(other).create(COLLECTION, sharding.to_bytes())
    publish_beside(other, read)


def differing_documents(parts: Mapping[int, StoredCollection], other: Path) -> np.ndarray:
    """Return int64 [n], ascending: the documents of shards whose content `other` does not have."""
    found = [np.empty(0, np.int64)]
    for shard, part in parts.items():
        with closing(Catalog.open(part.catalog_path)) as catalog:
            found.append(differing(catalog, beside_folder(other, shard))[0])
    return np.unique(np.concatenate(found))


def order_passages(other: Path, shards: int, floor: int, docs: np.ndarray) -> int:
    """Write when the passages came that have no place yet, as one collection would number them; return the next place.

    Args:
        other: The folder of the model.
        shards: How many shards there are.
        floor: 0 while documents are embedded for the first time, in the order of their numbers. Later passages come
            after all others, from this place on.
        docs: int64 [n], ascending, the documents that are embedded now.
    """
    last = floor - 1
    for shard in range(shards):
        place = beside_folder(other, shard)
        if not (place / "catalog.db").is_file():
            continue
        with closing(Catalog.open(place / "catalog.db")) as catalog:
            known = _known_order(other, place, catalog)
            owners = catalog.document_of_row()[len(known) :]
        new = floor + np.searchsorted(docs, owners) if floor else owners // shards - 1
        every = np.maximum.accumulate(np.concatenate([known, new]).astype(np.int64))
        if len(new):
            write_order(place / ORDER, every)
        last = max(last, int(every[-1]) if len(every) else -1)
    return last + 1


def _known_order(other: Path, place: Path, catalog: Catalog) -> np.ndarray:
    """Return when the passages came of which that is known, the first ones of a shard."""
    compacted = _compacted_order(place, catalog.epoch())
    path = compacted if compacted.is_file() else place / ORDER
    if not path.is_file():
        return np.empty(0, np.int64)
    return read_order(path, catalog.rows(), AGAIN.format(other))


def check_orders(other: Path) -> None:
    """Check when the passages of all shards came.

    Raises:
        SondeError: A file is missing or damaged.
    """
    for place in beside_folders(other):
        with closing(Catalog.open(place / "catalog.db")) as catalog:
            if len(_known_order(other, place, catalog)) < catalog.rows():
                raise SondeError(f"{place / ORDER} lacks passages: {AGAIN.format(other)}", code="damaged")


def publish_beside(other: Path, read: int) -> None:
    """Say in a new generation what the shards in the folder of another model hold now; it can then be opened."""
    sharding = Sharding.read(other)
    if sharding is None:
        raise SondeError(f"{other} is damaged: remove it, and run the same command again")
    number = generation_number(other) + 1
    states = [_state(beside_folder(other, shard)) for shard in range(sharding.shards)]
    new = ShardedGeneration(number, tuple(states), {}, read, indexed=number)
    LocalTruth(other).create(new.name, new.to_bytes())
    for path in other.glob("generations/*.json"):
        if path.name != Path(new.name).name:
            path.unlink()


def _state(place: Path) -> ShardState | None:
    if not (place / "catalog.db").is_file():
        return None
    with closing(Catalog.open(place / "catalog.db")) as catalog:
        return ShardState(_VERSION, "", *catalog.counts())


def _copy(source: Path, target: Path) -> None:
    content = source.read_bytes()
    write_durably(target, lambda stream: stream.write(content))

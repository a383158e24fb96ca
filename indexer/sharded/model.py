"""Change the model of a sharded collection: embed each shard again beside it, then switch all shards by one commit."""

import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..encoder import Encoder, ModelSpec
from ..errors import SondeError
from ..files import make_folder, remove_folder, write_durably
from ..ingest import BuildSettings
from ..progress import Notify, silent
from ..small_files import read_small, sealed, unsealed
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.exchange import TUNED
from ..store.models import HISTORY, PREVIOUS, History, OtherModel, model_folder, models_folder, other_models
from ..store.schema import is_property
from ..upkeep.model import Beside, Load, check, in_rounds, refuse_same
from . import COLLECTION
from .beside import beside_folder, check_orders, differing_documents, keep_shards, order_passages, publish_beside
from .build import Runner, in_turn, run_tasks, version_name
from .collection import ShardedCollection
from .generations import newest_generation
from .layout import ShardedGeneration, Sharding
from .objects import LocalTruth
from .runs import ChangeRuns
from .shard import ShardTask

_TUNED = "tuned.json"
"""The search settings that were tuned with the model that is kept in a folder."""


def embed_beside(
    collection: StoredCollection, encoder: Encoder, notify: Notify = silent, runner: Runner = in_turn
) -> Beside:
    """Embed all documents of a sharded collection with another model; see `upkeep.model.embed_beside`.

    Raises:
        UsageError: The collection has this model already.
        SondeError: It holds no documents, or the disk is full; the collection itself is as it was.
    """
    stored, spec = _sharded(collection), refuse_same(collection, encoder.spec)
    _remove_leftover(stored)
    other, began = model_folder(stored.path, spec.fingerprint), time.monotonic()
    make_folder(other)
    LocalTruth(other).create(COLLECTION, replace(stored.sharding, model=spec.to_dict()).to_bytes())
    embedded = in_rounds(lambda: _catch_up(stored, other, lambda: encoder, notify, runner))
    _check(stored, other, lambda: encoder, notify)
    return Beside(other, spec, embedded, time.monotonic() - began)


def previous_beside(collection: StoredCollection) -> tuple[Path, ModelSpec]:
    """Return the folder of the previous model's embeddings, and the model.

    Raises:
        SondeError: There is none.
    """
    previous = collection.get(PREVIOUS)
    folder = model_folder(collection.path, previous) if previous else None
    known = Sharding.read(folder) if folder else None
    if folder is None or known is None:
        raise SondeError(f"{collection.named} keeps no previous model: there is nothing to undo")
    return folder, known.spec


def bring_up_to_date(collection: StoredCollection, other: Path, load: Load, notify: Notify = silent) -> None:
    """Embed the documents that changed since in `other`, and repair it where it is damaged; see `switch`."""
    stored = _sharded(collection)
    _remove_leftover(stored)
    _catch_up(stored, other, load, notify)
    _check(stored, other, load, notify)


def switch(collection: StoredCollection, other: Path, load: Load, notify: Notify = silent) -> Path:
    """Give all shards the embeddings in `other`, in one commit; return where their own are kept.

    See `upkeep.model.switch`. New versions of all shards are published first; nobody sees them before the commit.

    Raises:
        SondeError: Another process is writing, the model is not available, or the disk is full; the collection is
            then as it was.
    """
    stored = _sharded(collection)
    with stored.locked() as base:
        _catch_up(stored, other, load, notify)
        spec, before = _sharding_of(other).spec, stored.sharding
        kept, replaced = model_folder(stored.path, before.spec.fingerprint), stored.get(PREVIOUS)
        keep_shards(stored.shards, kept, before, base.read)
        _keep_tuned(kept, stored.get(TUNED))
        read = max(0, _floor(other) - base.read)
        run_tasks(base, _switches(stored, base, spec), in_turn, None, notify, read, _change(stored, base, other))
    _remove(stored, (other.name, *([replaced] if replaced else [])), kept)
    return kept


def discard(collection: StoredCollection, *, previous: bool) -> list[OtherModel]:
    """Remove the embeddings of the previous model, or of models that were not switched to; return what was removed.

    Files come first, and then the commit, which needs space: on a full disk the same call works when it is repeated.

    Raises:
        SondeError: Another process is writing, or a file cannot be removed.
    """
    with _sharded(collection).locked(), collection.view() as view:
        kept, known = view.catalog.get(PREVIOUS), other_models(collection.path, view.catalog)
        folders = [path for path in models_folder(collection.path).iterdir() if path.is_dir()]
        gone = [path for path in folders if (path.name == kept) == previous]
        for path in gone:
            remove_folder(path)
    if previous and kept is not None:
        with collection.writing() as catalog:
            catalog.remove(PREVIOUS)
    return [other for other in known if other.folder in gone]


def _sharded(collection: StoredCollection) -> ShardedCollection:
    assert isinstance(collection, ShardedCollection)
    return collection


def _catch_up(
    collection: ShardedCollection, other: Path, load: Load, notify: Notify, runner: Runner = in_turn
) -> tuple[int, int]:
    """Embed documents that differ, shard by shard; return how many did, and how many passages were embedded."""
    if not any(state and state.documents for state in collection.stored_generation.shards):
        raise SondeError(f"{collection.named} holds no documents: index some before you change the model")
    floor, docs = _floor(other), differing_documents(collection.shards, other)
    done = list(runner(_tasks(collection, other), load() if len(docs) else None, notify))
    differed, embedded = (sum(each.counts[name] for each in done) for name in ("differed", "embedded"))
    read = order_passages(other, collection.sharding.shards, floor, docs)
    if differed or not floor:
        publish_beside(other, read)
    return differed, embedded


def _tasks(collection: ShardedCollection, other: Path) -> list[ShardTask]:
    """Return a task for each shard, also for those without documents now, which may have had some."""
    settings, sharding = BuildSettings(device=collection.device), _sharding_of(other)
    return [
        ShardTask(collection.path, shard, None, "", 0, {}, settings, sharding, 0, "embed beside")
        for shard in range(sharding.shards)
    ]


def _switches(collection: ShardedCollection, base: ShardedGeneration, spec: ModelSpec) -> list[ShardTask]:
    """Return the tasks that give the shards other embeddings; a shard without documents gets no new version."""
    sharding = replace(collection.sharding, model=spec.to_dict())
    version = version_name(base, "model", spec.fingerprint)
    return [
        ShardTask(
            collection.path, shard, state.version, version, 0, base.fields, BuildSettings(), sharding, base.read,
            "model",
        )
        for shard, state in enumerate(base.shards)
        if state and state.documents
    ]  # fmt: skip


def _change(collection: ShardedCollection, base: ShardedGeneration, other: Path) -> ChangeRuns:
    """Return what puts the model's history, the previous model and the tuned settings into the catalog of runs."""
    with collection.view() as view:
        history = History(view.catalog)
    extended = history.extended(_sharding_of(other).spec, base.number + 1)
    tuned = _tuned(other)

    def change(runs: Catalog) -> None:
        runs.set(HISTORY, extended)
        runs.set(PREVIOUS, history.fingerprint)
        if tuned is None:
            runs.remove(TUNED)
        else:
            runs.set(TUNED, tuned)

    return change


def _check(collection: ShardedCollection, other: Path, load: Load, notify: Notify) -> None:
    """Bring the indexes of all shards up to date, and check everything: what is damaged is embedded again."""
    for shard in range(collection.sharding.shards):
        place = beside_folder(other, shard)
        if (place / "catalog.db").is_file():
            check(place, load, collection.device, notify)


def _sharding_of(other: Path) -> Sharding:
    known = Sharding.read(other)
    if known is None:
        raise SondeError(f"{other / COLLECTION} is missing: remove {other}, and change the model again")
    return known


def _floor(other: Path) -> int:
    """Return the place from which later passages come; 0 if not all documents have been embedded once."""
    newest = newest_generation(LocalTruth(other), other)
    return newest.read if newest else 0


def _keep_tuned(other: Path, tuned: Any) -> None:
    write_durably(other / _TUNED, lambda stream: stream.write(sealed({TUNED: tuned})))


def _tuned(other: Path) -> Any:
    """Return the settings that were tuned with a model; None if there are none.

    Raises:
        SondeError: The file is damaged.
    """
    path = other / _TUNED
    if not path.is_file():
        return None
    try:
        found = unsealed(read_small(path))[TUNED]
        if found is not None and not is_property(TUNED, found):
            raise ValueError(f"it holds {str(found)[:80]}")
        return found
    except (OSError, ValueError, KeyError) as error:
        said = f"{path} is damaged ({type(error).__name__}: {error})"
        advice = "remove it: searches then have Sonde's own settings until `sonde tune` finds others"
        raise SondeError(f"{said}: {advice}", code="damaged") from None


def kept_problem(other: Path) -> str | None:
    """Return what is wrong with the files in the folder of another model that its shards do not have; None if nothing.

    Its shards are collections of their own, which are verified as such.
    """
    try:
        _sharding_of(other)
        newest_generation(LocalTruth(other), other)
        _tuned(other)
        check_orders(other)
    except SondeError as error:
        return str(error)
    return None


def _remove_leftover(collection: ShardedCollection) -> None:
    """Remove what a killed switch has left: embeddings that the collection itself has."""
    _remove(collection, (collection.spec.fingerprint,), None)


def _remove(collection: ShardedCollection, names: Iterable[str], kept: Path | None) -> None:
    for name in names:
        if (path := model_folder(collection.path, name)) != kept:
            shutil.rmtree(path, ignore_errors=True)

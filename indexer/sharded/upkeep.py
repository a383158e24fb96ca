"""Delete from a sharded collection, compact it, verify and repair it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SondeError
from ..ingest import BuildSettings
from ..progress import Notify, silent
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.disk import disk_bytes
from ..store.documents import document_ids, document_numbers, ids_by_number, numbers_by_id
from ..store.members import documents_in_runs
from ..store.models import PREVIOUS, model_folder
from ..upkeep.delete import CompactReport
from ..upkeep.model import compact_kept
from ..upkeep.repair import repair_judgements
from ..upkeep.verify import Finding, Part, verify, verify_beside_writers, verify_judgements, verify_kept, verify_runs
from ..wording import counted
from . import COLLECTION, open_stored
from .beside import beside_folders, compact_beside
from .bucket import bucket_of, commit
from .build import run_tasks, version_name
from .collection import ShardedCollection
from .generations import (
    changed_files,
    committed_generation,
    generation_number,
    has_lost,
    lost_folders,
    lost_shard,
    rebuilding,
    remove_old_versions,
)
from .layout import ORDER, RUNS, Published, ShardedGeneration, read_order, shard_folder
from .model import kept_problem
from .runs import compacted_runs
from .shard import COMPACTED, Action, ShardTask


def delete_sharded(
    collection: ShardedCollection, choose: Callable[[Catalog], Sequence[int]], notify: Notify = silent
) -> int:
    """Delete the documents whose numbers `choose` returns, all in one commit; return how many there were.

    Only the shards that have one of them get a new version.

    Raises:
        SondeError: Another process is writing, or the collection cannot be written.
    """
    with collection.locked() as base, collection.view() as view:
        ids = ids_by_number(view.catalog, choose(view.catalog)).values()
        by_shard: dict[int, list[str]] = {}
        for id in ids:
            by_shard.setdefault(collection.sharding.shard_of(id), []).append(id)
        tasks = _tasks(collection, base, "delete", by_shard)
        done = run_tasks(base, tasks, notify=notify) if tasks else []
        return sum(each.counts["deleted"] for each in done)


def compact_sharded(collection: ShardedCollection, notify: Notify = silent) -> CompactReport:
    """Compact every shard, and publish all of them in one commit; then the catalog of runs, and what other models keep.

    Versions of the generations before are removed. A search that is reading them goes on with the files that it has
    opened.

    Raises:
        SondeError: Another process is writing, or the disk is full; the collection is then unchanged.
    """
    before = disk_bytes(collection.path)
    with collection.locked() as base:
        tasks = _tasks(collection, base, "compact", dict.fromkeys(collection.shards, ()))
        done = run_tasks(base, tasks, notify=notify)
        base = collection.stored_generation
        with collection.view() as view:
            runs = compacted_runs(collection.path, base, lambda ids: numbers_by_id(view.catalog, ids))
        if runs != base.runs:
            commit(collection.path, replace(base, number=base.number + 1, runs=runs))
        remove_old_versions(collection.path, kept=1)
    compact_kept(collection.path, lambda other: compact_beside(collection.shards, other), notify)
    counts = {name: sum(each.counts[name] for each in done) for name in COMPACTED}
    return CompactReport(**counts, disk_before=before, disk=disk_bytes(collection.path))


def repair_sharded(collection: ShardedCollection, notify: Notify = silent) -> list[str]:
    """Rebuild what `verify_sharded` finds broken, all in one commit; return what was done.

    Raises:
        SondeError: Something is broken that this cannot fix, such as a catalog, or the model is not available.
    """
    with collection.locked() as base:
        broken = {shard: found for shard in collection.shards if (found := _shard_findings(collection, shard))}
        for shard, found in broken.items():
            if lost := next((each.problem for each in found if each.part == "catalog"), None):
                place = shard_folder(collection.path, shard)
                said = f"shard {shard:02d}: {lost}: `sonde repair` cannot fix this. Restore {collection.named} from a"
                raise SondeError(f"{said} backup, or delete {place} and {rebuilding(collection.named)}")
        tasks = _tasks(collection, base, "repair", dict.fromkeys(broken, ()))
        lacking = any(each.part in ("vectors", "passages") for found in broken.values() for each in found)
        encoder = collection.encoder if lacking else None
        done = run_tasks(base, tasks, encoder=encoder, notify=notify) if tasks else []
    said = [f"shard {each.shard:02d}: {line}" for each in done for line in each.said or ("published its files again",)]
    return [*said, *_repaired_runs(collection), *repair_judgements(collection.path)]


def _repaired_runs(collection: ShardedCollection) -> list[str]:
    if lost := next(_runs_problems(collection), None):
        raise SondeError(lost.problem)
    if not any(_runs_files(collection)):
        return []
    with collection.writing():
        return ["published the runs again"]


def _tasks(
    collection: ShardedCollection, base: ShardedGeneration, action: Action, wanted: Mapping[int, Iterable[str]]
) -> list[ShardTask]:
    """Return a task for each of some shards; `wanted` has the ids of documents to delete, by shard."""
    chosen = {shard: tuple(sorted(ids)) for shard, ids in wanted.items()}
    version = version_name(base, action, chosen)
    return [
        ShardTask(
            collection.path, shard, state.version, version, 0, base.fields, BuildSettings(), collection.sharding,
            base.read, action, chosen[shard],
        )
        for shard, state in enumerate(base.shards)
        if state and shard in chosen
    ]  # fmt: skip


ATTEMPTS = 3
"""Of a verification that writers overtake, before it keeps them out."""


def verify_stored(collection: StoredCollection) -> list[Finding]:
    """Return everything that is wrong with a collection, sharded or not."""
    return (
        verify_sharded(collection) if isinstance(collection, ShardedCollection) else verify_beside_writers(collection)
    )


def verify_at(path: str | Path, **options: Any) -> list[Finding]:
    """Return everything that is wrong with the collection at `path`, also if some of its shards cannot be opened.

    The findings begin with these shards; the others are verified without them. The arguments are those of
    `StoredCollection.open`.

    Raises:
        SondeError: There is no collection at `path`, or what is damaged is not in a shard.
    """
    try:
        collection = open_stored(path, **options)
    except SondeError:
        folder = Path(path)
        unreadable = _unreadable(folder, path) if (folder / COLLECTION).is_file() else {}
        if not unreadable:
            raise
        findings = [Finding("catalog", f"shard {shard:02d}: {problem}") for shard, problem in unreadable.items()]
        collection = ShardedCollection.open(folder, left_out=unreadable, **options)
    else:
        findings = []
    with closing(collection):
        return [*findings, *verify_stored(collection)]


def _unreadable(folder: Path, named: str | Path) -> dict[int, str]:
    """Return the shards of the newest generation that cannot be opened, each with its problem."""
    found, base = dict[int, str](), committed_generation(folder)
    for shard, state in enumerate(base.shards if base else ()):
        if state is None:
            continue
        place = shard_folder(folder, shard) / state.version
        if base and place in lost_folders(folder, base):
            found[shard] = str(lost_shard(place, named))
            continue
        try:
            with closing(StoredCollection.open(place)) as part:
                read_order(place / ORDER, part.open_catalog().rows())
        except SondeError as error:
            found[shard] = str(error)
    return found


def verify_sharded(collection: ShardedCollection) -> list[Finding]:
    """Return everything that is wrong with a sharded collection; an empty list means that all is well.

    Every shard is verified as a collection. Besides, its files must be those that were published, its fields those of
    the generation, and each of its documents must belong to it. So must every document of a run exist.

    Writers that commit meanwhile remove what was being read: what is found then is looked for again, in the end with
    writers kept out.
    """
    for _ in range(ATTEMPTS):
        number = collection.stored_generation.number
        try:
            found = _findings(collection)
        except FileNotFoundError:
            if generation_number(collection.path) == number:
                raise
            continue
        if not found or generation_number(collection.path) == number:
            return found
    with collection.locked():
        return _findings(collection)


def _findings(collection: ShardedCollection) -> list[Finding]:
    findings = [
        replace(each, problem=f"shard {shard:02d}: {each.problem}")
        for shard in collection.shards
        for each in _shard_findings(collection, shard)
    ]
    findings += [*_lost(collection), *_runs_files(collection), *_runs_problems(collection), *_kept(collection)]
    return [*findings, *verify_judgements(collection)]


def _lost(collection: ShardedCollection) -> Iterator[Finding]:
    number = collection.stored_generation.number
    if bucket_of(collection.path) or not has_lost(collection.path, number):
        return
    if generation_number(collection.path) == number:  # no run has committed meanwhile
        said = f"generation {number} is the newest, but a shard has a version of a later one"
        yield Finding("catalog", f"{said}: restore the collection from a backup, or the last changes are lost")


def _kept(collection: ShardedCollection) -> Iterator[Finding]:
    """Yield what is wrong with the previous model's embeddings, which only the folder that was changed has."""
    try:
        previous = collection.get(PREVIOUS)
    except SondeError:  # the catalog of runs cannot be read, which is reported with the runs
        return
    other = model_folder(collection.path, previous) if previous else None
    if bucket_of(collection.path) and other and not other.is_dir():
        return
    yield from verify_kept(collection, beside_folders)
    if other and other.is_dir() and (problem := kept_problem(other)):
        yield Finding("models", f"the embeddings of the previous model: {problem}")


def _shard_findings(collection: ShardedCollection, shard: int) -> list[Finding]:
    state, part = collection.stored_generation.shards[shard], collection.shards[shard]
    assert state is not None
    found = list(_changed(part, state, ""))
    try:
        with closing(StoredCollection.open(part.path)) as opened:
            found += [*_routing(collection, shard, opened), *verify(opened)]
    except SondeError as error:
        found.append(Finding("catalog", str(error)))
    return found


def _changed(part: StoredCollection, state: Published, prefix: str) -> Iterator[Finding]:
    """Yield a finding for each published file that is not as it was."""
    names: tuple[Part, ...] = ("vectors", "ann", "lexical", "late", "runs")
    parts: dict[str, Part] = {name: name for name in names}
    for name in changed_files(part.path, state):
        shown = f"{prefix}{name}"
        where = parts.get(shown.split("/")[0], "catalog")
        yield Finding(where, f"{shown} is missing or has changed since it was published")


def _runs_files(collection: ShardedCollection) -> Iterator[Finding]:
    state, part = collection.stored_generation.runs, collection.runs
    if state is not None and part is not None:
        yield from _changed(part, state, f"{RUNS}/")


def _runs_problems(collection: ShardedCollection) -> Iterator[Finding]:
    if collection.runs is None:
        return
    try:
        with closing(Catalog.open(collection.runs.catalog_path)) as catalog, collection.view() as view:
            yield from verify_runs(catalog)
            lost = np.setdiff1d(documents_in_runs(catalog), document_numbers(view.catalog))
            lost = [doc for doc in lost.tolist() if doc % collection.sharding.shards not in collection.left_out]
    except SondeError as error:
        yield Finding("runs", str(error))
        return
    if lost:
        yield Finding("runs", f"runs refer to {counted(len(lost), 'missing document')}")


def _routing(collection: ShardedCollection, shard: int, part: StoredCollection) -> Iterator[Finding]:
    catalog = part.open_catalog()
    fields = {field.name: field.type for field in catalog.fields().values()}
    if fields != collection.stored_generation.fields:
        yield Finding("catalog", "its metadata fields differ from those of the whole collection")
    sharding = collection.sharding
    astray = sum(not doc % sharding.shards == shard == sharding.shard_of(key) for doc, key in document_ids(catalog))
    if astray:
        yield Finding("catalog", f"{counted(astray, 'document')} should be in other shards")

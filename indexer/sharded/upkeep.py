"""Delete from a sharded collection, report on it, and verify it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from ..errors import SondeError
from ..ingest import BuildSettings
from ..progress import Notify, silent
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.documents import document_ids, ids_by_number
from ..store.lock import writer_lock
from ..upkeep.info import Info, info
from ..upkeep.verify import Finding, verify
from .build import Runner, in_turn, run_tasks, version_name
from .collection import ShardedCollection
from .layout import shard_folder
from .shard import ShardTask, changed_files


def delete_sharded(
    collection: ShardedCollection,
    choose: Callable[[Catalog], Sequence[int]],
    notify: Notify = silent,
    runner: Runner = in_turn,
) -> int:
    """Delete the documents whose numbers `choose` returns, all in one commit; return how many there were.

    Only the shards that have one of them get a new version.

    Raises:
        SondeError: Another process is writing, or the collection cannot be written.
    """
    with writer_lock(collection.path), collection.view() as view:
        base, sharding = collection.stored_generation, collection.sharding
        ids = ids_by_number(view.catalog, choose(view.catalog)).values()
        by_shard: dict[int, list[str]] = {}
        for id in ids:
            by_shard.setdefault(sharding.shard_of(id), []).append(id)
        version = version_name(base, "delete", sorted(ids))
        tasks = [
            ShardTask(
                collection.path, shard, state.version, version, 0, base.fields, BuildSettings(), sharding.model,
                base.read, tuple(by_shard[shard]),
            )
            for shard, state in enumerate(base.shards)
            if state and shard in by_shard
        ]  # fmt: skip
        if not tasks:
            return 0
        done = run_tasks(collection.path, sharding, base, tasks, runner, None, notify, base.fields, 0)
        return sum(each.counts["deleted"] for each in done)


def sharded_info(collection: ShardedCollection) -> Info:
    """Return what the collection holds: sums over its shards, and the FAISS index with the lowest recall."""
    with collection.view() as view:
        parts = [info(shard) for shard in collection.shards.values()]
        documents, passages, tombstones = view.catalog.counts()
        measured = [part.ann for part in parts if part.ann]
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
            ann=min(measured, key=lambda ann: ann["recall"]) if len(measured) == len(parts) and measured else None,
            lexical=view.generation.lexical.rows if view.generation.lexical else None,
            fields={field.name: field.type for field in view.fields.values()},
            bytes={name: sum(part.bytes[name] for part in parts) for name in (parts[0].bytes if parts else ())},
            generation=view.generation.number,
            shards=collection.sharding.shards,
        )


def verify_sharded(collection: ShardedCollection) -> list[Finding]:
    """Return everything that is wrong with a sharded collection; an empty list means that all is well.

    Every shard is verified as a collection. Besides, its files must be those that were published, its fields those of
    the generation, and each of its documents must belong to it.
    """
    findings = []
    stored = collection.stored_generation
    for shard, part in collection.shards.items():
        state = stored.shards[shard]
        assert state is not None
        changed = changed_files(shard_folder(collection.path, shard) / state.version, state)
        found = [Finding("catalog", f"{name} is missing or has changed since it was published") for name in changed]
        try:
            with closing(StoredCollection.open(part.path)) as opened:
                found += [*_routing(collection, shard, opened), *verify(opened)]
        except SondeError as error:
            found.append(Finding("catalog", str(error)))
        findings += [replace(each, problem=f"shard {shard}: {each.problem}") for each in found]
    return findings


def _routing(collection: ShardedCollection, shard: int, part: StoredCollection) -> Iterator[Finding]:
    catalog = part.open_catalog()
    fields = {field.name: field.type for field in catalog.fields().values()}
    if fields != collection.stored_generation.fields:
        yield Finding("catalog", "its metadata fields differ from those of the whole collection")
    astray = sum(collection.sharding.shard_of(key) != shard for _, key in document_ids(catalog))
    if astray:
        yield Finding("catalog", f"{astray:,} documents belong to other shards")

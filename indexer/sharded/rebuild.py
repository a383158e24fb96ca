"""Lost shards, which an index run rebuilds from the sources: which are lost, and which places their documents had."""

from collections.abc import Container, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import UsageError, arg
from ..progress import Notify
from ..store.catalog import Catalog
from ..store.documents import document_ids
from ..wording import counted
from .generations import committed_generation, lost_folders, lost_shard
from .layout import RUNS, ShardedGeneration, Sharding, ShardState, shard_folder
from .shard import ShardTask
from .spool import Spool, first_places


def without_lost_shards(folder: Path) -> tuple[ShardedGeneration, dict[int, ShardState]]:
    """Return the newest generation without its lost shards, and what these held, by number.

    Raises:
        UsageError: No shard is lost.
        SondeError: The catalog of runs is lost.
    """
    base = committed_generation(folder)
    missing = lost_folders(folder, base) if base else []
    if runs := next((path for path in missing if path.parent.name == RUNS), None):
        raise lost_shard(runs, folder)
    states = enumerate(base.shards if base else ())
    lost = {n: state for n, state in states if state and shard_folder(folder, n) / state.version in missing}
    if base is None or not lost:
        raise nothing_lost(folder)
    left = tuple(None if n in lost else state for n, state in enumerate(base.shards))
    return replace(base, shards=left), lost


def nothing_lost(folder: Path) -> UsageError:
    """Return the error for a collection, or a folder without one, that has lost no shard."""
    said = f"no shard of {folder} is lost, so there is nothing to rebuild: leave out {arg('rebuild')}"
    return UsageError(said, code="conflict", field="rebuild", value=True)


def refuse_other_source(lost: Mapping[int, ShardState], spool: Spool) -> None:
    """Refuse a source that has less than half of the documents that a lost shard held: others would be left out.

    Raises:
        UsageError: There are fewer.
    """
    for shard, state in lost.items():
        if (count := spool.counts[shard]) < state.documents / 2:
            raise UsageError(
                f"lost shard {shard:02d} had {counted(state.documents, 'document')}, but the given sources have only "
                f"{count:,} for it, so nothing was changed. Give all sources of the collection in one command. If "
                f"these are all sources, add {arg('delete_most')}",
                code="deletes-most", field="delete_most",
            )  # fmt: skip


def with_former_places(
    tasks: list[ShardTask], base: ShardedGeneration | None, lost: Container[int], spool: Spool
) -> list[ShardTask]:
    """Return the tasks, in which the documents of lost shards have the numbers that they had before.

    Args:
        tasks: Of an index run.
        base: The newest generation without its lost shards.
        lost: The numbers of these shards.
        spool: The documents of the run.
    """
    if base is None or not lost:
        return tasks
    place = _first_place(tasks[0].folder, base, tasks[0].sharding, spool)
    return [replace(task, read=place) if task.shard in lost else task for task in tasks]


def _first_place(folder: Path, base: ShardedGeneration, sharding: Sharding, spool: Spool) -> int:
    """Return the place of the source's first document among all that were ever read.

    Runs, such as tags, know documents by their numbers, and equal scores are ordered by them. The documents that are
    left tell at which place an earlier run began to read this source. If they do not agree, or if one of these places
    belongs to a document that the source lacks, the lost documents may have had other numbers: they then get new ones.
    """
    began, others = set[int](), list[np.ndarray]()
    for shard, state in enumerate(base.shards):
        if state is None:
            continue
        places, unknown = first_places(spool.file(shard)), list[int]()
        with closing(Catalog.open(shard_folder(folder, shard) / state.version / "catalog.db")) as catalog:
            for doc, key in document_ids(catalog):
                place = sharding.place(doc)
                began.add(place - places[key]) if key in places else unknown.append(place)
        others.append(np.array(unknown, np.int64))
    start = min(began, default=-1)
    end = start + spool.documents
    if len(began) != 1 or start < 0 or end > base.read:
        return base.read
    taken = any(((each >= start) & (each < end)).any() for each in others)
    return base.read if taken else start


def say_rebuilt(lost: Mapping[int, ShardState], base: ShardedGeneration | None, notify: Notify) -> None:
    """Report how many documents each rebuilt shard has."""
    for shard, before in lost.items():
        state = base.shards[shard] if base else None
        count = state.documents if state else 0
        rest = "" if count == before.documents else f"; it had {before.documents:,} before"
        notify(f"note: rebuilt lost shard {shard:02d} with {counted(count, 'document')}{rest}")

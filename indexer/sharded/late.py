"""The late index of a sharded collection: one in each shard, all with what was learned from the whole collection."""

import shutil
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..encoder import Encoder
from ..ingest import BuildSettings
from ..ingest.estimate import report_late_estimate
from ..ingest.late import LateFollower, LateReport, embed_for_late, in_late_batches
from ..late import Codec
from ..progress import Notify, silent
from ..store.catalog import Catalog
from ..store.late import is_wanted, uncovered
from .build import Runner, in_turn, run_tasks, version_name
from .collection import ShardedCollection
from .generations import LEARNED, learned_folder
from .layout import ShardedGeneration, work_folder
from .shard import Action, ShardTask
from .view import JoinedView


def build_late_sharded(collection: ShardedCollection, notify: Notify = silent) -> LateReport:
    """Embed the tokens that the late index of a sharded collection lacks, in one commit; keep one from now on.

    If it is killed, the same call continues after the last batch.

    Raises:
        SondeError: Another process is writing, the disk is full, or the model is not available or has no tokens.
    """
    with collection.locked() as base:
        return _complete(collection, base, notify)


def _complete(
    collection: ShardedCollection, base: ShardedGeneration, notify: Notify = silent, runner: Runner = in_turn
) -> LateReport:
    """Do the work of `build_late_sharded`; the caller holds the writer lock.

    What is learned comes from all shards, in the order of one collection, so scores are those of one collection.
    """
    began = time.monotonic()
    lacking = _lacking(collection)
    if lacking:
        _report_late_estimate(collection, notify)
    codec = _codec(collection) if lacking else None
    embedded = 0
    if lacking and codec is None:
        notify("the late index has too few tokens to learn from: passages are embedded in each search")
        shutil.rmtree(work_folder(collection.path) / LEARNED, ignore_errors=True)
    elif lacking and codec:
        tasks = _tasks(collection, base, "late", codec.digest, lacking, codec)
        done = run_tasks(base, tasks, runner, collection.encoder, notify)
        embedded = sum(each.counts["embedded"] for each in done)
    return _report(collection, embedded, time.monotonic() - began)


def remove_late_sharded(collection: ShardedCollection, notify: Notify = silent) -> LateReport:
    """Remove the late index of all shards in one commit, and keep none from now on.

    Raises:
        SondeError: Another process is writing.
    """
    with collection.locked() as base:
        wanted = [shard for shard in collection.shards if _wanted(collection, shard)]
        if wanted:
            run_tasks(base, _tasks(collection, base, "without late", "", wanted, None), notify=notify)
    return replace(_report(collection, 0, 0.0), removed=bool(wanted))


def late_after_run(
    folder: Path, wanted: bool, encoder: Encoder, notify: Notify = silent, runner: Runner = in_turn
) -> None:
    """Complete the late index after an index run, if the collection keeps one or is to; the caller holds the lock."""
    collection = ShardedCollection.open(folder, encoder=encoder)
    with closing(collection):
        if wanted or any(_wanted(collection, shard) for shard in collection.shards):
            _complete(collection, collection.stored_generation, notify, runner)


def _wanted(collection: ShardedCollection, shard: int) -> bool:
    with closing(Catalog.open(collection.shards[shard].catalog_path)) as catalog:
        return is_wanted(catalog)


def _lacking(collection: ShardedCollection) -> list[int]:
    """Return the shards that have no index, one that lacks passages, or one that learned from something else."""
    with collection.view() as view:
        index = view.late
        known = index.parts if index else {}
        lacking = []
        for part, _ in view.parts:
            shard = int(part.collection.path.parent.name)
            found = known.get(shard)
            if not is_wanted(part.catalog) or found is None or len(uncovered(part.catalog, found)[0]):
                lacking.append(shard)
        return lacking


def _report_late_estimate(collection: ShardedCollection, notify: Notify) -> None:
    with collection.view() as view:
        alive, count = view.generation.alive, view.catalog.counts()[1]
        if index := view.late:
            count -= int((index.covered(len(alive)) & alive).sum())
        report_late_estimate(view.catalog, np.flatnonzero(alive), count, collection.encoder, notify)


def _codec(collection: ShardedCollection) -> Codec | None:
    """Return what the shards' indexes learned, or learn it now; None if there are too few tokens."""
    with collection.view() as view:
        if view.late:
            return view.late.codec
        return _learned(collection.path, view, collection.encoder)


class _Learner(LateFollower):
    """Learns from passages, and keeps none of them."""

    def _add(self, entries: object) -> None:
        pass

    @property
    def codec(self) -> Codec | None:
        """What was learned."""
        return self._writer.codec


def _learned(folder: Path, view: JoinedView, encoder: Encoder) -> Codec | None:
    """Learn from the passages from which one collection would learn; a stopped run's result is used again."""
    learner = _Learner(learned_folder(folder, view.generation.number), view.catalog, encoder)
    rows = np.flatnonzero(view.generation.alive)
    for some in in_late_batches(len(rows)):
        if learner.codec:
            break
        embed_for_late(learner, rows[some], view.digests(rows[some].tolist()))
    learner.finish()
    return learner.codec


def _tasks(
    collection: ShardedCollection, base: ShardedGeneration, action: Action, identity: str, shards: list[int],
    codec: Codec | None,
) -> list[ShardTask]:  # fmt: skip
    version = version_name(base, action, identity, shards)
    return [
        ShardTask(
            collection.path, shard, state.version, version, 0, base.fields, BuildSettings(), collection.sharding,
            base.read, action, codec=codec,
        )
        for shard, state in enumerate(base.shards)
        if state and shard in shards
    ]  # fmt: skip


def _report(collection: ShardedCollection, embedded: int, seconds: float) -> LateReport:
    with collection.view() as view:
        passages, index = view.catalog.counts()[1], view.late
        if index is None:
            return LateReport(passages, 0, embedded, 0, 0, seconds)
        covered = int((index.covered(len(view.generation.alive)) & view.generation.alive).sum())
        return LateReport(passages, covered, embedded, index.bytes, index.bytes_per_passage, seconds)

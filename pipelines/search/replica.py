"""One shard held in memory by a process that answers questions about it."""

from pathlib import Path
from threading import Lock

import numpy as np

from ...indexer.errors import SondeError
from ...indexer.sharded.generations import newest_generation
from ...indexer.sharded.layout import shard_folder
from ...indexer.sharded.objects import LocalTruth
from ...indexer.store.collection import StoredCollection
from ...indexer.store.elsewhere import Answer, Question
from .candidates import DenseSearch

KEPT = 2
"""Versions that stay open: a service may still search the one before the newest."""


class ShardReplica:
    """Answers questions about one shard, also from several threads at once. It searches on the CPU."""

    def __init__(self, folder: Path, shard: int) -> None:
        """Load the newest version of a shard of the collection in `folder`.

        If that fails, each question about it fails, too, and says why.
        """
        self._folder = shard_folder(folder, shard)
        self._opened: dict[str, StoredCollection] = {}
        self._opening = Lock()
        try:
            newest = newest_generation(LocalTruth(folder), folder)
            if newest and (state := newest.shards[shard]):
                self._version(state.version)
        except (OSError, SondeError):  # a run may just have replaced this version
            return

    def answer(self, question: Question) -> Answer:
        """Return the best passages of one version for each query.

        Raises:
            SondeError: The version cannot be read.
        """
        with self._version(question.version).view() as view:
            alive = view.generation.alive if view.generation.tombstones else None
            packed, rows = question.allowed, len(view.generation.owners)
            allowed = alive if packed is None else np.unpackbits(packed, count=rows, bitorder="little").view(bool)
            dense = DenseSearch(view, allowed, question.breadth)
            found = dense.search(question.queries, question.k)
            return Answer([each.scores for each in found], [each.rows for each in found], dense.strategy(question.k))

    def _version(self, name: str) -> StoredCollection:
        """Return an open version with its FAISS index loaded; the oldest one that is open is forgotten for it."""
        if opened := self._opened.get(name):
            return opened
        with self._opening:
            if name not in self._opened:
                opened = StoredCollection.open(self._folder / name, device="cpu")
                with opened.view() as view:
                    _ = view.generation.ann
                self._opened = dict(list(self._opened.items())[-(KEPT - 1) :]) | {name: opened}
            return self._opened[name]

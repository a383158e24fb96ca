"""The dense half of a search over shards: each shard's own candidates, here or elsewhere, and the best of all."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Self

import numpy as np

from ...indexer.errors import SondeError
from ...indexer.store.collection import StoredCollection
from ...indexer.store.elsewhere import Answer, Elsewhere, Question, Way
from ...indexer.store.view import View
from ...indexer.wording import counted
from .candidates import Candidates, DenseSearch, best_of

KEPT = 2
"""Versions that stay open: a service may still search the one before the newest."""


@dataclass(frozen=True, slots=True)
class ShardedDense:
    """Vector search over the shards of one view; see `DenseSearch`.

    Attributes:
        parts: For each shard its search, and int64 [rows], the row of the whole view that each of its rows is.
    """

    parts: Sequence[tuple[DenseSearch, np.ndarray]]

    @classmethod
    def over(cls, view: View, allowed: np.ndarray | None, breadth: int | None = None) -> "ShardedDense":
        """Prepare a search of every shard of a view, restricted to `allowed` rows (bool [rows]; None: all)."""
        unfiltered = allowed is None or allowed is view.generation.alive
        searches = []
        for part, rows in view.parts:
            own = part.generation.alive if unfiltered and part.generation.tombstones else None
            chosen = own if allowed is None or unfiltered else allowed[rows]
            searches.append((DenseSearch(part, chosen, breadth), rows))
        return cls(searches)

    def strategy(self, k: int) -> str:
        """Return a description of how a search for k passages runs."""
        return _described(len(self.parts), [search.way(k) for search, _ in self.parts])

    def search(self, queries: np.ndarray, k: int) -> list[Candidates]:
        """Return the k best passages of all shards for each of float32 [m, d] queries."""
        found = list(_threads(os.getpid()).map(lambda part: part[0].search(queries, k), self.parts))
        parts = [(each, whole) for each, (_, whole) in zip(found, self.parts, strict=True)]
        return [_best([(w[f[m].rows], f[m].scores) for f, w in parts], k) for m in range(len(queries))]


@dataclass(frozen=True, slots=True)
class GatheredDense:
    """Vector search over the shards of one view by other processes; see `ShardedDense`.

    Attributes:
        elsewhere: What passes questions on.
        parts: For each shard a question without queries, and int64 [rows] as in `ShardedDense`.
        missing: The shards that gave no answer. They are not asked again, so that a search waits for each only once.
        told: How each shard searched, by its number.
    """

    elsewhere: Elsewhere
    parts: Sequence[tuple[Question, np.ndarray]]
    missing: set[int] = field(default_factory=set)
    told: dict[int, Way] = field(default_factory=dict)

    @classmethod
    def over(cls, view: View, elsewhere: Elsewhere, allowed: np.ndarray | None, breadth: int | None) -> Self:
        """Prepare a search as `ShardedDense.over` does."""
        unfiltered = allowed is None or allowed is view.generation.alive
        questions = []
        for part, rows in view.parts:
            folder, none = part.collection.path, np.empty((0, 0), np.float32)
            packed = None if allowed is None or unfiltered else np.packbits(allowed[rows], bitorder="little")
            questions.append((Question(int(folder.parent.name), folder.name, none, 1, packed, breadth), rows))
        return cls(elsewhere, questions)

    def strategy(self, k: int) -> str:
        """Return a description of how the searches so far ran."""
        del k
        return _described(len(self.parts), list(self.told.values()), " elsewhere")

    def search(self, queries: np.ndarray, k: int) -> list[Candidates]:
        """Return the k best passages of the shards that answer, for each of float32 [m, d] queries."""
        asked = [part for part in self.parts if part[0].shard not in self.missing]
        answers = self.elsewhere.ask([replace(question, queries=queries, k=k) for question, _ in asked])
        found = []
        for (question, whole), answer in zip(asked, answers, strict=True):
            if answer is None:
                self.missing.add(question.shard)
                continue
            self.told[question.shard] = answer.way
            found.append([(whole[r], s) for r, s in zip(answer.rows, answer.scores, strict=True)])
        return [_best([each[place] for each in found], k) for place in range(len(queries))]


def joined_dense(view: View, allowed: np.ndarray | None, breadth: int | None = None) -> ShardedDense | GatheredDense:
    """Prepare a search of every shard of a view where its indexes are: in this process, or in others."""
    if view.elsewhere is None:
        return ShardedDense.over(view, allowed, breadth)
    return GatheredDense.over(view, view.elsewhere, allowed, breadth)


def check_complete(dense: object) -> None:
    """Check that every shard answered, for results that cannot say that they are partial.

    Raises:
        SondeError: A shard did not.
    """
    if isinstance(dense, GatheredDense) and dense.missing:
        said = f"{counted(len(dense.missing), 'shard')} did not answer"
        raise SondeError(f"{said}: try again in a few seconds", code="shards-missing")


def _best(found: Sequence[tuple[np.ndarray, np.ndarray]], k: int) -> Candidates:
    """Return the k best candidates of all shards for one query, from the rows (of the whole) and scores of each."""
    rows = np.concatenate([np.empty(0, np.int64), *(each[0] for each in found)])
    return best_of(np.concatenate([np.empty(0, np.float32), *(each[1] for each in found)]), rows, k)


def _described(count: int, told: Sequence[Way], where: str = "") -> str:
    """Return how all shards search: their scans as one, or else the way of the first that has something to search."""
    shards = counted(count, "shard") + where
    scanned = [way.scanned for way in told if way.scanned is not None]
    if told and len(scanned) == len(told) and len({way.where for way in told}) == 1:
        return f"{shards}: {replace(told[0], scanned=sum(scanned))}"
    ways = list(dict.fromkeys(str(way) for way in told if way.scanned != 0)) or [str(way) for way in told]
    return f"{shards}: {ways[0]}" if len(ways) == 1 else f"{shards}, the first: {ways[0]}" if ways else shards


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads that search shards, as many as there are processors; FAISS releases Python's global lock."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="sonde-shard")


class ShardReplica:
    """Answers questions about one shard, also from several threads at once. It searches on the CPU."""

    def __init__(self, folder: Path, shard: int) -> None:
        """Load the newest version of a shard of the collection in `folder`.

        If that fails, each question about it fails, too, and says why.
        """
        from ...indexer.sharded.generations import newest_generation
        from ...indexer.sharded.layout import shard_folder
        from ...indexer.sharded.objects import LocalTruth

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
            return Answer([each.scores for each in found], [each.rows for each in found], dense.way(question.k))

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

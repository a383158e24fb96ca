"""The passages that a search may return, and the best of them from each index: of one view, or of all its shards."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Self

import numpy as np

from ...indexer.ann import AnnIndex, exact_search
from ...indexer.errors import SondeError
from ...indexer.store.elsewhere import Elsewhere, Question, Way
from ...indexer.store.view import View
from ...indexer.wording import counted
from .filters import documents_where


def allowed_rows(view: View, where: str | None) -> np.ndarray | None:
    """Return the rows that match a filter as bool [rows], or None if every row may be returned.

    Raises:
        UsageError: The filter is not valid: its syntax, a column, an operator or a value.
    """
    generation = view.generation
    if where is None:
        return generation.alive if generation.tombstones else None
    return generation.owned_by(documents_where(view.catalog, where))


@dataclass(frozen=True, slots=True)
class Candidates:
    """Passages for one query with their scores, best first."""

    rows: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True, slots=True)
class DenseSearch:
    """Vector search over one view, restricted to `allowed` rows (bool [rows]; None: all rows are live).

    `breadth` is efSearch or nprobe, and overrides the value to which the index was tuned.
    """

    view: View
    allowed: np.ndarray | None
    breadth: int | None = None

    def strategy(self, k: int) -> str:
        """Return a description of how a search for k passages runs."""
        return str(self.way(k))

    def way(self, k: int) -> Way:
        """Return how a search for k passages runs."""
        owners, ann = self.view.generation.owners, self._ann
        inside, tail = self._covered, len(owners) - self._covered
        if self.allowed is not None:
            inside = int(np.count_nonzero(self.allowed[: self._covered]))
            tail = int(np.count_nonzero(self.allowed[self._covered :]))
        if ann is None or ann.scans(k, inside):
            return Way(inside + tail, where=_where(ann))
        selector = " with a selector" if inside < len(owners[: self._covered]) else ""
        newer = f" and an exact scan of {counted(tail, 'newer passage')}" if tail else ""
        return Way(None, f"{ann.info.kind}{selector}{newer}", _where(ann))

    def search(self, queries: np.ndarray, k: int) -> list[Candidates]:
        """Return the k best passages for each of float32 [m, d] queries; fewer only if fewer are allowed."""
        ann, vectors = self._ann, self.view.generation.segments
        if ann is None:
            scores, rows = exact_search(vectors, queries, k, allowed=self._allowed(len(vectors)))
            return [_found(s, r) for s, r in zip(scores, rows, strict=True)]
        scores, rows = ann.search(queries, k, allowed=self._allowed(ann.info.rows), vectors=vectors)
        if self._covered == len(vectors):
            return [_found(s, r) for s, r in zip(scores, rows, strict=True)]
        newer = np.arange(self._covered, len(vectors), dtype=np.int64)
        newer = newer if self.allowed is None else newer[self.allowed[self._covered :]]
        found = ann.search_newer(queries, k, rows=newer, vectors=vectors)
        return [
            _best_of(np.concatenate([s, newer_s]), np.concatenate([r, newer_r]), k)
            for s, r, newer_s, newer_r in zip(scores, rows, *found, strict=True)
        ]

    @property
    def _ann(self) -> "AnnIndex | None":
        ann = self.view.generation.ann
        if ann is None or self.breadth is None or ann.info.breadth in (0, self.breadth):
            return ann
        return ann.tuned(self.breadth)

    @property
    def _covered(self) -> int:
        """Return how many rows of this view are in the FAISS index, to which a writer may have added later rows."""
        ann = self.view.generation.ann
        return min(ann.info.rows, len(self.view.generation.owners)) if ann else 0

    def _allowed(self, rows: int) -> np.ndarray | None:
        """Return the mask for an index of `rows` rows, which may be more than this view has."""
        have = len(self.view.generation.owners)
        if self.allowed is None and rows <= have:
            return None
        allowed = self.view.generation.alive if self.allowed is None else self.allowed
        return allowed if rows <= have else np.pad(allowed, (0, rows - have))


def _where(ann: AnnIndex | None) -> str:
    return "" if ann is None or ann.place.name == "cpu" else f" on {ann.place.name}"


def _found(scores: np.ndarray, rows: np.ndarray) -> Candidates:
    present = rows >= 0
    return Candidates(rows[present], scores[present])


def _best_of(scores: np.ndarray, rows: np.ndarray, k: int) -> Candidates:
    """Keep the k best. Equal scores are ordered by row, so that the same search always gives the same list."""
    present = np.flatnonzero(rows >= 0)
    if len(present) > k:
        cut = np.partition(-scores[present], k - 1)[k - 1]
        present = present[-scores[present] <= cut]
    order = present[np.lexsort((rows[present], -scores[present]))][:k]
    return Candidates(rows[order], scores[order])


def lexical_search(view: View, query: str, k: int, allowed: np.ndarray | None) -> Candidates:
    """Return the k best passages by BM25; none if the collection has no lexical index."""
    index = view.generation.lexical
    if index is None:
        return Candidates(np.empty(0, np.int64), np.empty(0, np.float32))
    scores, rows = index.search(query, k, allowed=view.generation.alive if allowed is None else allowed)
    return Candidates(rows, scores)


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
    return _best_of(np.concatenate([np.empty(0, np.float32), *(each[1] for each in found)]), rows, k)


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

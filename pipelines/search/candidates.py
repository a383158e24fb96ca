"""The first stage: the passages that a search may return, and the best of them from each index."""

from dataclasses import dataclass

import numpy as np

from ...indexer.ann import AnnIndex, exact_search
from ...indexer.store.elsewhere import Way
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
            best_of(np.concatenate([s, newer_s]), np.concatenate([r, newer_r]), k)
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


def best_of(scores: np.ndarray, rows: np.ndarray, k: int) -> Candidates:
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

"""Trying settings: how well each answers the same queries, without encoding or rereading anything twice."""

from collections.abc import Sequence

import numpy as np

from ...indexer.ann import exact_search
from ...indexer.view import View
from ..candidates import DenseSearch
from ..evaluate.paired import per_query
from ..ranked import Ranked
from ..rerank.reranker import Match, Reranker
from ..rerank.stage import SecondStage
from ..search import FirstStage, SearchSettings
from .queries import Asked

K = 10


class Trial:
    """Queries with their vectors over one view of a collection."""

    def __init__(self, view: View, asked: Asked, vectors: np.ndarray) -> None:
        """Take the queries' vectors, float32 [n, d], as the collection's encoder gives them."""
        self.view = view
        self.asked = asked
        self.vectors = vectors
        self._keys = dict(view.catalog.connection.execute("SELECT doc, key FROM documents"))

    def values(self, settings: SearchSettings, reranker: Reranker | None = None) -> np.ndarray:
        """Return float64 [n]: nDCG@10 of every query."""
        ranked = FirstStage.over(self.view, settings).run(self.asked.texts, self.vectors)
        if reranker is not None:
            resolved = settings.resolved(self.view)
            second = SecondStage(self.view, reranker, resolved.rerank_depth or K, weight=resolved.rerank_weight)
            ranked = [second.run(text, found)[0] for text, found in zip(self.asked.texts, ranked, strict=True)]
        run = {str(number): self._hits(found) for number, found in enumerate(ranked)}
        truth = {str(number): judged for number, judged in enumerate(self.asked.truth)}
        return per_query(run, truth, ("nDCG@10",))["ndcg@10"]

    def recall(self, breadth: int | None) -> np.ndarray:
        """Return float64 [n]: the share of the ten nearest passages that the approximate index finds, by query."""
        segments = self.view.generation.segments
        scores, _ = exact_search(segments, self.vectors, K, rows=np.flatnonzero(self.view.generation.alive))
        least = scores[:, -1]
        found = DenseSearch(self.view, None, breadth).search(self.vectors, K)
        reached = zip(found, least, strict=True)
        return np.array([(one.scores >= least - 1e-6).sum() / max(1, len(one.scores)) for one, least in reached])

    def _hits(self, ranked: Ranked) -> dict[str, float]:
        owners = self.view.generation.owners[ranked.rows[:K]]
        return {self._keys[doc]: -float(place) for place, doc in enumerate(owners.tolist())}


class Remembering:
    """A second stage that scores every pair of query and passage once."""

    def __init__(self, inner: Reranker) -> None:
        """Take the second stage that does the work."""
        self.inner = inner
        self.name, self.kind, self.unit = inner.name, inner.kind, inner.unit
        self.weight, self.agreement = inner.weight, inner.agreement
        self._known: dict[tuple[str, str], float] = {}

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return the scores, those that are known already among them."""
        new = [text for text in dict.fromkeys(passages) if (query, text) not in self._known]
        if new:
            scores = np.asarray(self.inner.score(query, new), np.float64)
            self._known |= {(query, text): float(score) for text, score in zip(new, scores, strict=True)}
        return np.array([self._known[query, text] for text in passages])

    def matches(self, query: str, passage: str) -> list[Match]:
        """Return what the second stage itself says."""
        return self.inner.matches(query, passage)

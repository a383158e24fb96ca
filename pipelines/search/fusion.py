"""Fuse dense and lexical candidates into one ranking of passages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .results import Scores
from .weighting import FusionWeight

WEIGHT = 0.5
"""Share of the dense score if nothing is known about the query."""

RRF_K = 60
"""The constant of reciprocal rank fusion, as in the paper."""


def convex(dense: np.ndarray, lexical: np.ndarray, weight: float = WEIGHT) -> np.ndarray:
    """Return the convex combination of both scores, each scaled to 0..1 over the candidates; higher is better.

    Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023. The lexical score is
    scaled from its theoretical minimum, 0.

    Args:
        dense: float [n], the candidates' similarities.
        lexical: float [n], their BM25 scores, 0 if no term matches.
        weight: Share of the dense score, 0 to 1.
    """
    low, high = (dense.min(), dense.max()) if len(dense) else (0.0, 0.0)
    return weight * _scaled(dense, low, high) + (1 - weight) * _scaled(lexical, 0.0, lexical.max(initial=0.0))


def scaled(scores: np.ndarray, first: int) -> np.ndarray:
    """Return scores, best first, scaled so that the `first` ones lie in 0..1; those behind them are below 0."""
    some = scores[:first]
    return _scaled(scores, some[-1], some[0]) if len(some) else scores


def _scaled(scores: np.ndarray, low: float, high: float) -> np.ndarray:
    return (scores - low) / (high - low) if high > low else np.ones_like(scores) * (high > 0)


def reciprocal_rank(dense: np.ndarray, lexical: np.ndarray, weight: float = WEIGHT) -> np.ndarray:
    """Return the weighted reciprocal rank fusion of both scores; higher is better.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009. A candidate without a lexical score has no lexical rank.
    """
    lexical_part = np.where(lexical > 0, 1 / (RRF_K + _ranks(lexical)), 0.0)
    return weight / (RRF_K + _ranks(dense)) + (1 - weight) * lexical_part


def _ranks(scores: np.ndarray) -> np.ndarray:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages for one query, best first, with the parts of their scores; `candidates` is how many one half found.

    `second` holds the second stage's scores, NaN for passages that it did not read; None if no second stage ran.
    `relevance` is known after a first stage, `weight` if two halves were fused. `settled` is how many of the first
    passages are unlikely to move if more are searched for.
    """

    rows: np.ndarray
    scores: np.ndarray
    dense: np.ndarray | None
    lexical: np.ndarray | None
    candidates: int
    second: np.ndarray | None = None
    relevance: np.ndarray | None = None
    weight: FusionWeight | None = None
    settled: int = 0

    def take(self, places: np.ndarray) -> "Ranked":
        """Return the passages at these positions."""
        parts = (self.dense, self.lexical, self.second, self.relevance)
        dense, lexical, second, relevance = (None if part is None else part[places] for part in parts)
        scores = self.scores[places]
        return replace(
            self,
            rows=self.rows[places],
            scores=scores,
            dense=dense,
            lexical=lexical,
            second=second,
            relevance=relevance,
            settled=int(np.count_nonzero(places < self.settled)),
        )

    def reranked(self, scores: np.ndarray, second: np.ndarray) -> "Ranked":
        """Return the same passages in the same order, with new scores and the second stage's own scores."""
        return replace(self, scores=scores, second=second)

    @classmethod
    def joined(cls, parts: Sequence["Ranked"]) -> "Ranked":
        """Concatenate lists that have the same score parts."""
        columns = [[part.rows for part in parts], [part.scores for part in parts], [part.dense for part in parts]]
        columns += [[part.lexical for part in parts], [part.second for part in parts]]
        rows, scores, dense, lexical, second = (_column(column) for column in columns)
        assert rows is not None and scores is not None
        most, relevance = max(part.candidates for part in parts), _column([part.relevance for part in parts])
        settled = sum(part.settled for part in parts)
        return cls(rows, scores, dense, lexical, most, second, relevance, parts[0].weight, settled)

    def grouped(self, owners: np.ndarray) -> "Ranked":
        """Keep only the best passage of each document."""
        _, first = np.unique(owners[self.rows], return_index=True)
        return self.take(np.sort(first))

    def followed_by(self, other: "Ranked", owners: np.ndarray) -> "Ranked":
        """Append the new documents of a deeper search, with scores and relevance scaled to continue the existing ones.

        Both depend on what a search finds besides, so a deeper search has other values for the same document.
        """
        if not len(self.rows):
            return other
        if self.relevance is not None and other.relevance is not None:
            other = replace(other, relevance=other.relevance * self._ratio(other, owners))
        more = other.take(np.flatnonzero(~np.isin(owners[other.rows], owners[self.rows])))
        last, top = float(self.scores[-1]), float(more.scores.max(initial=0.0))
        dense, lexical = _column([self.dense, more.dense]), _column([self.lexical, more.lexical])
        relevance = _column([self.relevance, more.relevance])
        scores = np.concatenate([self.scores, more.scores * (last / top if top > last >= 0 else 1.0)])
        rows = np.concatenate([self.rows, more.rows])
        return Ranked(rows, scores, dense, lexical, other.candidates, None, relevance, self.weight)

    def _ratio(self, other: "Ranked", owners: np.ndarray) -> float:
        """Return by how much the last document here is more relevant than a deeper search says, at most 1."""
        assert self.relevance is not None and other.relevance is not None
        again = np.flatnonzero(owners[other.rows] == owners[self.rows[-1]])
        if not len(again) or other.relevance[again[0]] <= 0:
            return 1.0
        return min(1.0, float(self.relevance[-1] / other.relevance[again[0]]))

    def above(self, threshold: float | None) -> "Ranked":
        """Keep passages whose similarity reaches the threshold: the cosine if available, else BM25."""
        similarity = self.dense if self.dense is not None else self.lexical
        if threshold is None or similarity is None:
            return self
        with np.errstate(over="ignore"):  # above the float32 range it becomes infinite, which no score reaches
            return self.take(np.flatnonzero(similarity >= np.float32(threshold)))

    def scores_at(self, place: int) -> Scores:
        """Return the parts of one passage's score."""
        return Scores(
            dense=None if self.dense is None else float(self.dense[place]),
            lexical=None if self.lexical is None else float(self.lexical[place]),
            rerank=None if self.second is None or np.isnan(self.second[place]) else float(self.second[place]),
        )


def _column(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


NOTHING = Ranked(np.empty(0, np.int64), np.empty(0, np.float32), None, None, 0)

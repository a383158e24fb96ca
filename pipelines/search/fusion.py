"""Fuse dense and lexical candidates into one ranking of passages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .results import Scores

WEIGHT = 0.5
"""Share of the dense score in the convex combination; chosen on the development sets (docs/retrieval.md)."""

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
    low, high = dense.min(initial=0.0), dense.max(initial=0.0)
    if len(dense):
        low, high = dense.min(), dense.max()
    return weight * _scaled(dense, low, high) + (1 - weight) * _scaled(lexical, 0.0, lexical.max(initial=0.0))


def _scaled(scores: np.ndarray, low: float, high: float) -> np.ndarray:
    return (scores - low) / (high - low) if high > low else np.ones_like(scores) * (high > 0)


def reciprocal_rank(dense: np.ndarray, lexical: np.ndarray, weight: float = WEIGHT, k: int = RRF_K) -> np.ndarray:
    """Return the weighted reciprocal rank fusion of both scores; higher is better.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009. A candidate without a lexical score has no lexical rank.
    """
    lexical_part = np.where(lexical > 0, 1 / (k + _ranks(lexical)), 0.0)
    return weight / (k + _ranks(dense)) + (1 - weight) * lexical_part


def _ranks(scores: np.ndarray) -> np.ndarray:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages for one query, best first, with the parts of their scores; `candidates` is how many one half found.

    `second` holds the second stage's scores, NaN for passages that it did not read; None if no second stage ran.
    """

    rows: np.ndarray
    scores: np.ndarray
    dense: np.ndarray | None
    lexical: np.ndarray | None
    candidates: int
    second: np.ndarray | None = None

    def take(self, places: np.ndarray) -> "Ranked":
        """Return the passages at these positions."""
        parts = (self.dense, self.lexical, self.second)
        dense, lexical, second = (None if part is None else part[places] for part in parts)
        return Ranked(self.rows[places], self.scores[places], dense, lexical, self.candidates, second)

    def reranked(self, scores: np.ndarray, second: np.ndarray) -> "Ranked":
        """Return the same passages in the same order, with new scores and the second stage's own scores."""
        return Ranked(self.rows, scores, self.dense, self.lexical, self.candidates, second)

    @classmethod
    def joined(cls, parts: Sequence["Ranked"]) -> "Ranked":
        """Concatenate lists that have the same score parts."""
        columns = [[part.rows for part in parts], [part.scores for part in parts], [part.dense for part in parts]]
        columns += [[part.lexical for part in parts], [part.second for part in parts]]
        rows, scores, dense, lexical, second = (_column(column) for column in columns)
        assert rows is not None and scores is not None
        return cls(rows, scores, dense, lexical, max(part.candidates for part in parts), second)

    def grouped(self, owners: np.ndarray) -> "Ranked":
        """Keep only the best passage of each document."""
        _, first = np.unique(owners[self.rows], return_index=True)
        return self.take(np.sort(first))

    def followed_by(self, other: "Ranked", owners: np.ndarray) -> "Ranked":
        """Append the new documents of a deeper search, with their scores scaled below the existing ones."""
        if not len(self.rows):
            return other
        more = other.take(np.flatnonzero(~np.isin(owners[other.rows], owners[self.rows])))
        last, top = float(self.scores[-1]), float(more.scores.max(initial=0.0))
        pairs = [(self.dense, more.dense), (self.lexical, more.lexical)]
        dense, lexical = (None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        scores = np.concatenate([self.scores, more.scores * (last / top if top > last >= 0 else 1.0)])
        return Ranked(np.concatenate([self.rows, more.rows]), scores, dense, lexical, other.candidates)

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

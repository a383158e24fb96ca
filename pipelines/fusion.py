"""Fusing a dense and a lexical list of candidates into one order."""

import numpy as np

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
        lexical: float [n], their BM25 scores, 0 where no term matches.
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

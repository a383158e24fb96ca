"""Carrying a clustering to documents that it was not fitted on: by centroids, or by the neighbours' votes."""

import numpy as np

from ...indexer.document_vectors import normalized
from ...indexer.progress import Notify, silent
from .neighbours import neighbours
from .silhouette import members

VOTERS = 10
"""Neighbours that vote on where a text belongs."""


def vote(
    queries: np.ndarray, fitted: np.ndarray, labels: np.ndarray, notify: Notify = silent
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster that most of the nearest fitted vectors belong to, each weighing its cosine.

    Args:
        queries: float32 [m, d], of length 1.
        fitted: float32 [n, d], of length 1, n at least 1.
        labels: int64 [n], the cluster of each; -1 (an outlier) is voted for like any other.
        notify: Receives progress.

    Returns:
        int64 [m] clusters, and float32 [m] shares of the votes, 0 to 1. Of equal ones the nearer neighbour's wins.
    """
    rows, cosines = neighbours(queries, fitted, VOTERS, notify)
    return ballot(labels[rows], cosines)


def ballot(votes: np.ndarray, cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the neighbours' clusters, int64 [m, k], wins, and its share; each weighs its cosine."""
    weights = np.maximum(cosines, 1e-6)
    totals = np.zeros_like(weights)
    for other in range(votes.shape[1]):
        totals += np.where(votes == votes[:, other : other + 1], weights[:, other : other + 1], 0)
    best = totals.argmax(axis=1)
    every = np.arange(len(votes))
    return votes[every, best], np.minimum(totals[every, best] / weights.sum(axis=1), 1)


def centroids(vectors: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Return float32 [count, d]: the direction of each cluster's mean; zeros for one that is empty."""
    inside = np.flatnonzero(labels >= 0)
    found = np.zeros((count, vectors.shape[1]), np.float64)
    if len(inside):
        for number, rows in enumerate(members(labels[inside], inside)):
            found[number] = vectors[rows].sum(axis=0, dtype=np.float64)
    return normalized(found).astype(np.float32)

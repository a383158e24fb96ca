"""The order of a second stage: both stages' scores, and the scores of the documents that are most alike."""

import numpy as np

NEIGHBOURS = 5
"""Documents whose scores a document's own is averaged with."""


def fuse(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Return the convex combination of both scores, each scaled to 0..1 over the candidates; higher is better.

    Args:
        first: float [n], the first stage's scores.
        second: float [n], the second stage's.
        weight: Share of the second stage, 0 to 1.
    """
    return (1 - weight) * _scaled(first) + weight * _scaled(second)


def agree(scores: np.ndarray, vectors: np.ndarray, share: float, count: int = NEIGHBOURS) -> np.ndarray:
    """Return each score averaged with those of the documents most alike: relevant documents lie close together.

    One step of the score regularization of Diaz, "Regularizing ad hoc retrieval scores", CIKM 2005: the result is
    (1 - share) times a document's own score and `share` times the mean of its neighbours', weighted by cosine.

    Args:
        scores: float [n], 0 to 1.
        vectors: float [n, d], the documents' best passages.
        share: 0 to 1; with 0 the scores stay as they are.
        count: How many neighbours, at most.
    """
    if not share or len(scores) < 2:
        return scores
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float64)
    # Rounded, so that equal passages stay equal neighbours whatever the order of the sums.
    near = np.clip(np.round(unit @ unit.T, 6), 0, None)
    np.fill_diagonal(near, 0)
    order = np.argsort(-near, axis=1, kind="stable")[:, count:]
    np.put_along_axis(near, order, 0, axis=1)
    total = near.sum(axis=1)
    mean = np.divide(near @ scores, total, out=scores.astype(np.float64), where=total > 0)
    return (1 - share) * scores + share * mean


def _scaled(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)

"""Late interaction: sums of maximum similarities between the token vectors of a query and of passages."""

from collections.abc import Sequence

import numpy as np

BACKWARD = 0.3
"""Weight of the way back, from the passage's tokens to the query's; chosen on the development sets."""


def maxsim(
    query: np.ndarray,
    passages: Sequence[np.ndarray],
    weights: np.ndarray | None = None,
    passage_weights: Sequence[np.ndarray] | None = None,
    backward: float = 0.0,
) -> np.ndarray:
    """Return float32 [n]: for each passage the weighted mean, over the query's tokens, of the best similarity.

    Khattab and Zaharia, "ColBERT", SIGIR 2020, as a mean instead of a sum, so that scores of long and short queries
    lie in one range. With `backward`, the weighted mean over the passage's tokens is added with that weight, and the
    whole is divided by 1 + backward.

    Args:
        query: float [q, d], vectors of length 1.
        passages: For each passage float [p, d], vectors of length 1, p at least 1.
        weights: float [q], 0 and up; all alike where None.
        passage_weights: float [p] for each passage; all alike where None.
        backward: Weight of the way back, 0 and up.
    """
    if not len(passages):
        return np.empty(0, np.float32)
    lengths = [len(passage) for passage in passages]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    similar = query @ np.concatenate(passages).T
    forward = _mean(np.maximum.reduceat(similar, starts, axis=1).T, weights)
    if not backward:
        return forward.astype(np.float32)
    back, ends = similar.max(axis=0), starts + lengths
    given = passage_weights or [None] * len(passages)
    parts = [float(_mean(back[a:b], w)) for a, b, w in zip(starts, ends, given, strict=True)]
    return ((forward + backward * np.array(parts)) / (1 + backward)).astype(np.float32)


def _mean(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the weighted mean over the last axis; the plain one where all weights are 0."""
    if weights is None or not weights.any():
        return values.mean(axis=-1)
    return values @ weights / weights.sum()

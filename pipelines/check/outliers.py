"""Texts that are far from all others."""

import numpy as np

from ..analysis.neighbours import neighbours, sample_rows

NEAREST = 10
REFERENCE = 20_000
"""Texts among which neighbours are found, at most."""
FEWEST = 30
"""Texts below which none is called an outlier."""
FAR = 3.5
"""How many robust standard deviations below the middle makes an outlier (Iglewicz and Hoaglin, "How to Detect and
Handle Outliers", 1993)."""
NORMAL = 1.4826
"""The median absolute deviation of a normal distribution times this is its standard deviation."""


def outliers(vectors: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts whose mean cosine to their nearest others is unusually low, most unusual first.

    Args:
        vectors: float32 [n, d], of length 1, all different.
        seed: Of the sample in which neighbours are found, if there are many texts.

    Returns:
        int64 [m] rows, and float64 [m], 1 minus that cosine: the higher, the farther.
    """
    if len(vectors) < FEWEST:
        return np.zeros(0, np.int64), np.zeros(0)
    rows = sample_rows(len(vectors), REFERENCE, seed)
    found, cosines = neighbours(vectors, vectors[rows], NEAREST + 1)
    others = rows[found] != np.arange(len(vectors))[:, None]
    # A text outside the sample has one neighbour more: the farthest is left out.
    others &= np.cumsum(others, axis=1) <= NEAREST
    near = np.where(others, cosines, 0).sum(axis=1, dtype=np.float64) / others.sum(axis=1)
    middle = np.median(near)
    spread = max(NORMAL * float(np.median(np.abs(near - middle))), 1e-6)
    far = np.flatnonzero(near < middle - FAR * spread)
    far = far[np.argsort(near[far], kind="stable")]
    return far, 1 - near[far]

"""The silhouette of a clustering under cosine distance, exactly and in linear time."""

import numpy as np


def silhouettes(vectors: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return float64 [n] silhouettes, -1 to 1, higher is better (Rousseeuw, J. Comput. Appl. Math. 20, 1987).

    The mean cosine distance to a cluster is one minus the product with the sum of its vectors, so no pair of vectors
    has to be compared.

    Args:
        vectors: float32 [n, d], of length 1.
        labels: int64 [n], the cluster of each; outliers (-1) get NaN and count for nobody else.
    """
    found = np.full(len(labels), np.nan)
    inside = np.flatnonzero(labels >= 0)
    numbers, own = np.unique(labels[inside], return_inverse=True)
    if len(numbers) < 2:
        found[inside] = 0.0
        return found
    sums = np.array([vectors[rows].sum(axis=0, dtype=np.float64) for rows in members(own, inside)])
    sizes = np.bincount(own).astype(float)
    for start in range(0, len(inside), 16_384):
        rows = inside[start : start + 16_384]
        found[rows] = _block(vectors[rows].astype(np.float64) @ sums.T, own[start : start + 16_384], sizes)
    return found


def members(own: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each group 0, 1, 2 … in their order; `own` holds each row's group."""
    order = np.argsort(own, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(own))[:-1])


def _block(products: np.ndarray, own: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    rows = np.arange(len(own))
    alone = sizes[own] <= 1
    within = 1 - (products[rows, own] - 1) / np.maximum(sizes[own] - 1, 1)
    distances = 1 - products / sizes
    distances[rows, own] = np.inf
    other = distances.min(axis=1)
    values = (other - within) / np.maximum(np.maximum(within, other), 1e-12)
    return np.where(alone, 0.0, values)

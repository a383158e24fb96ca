"""UMAP's graph of neighbours, its "fuzzy simplicial set" (McInnes, Healy and Melville, arXiv:1802.03426, section 3.1).

By NumPy: `umap.umap_.fuzzy_simplicial_set` gives the same (tests/test_umap_graph.py), but takes Numba about four
seconds to compile in each process; twenty thousand points with fifteen neighbours take a tenth of a second here.
"""

from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

HALVINGS = 64
TOLERANCE = 1e-5
LEAST = 1e-3
"""Of the mean distance to the neighbours, which a scale is at least."""


def fuzzy_graph(rows: np.ndarray, distances: np.ndarray) -> csr_matrix:
    """Return the strength, 0 to 1, with which points belong together.

    From a point, the strength falls from 1 at its nearest neighbour by exp(-distance / scale), with the scale at which
    the k strengths add up to log2(k); either point's view is enough (a + b - a b).

    Args:
        rows: int64 [n, k], the neighbours of each point, the nearest first, itself included.
        distances: float32 [n, k], 0 or more.

    Returns:
        Symmetric float32 [n, n], without a diagonal.
    """
    nearest = np.where(distances > 0, distances, np.inf).min(axis=1)
    nearest[np.isinf(nearest)] = 0
    beyond = np.maximum(distances - nearest[:, None], 0).astype(np.float64)
    means = np.where(nearest > 0, distances.mean(axis=1), distances.mean(dtype=np.float64))
    scales = np.maximum(_scales(beyond[:, 1:], np.log2(rows.shape[1])), LEAST * means)
    strengths = np.exp(-beyond / np.where(scales > 0, scales, 1)[:, None]).astype(np.float32)
    own = np.repeat(np.arange(len(rows)), rows.shape[1])
    others = rows.ravel() != own
    edges = (own[others], rows.ravel()[others])
    graph: Any = coo_matrix((strengths.ravel()[others], edges), shape=(len(rows), len(rows))).tocsr()
    return graph + graph.T - graph.multiply(graph.T)


def _scales(beyond: np.ndarray, total: float) -> np.ndarray:
    """Return float64 [n] by bisection: the sum of exp(-beyond / scale) over a row is the total, where it can be."""
    low, high, scales = np.zeros(len(beyond)), np.full(len(beyond), np.inf), np.ones(len(beyond))
    left = np.arange(len(beyond))
    for _ in range(HALVINGS):
        sums = np.exp(-beyond[left] / scales[left, None]).sum(axis=1)
        wrong = np.abs(sums - total) >= TOLERANCE
        left, large = left[wrong], sums[wrong] > total
        high[left[large]], low[left[~large]] = scales[left[large]], scales[left[~large]]
        open_ended = np.isinf(high[left])
        scales[left] = np.where(open_ended, 2 * scales[left], (low[left] + np.where(open_ended, 0, high[left])) / 2)
    return scales

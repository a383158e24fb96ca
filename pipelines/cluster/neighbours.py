"""Exact nearest neighbours among vectors of length 1, by FAISS, the same whatever the number of threads."""

from typing import Any

import numpy as np

from ...indexer.ann.exact import inner_products
from ...indexer.ann.library import faiss, has_gpu
from ...indexer.progress import Notify, Progress, silent

SPARE = 4
"""Candidates beyond those asked for, since FAISS rounds its sums otherwise and may swap near ties at the end."""
BLOCK = 4_096


def neighbours(
    queries: np.ndarray, vectors: np.ndarray, k: int, notify: Notify = silent
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k vectors of the largest cosine for each query.

    Args:
        queries: float32 [m, d], of length 1.
        vectors: float32 [n, d], of length 1.
        k: At most n are returned.
        notify: Receives progress.

    Returns:
        int64 [m, min(k, n)] rows of `vectors`, the nearest first and ties by row, and their float32 cosines,
        which are computed pair by pair in one order of summation.
    """
    k = min(k, len(vectors))
    index = _index(vectors)
    rows, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    for start in range(0, len(queries), BLOCK):
        some = np.ascontiguousarray(queries[start : start + BLOCK])
        found = index.search(some, min(k + SPARE, len(vectors)))[1]
        rows[start : start + BLOCK], cosines[start : start + BLOCK] = _ordered(some, vectors, found, k)
        notify(Progress("finding neighbours", min(start + BLOCK, len(queries)), len(queries), "texts"))
    return rows, cosines


def _index(vectors: np.ndarray) -> Any:
    module = faiss()
    index = module.IndexFlatIP(vectors.shape[1])
    if has_gpu():
        index = module.index_cpu_to_gpu(module.StandardGpuResources(), 0, index)
    index.add(np.ascontiguousarray(vectors))
    return index


def _ordered(queries: np.ndarray, vectors: np.ndarray, found: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    query = np.repeat(np.arange(len(queries)), found.shape[1])
    cosines = inner_products(queries, query, vectors, found.ravel()).reshape(found.shape)
    order = np.lexsort((found, -cosines), axis=1)[:, :k]
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(cosines, order, axis=1)

"""Exact nearest neighbours by FAISS, the same for any number of threads; places among them on a map.

On a GPU only the order of sums differs: cosines are computed on the CPU, and more candidates are taken than needed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np

from ...indexer.ann.devices import faiss, threads
from ...indexer.ann.exact import inner_products
from ...indexer.ann.gpu import MOST_CANDIDATES, Gpu, Scan, on_gpu
from ...indexer.progress import Notify, Progress, silent

SPARE = 4
"""Candidates beyond those asked for, since FAISS rounds its sums otherwise and may swap near ties at the end."""
BLOCK = 4_096
ROWS_AT_ONCE = 65_536


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
    vectors = np.ascontiguousarray(vectors)
    if min(k + SPARE, len(vectors)) > MOST_CANDIDATES:
        return _searched(_on_cpu(vectors), queries, vectors, k, notify)
    return on_gpu(
        "finding neighbours",
        lambda gpu: _searched(_on_gpu(gpu, vectors), queries, vectors, k, notify),
        lambda: _searched(_on_cpu(vectors), queries, vectors, k, notify),
    )


Search = Callable[[np.ndarray, int], np.ndarray]
"""The nearest rows, int64 [m, count], of float32 [m, d] queries."""


def _searched(
    search: Search, queries: np.ndarray, vectors: np.ndarray, k: int, notify: Notify
) -> tuple[np.ndarray, np.ndarray]:
    rows, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    for start in range(0, len(queries), BLOCK):
        some = np.ascontiguousarray(queries[start : start + BLOCK])
        found = search(some, min(k + SPARE, len(vectors)))
        rows[start : start + BLOCK], cosines[start : start + BLOCK] = _ordered(some, vectors, found, k)
        notify(Progress("finding neighbours", min(start + BLOCK, len(queries)), len(queries), "texts"))
    return rows, cosines


def _on_cpu(vectors: np.ndarray) -> Search:
    index = faiss().IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return lambda queries, count: index.search(queries, count)[1]


def _on_gpu(gpu: Gpu, vectors: np.ndarray) -> Search:
    scan = Scan(gpu, vectors.shape[1], half=False)
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        scan.add(vectors[start : start + ROWS_AT_ONCE])

    def search(queries: np.ndarray, count: int) -> np.ndarray:
        found = scan.search(queries, count)
        assert found is not None  # it returns that many
        return found.nodes

    return search


def products(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the inner products of all pairs, float32 [n, m], on the GPU if there is one."""
    return on_gpu("comparing vectors", lambda gpu: gpu.products(some, others), lambda: some @ others.T)


def _ordered(queries: np.ndarray, vectors: np.ndarray, found: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    query = np.repeat(np.arange(len(queries)), found.shape[1])
    cosines = inner_products(queries, query, vectors, found.ravel()).reshape(found.shape)
    order = np.lexsort((found, -cosines), axis=1)[:, :k]
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(cosines, order, axis=1)


AMONG = 10
"""Neighbours that decide where a text is placed that the map was not fitted on."""
SHARPNESS = 20.0
"""A neighbour whose cosine is lower by 0.05 weighs less by a factor of e."""
PLACES_BLOCK = 16_384
TWIN = 1 - 1e-6
"""A cosine from which on two texts count as the same, and get the same place."""


def sample_rows(count: int, most: int, seed: int) -> np.ndarray:
    """Return int64 rows, ascending: all of them, or `most` drawn without replacement."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False))


def place(queries: np.ndarray, vectors: np.ndarray, places: np.ndarray, notify: Notify = silent) -> np.ndarray:
    """Return where texts go on a map that stays as it is.

    A text is placed at the mean of its nearest neighbours' places, weighted by similarity. Where they lie in several
    parts of the map, those around the one in the middle count: the mean of two islands would be a place between them
    where nothing is.

    Args:
        queries: float32 [m, d], of length 1.
        vectors: float32 [n, d] with a place, of length 1; n is 1 or more.
        places: float [n, 2], theirs.
        notify: Receives progress.

    Returns:
        float32 [m, 2].
    """
    if not len(queries):
        return np.zeros((0, 2), np.float32)
    rows, cosines = neighbours(queries, vectors, AMONG, notify)
    blocks = range(0, len(queries), PLACES_BLOCK)
    return np.concatenate(
        [_among(places[rows[at : at + PLACES_BLOCK]], cosines[at : at + PLACES_BLOCK]) for at in blocks]
    )


def _among(around: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    """Return places float32 [m, 2] among those of neighbours, float [m, k, 2], with their cosines, [m, k]."""
    around = around.astype(np.float64)
    weights = np.exp(SHARPNESS * (cosines.astype(np.float64) - cosines[:, :1]))
    weights[cosines[:, 0] >= TWIN, 1:] = 0
    apart = np.linalg.norm(around[:, :, None] - around[:, None], axis=3)
    middle = (apart * weights[:, None]).sum(axis=2).argmin(axis=1)
    from_middle = np.take_along_axis(apart, middle[:, None, None], axis=1)[:, 0]
    near = from_middle <= np.median(from_middle, axis=1, keepdims=True)
    weights = np.where(near, weights, 0)
    return ((around * weights[:, :, None]).sum(axis=1) / weights.sum(axis=1, keepdims=True)).astype(np.float32)


_ONE_AT_A_TIME = RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block with one thread in FAISS, BLAS and OpenMP, so that a result does not depend on their number.

    Numba keeps its threads: the layout (`umap.py`) takes all of them and is the same for any number.
    Limits hold for the whole process, so blocks of several threads wait for each other.
    """
    import numpy  # noqa: F401  # loaded before limits are set, as is FAISS: a library loaded later would not have them
    from threadpoolctl import threadpool_limits

    faiss()
    with _ONE_AT_A_TIME, threads(1), threadpool_limits(1):
        yield

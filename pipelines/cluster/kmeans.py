"""Spherical KMeans: directions around which the vectors gather (Dhillon and Modha, Machine Learning 42, 2001).

Seeds are drawn by greedy k-means++ (Arthur and Vassilvitskii, SODA 2007), FAISS moves them, and the best of several
restarts is kept. Everything runs in one thread: the sums, and with them the clusters, then do not
depend on the number of threads. A GPU adds in a different order each time, so clusters may differ slightly.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.ann.devices import faiss
from ...indexer.ann.gpu import Gpu, on_gpu
from ..analysis.neighbours import one_thread, products

ROUNDS = 25
POINTS_PER_CENTROID = 256
"""FAISS learns a centroid from at most this many vectors on average; more change little."""
SEEDING = 64
"""Vectors per centroid that the seeds are drawn from."""
TRIALS = 3
BLOCK = 16_384


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit.

    Attributes:
        centroids: float32 [k, d], of length 1.
        labels: int64 [n], the cluster of each vector.
        cosines: float32 [n], of each vector to its centroid.
    """

    centroids: np.ndarray
    labels: np.ndarray
    cosines: np.ndarray

    @property
    def objective(self) -> float:
        """The mean cosine of a vector to its centroid; higher is better."""
        return float(self.cosines.mean(dtype=np.float64))


def fit_kmeans(vectors: np.ndarray, k: int, seed: int, restarts: int = 1) -> Fitted:
    """Return the best of several fits of k clusters to float32 [n, d] vectors of length 1; k is at most n.

    Clusters are numbered by size, the largest first. None is empty as long as there are k distinct vectors.
    """
    with one_thread():
        found = [fit_from(vectors, seeds(vectors, k, seed + start), seed + start) for start in range(restarts)]
    best = max(found, key=lambda fitted: fitted.objective)
    return best if k == 1 else clusters_by_size(best)


def seeds(vectors: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return float32 [k, d] vectors drawn by greedy k-means++; the first j of them are those for j clusters."""
    random = np.random.default_rng(seed)
    size = min(len(vectors), max(SEEDING * k, BLOCK))
    some = vectors[np.sort(random.choice(len(vectors), size, replace=False))] if size < len(vectors) else vectors
    chosen = [int(random.integers(size))]
    best = some @ some[chosen[0]]
    for _ in range(1, k):
        away = np.maximum(1 - best, 0).astype(np.float64)
        away[chosen] = 0
        sums = np.cumsum(away)
        if sums[-1] <= 0:  # nothing is left but copies: any that is not chosen yet
            away[:] = 1
            away[chosen] = 0
            sums = np.cumsum(away)
        drawn = np.minimum(np.searchsorted(sums, random.random(TRIALS) * sums[-1], side="right"), size - 1)
        after = np.maximum(some @ some[drawn].T, best[:, None])
        place = int(after.sum(axis=0).argmax())
        chosen.append(int(drawn[place]))
        best = after[:, place]
    return some[chosen]


def fit_from(vectors: np.ndarray, start: np.ndarray, seed: int, rounds: int = ROUNDS) -> Fitted:
    """Return the fit that FAISS reaches from the given centroids, float32 [k, d]."""
    vectors, start = np.ascontiguousarray(vectors), np.ascontiguousarray(start)
    centroids = on_gpu(
        "KMeans",
        lambda gpu: _moved(vectors, start, seed, rounds, gpu),
        lambda: _moved(vectors, start, seed, rounds, None),
    )
    return Fitted(centroids, *nearest(vectors, centroids))


def _moved(vectors: np.ndarray, start: np.ndarray, seed: int, rounds: int, gpu: Gpu | None) -> np.ndarray:
    """Return the centroids that FAISS moves `start` to, float32 [k, d]."""
    module, dimension = faiss(), vectors.shape[1]
    settings: Any = module.ClusteringParameters()
    settings.niter, settings.seed, settings.spherical = rounds, seed, True
    settings.min_points_per_centroid, settings.max_points_per_centroid = 1, POINTS_PER_CENTROID
    clustering = module.Clustering(dimension, len(start), settings)
    module.copy_array_to_vector(start.ravel(), clustering.centroids)
    clustering.train(vectors, gpu.flat(dimension, half=False) if gpu else module.IndexFlatIP(dimension))
    return module.vector_float_to_array(clustering.centroids).reshape(start.shape).astype(np.float32)


def nearest(vectors: np.ndarray, centroids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest centroid of each vector, int64 [n], and its cosine, float32 [n]; ties go to the first."""
    labels, cosines = np.empty(len(vectors), np.int64), np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), BLOCK):
        some = slice(start, start + BLOCK)
        found = products(vectors[some], centroids)
        labels[some] = found.argmax(axis=1)
        cosines[some] = np.take_along_axis(found, labels[some, None], axis=1)[:, 0]
    return labels, cosines


def clusters_by_size(fitted: Fitted) -> Fitted:
    """Return the same clusters without empty ones, the largest first; equal ones in the order of their first vector."""
    k = len(fitted.centroids)
    sizes = np.bincount(fitted.labels, minlength=k)
    first = np.full(k, len(fitted.labels))
    np.minimum.at(first, fitted.labels, np.arange(len(fitted.labels)))
    order = np.lexsort((first, -sizes))[: int((sizes > 0).sum())]
    numbers = np.zeros(k, np.int64)
    numbers[order] = np.arange(len(order))
    return Fitted(fitted.centroids[order], numbers[fitted.labels], fitted.cosines)

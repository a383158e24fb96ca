"""KMeans by Euclidean distance: greedy k-means++ seeds (Arthur and Vassilvitskii, SODA 2007) and Lloyd's rounds.

`scikit-learn.cluster.KMeans(k, n_init=1, max_iter=20, random_state=seed)` gives the same clusters. The chances of "none
of these" were fitted to them.
"""

import numpy as np

ROUNDS = 20
STILL = 1e-4
"""The centres have settled when they move less than this share of the texts' mean variance."""


def fit_kmeans(vectors: np.ndarray, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k centres, float32 [k, d], and the number of the nearest one of each of float32 [n, d] vectors."""
    middle = vectors.mean(axis=0)
    vectors = vectors - middle
    centres = _seeds(vectors, k, np.random.RandomState(seed))
    enough, before = STILL * float(vectors.var(axis=0).mean()), np.full(len(vectors), -1)
    for _ in range(ROUNDS):
        labels = nearest(vectors, centres)[0]
        old, centres = centres, _means(vectors, labels, centres)
        if np.array_equal(labels, before):
            return centres + middle, labels
        if float(((centres - old) ** 2).sum()) <= enough:
            break
        before = labels
    return centres + middle, nearest(vectors, centres)[0]


def nearest(vectors: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each vector's nearest centre, int64 [n], and its squared distance, float32 [n]."""
    distances = (centres**2).sum(axis=1) - 2 * (vectors @ centres.T)
    labels = distances.argmin(axis=1)
    return labels, np.maximum(distances[np.arange(len(labels)), labels] + np.einsum("nd,nd->n", vectors, vectors), 0)


def _seeds(vectors: np.ndarray, k: int, random: np.random.RandomState) -> np.ndarray:
    exact, trials, every = vectors.astype(np.float64), 2 + int(np.log(k)), np.ones(len(vectors), np.float32)
    squares = np.einsum("nd,nd->n", exact, exact)

    def away(rows: np.ndarray) -> np.ndarray:
        found = squares[rows, None] + squares - 2 * (exact[rows] @ exact.T)
        return np.maximum(found, 0).astype(np.float32)

    chosen = [int(random.choice(len(vectors), p=every / every.sum()))]
    closest = away(np.array(chosen))[0]
    total = closest @ every
    for _ in range(1, k):
        drawn = np.searchsorted(np.cumsum(closest), random.uniform(size=trials) * total)
        drawn = np.minimum(drawn, len(vectors) - 1)
        after = np.minimum(closest, away(drawn))
        totals = after @ every
        best = int(totals.argmin())
        chosen.append(int(drawn[best]))
        closest, total = after[best], totals[best]
    return vectors[chosen]


def _means(vectors: np.ndarray, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the mean of each centre's vectors; a centre without any gets the vector that is farthest from its own."""
    sizes = np.bincount(labels, minlength=len(centres)).astype(np.float32)
    sums = np.zeros_like(centres)
    filled = np.flatnonzero(sizes)
    starts = np.searchsorted(np.sort(labels), filled)
    sums[filled] = np.add.reduceat(vectors[np.argsort(labels, kind="stable")], starts, axis=0)
    empty = np.flatnonzero(sizes == 0)
    far = ((vectors - centres[labels]) ** 2).sum(axis=1)
    if len(empty) and far.any():
        for centre, row in zip(empty, np.argsort(-far, kind="stable"), strict=False):
            sums[labels[row]] -= vectors[row]
            sizes[labels[row]] -= 1
            sums[centre], sizes[centre] = vectors[row], 1
    return sums / np.maximum(sizes, 1)[:, None]

"""Which texts to ask the judge about: some spread over the vector space, then those that are least clear."""

import numpy as np

from ...indexer.document_vectors import normalized

CENTRES = 256
LEARN_FROM = 20_000


def spread(vectors: np.ndarray, count: int, rng: np.random.Generator, without: np.ndarray) -> np.ndarray:
    """Return int64 [count] texts spread over the vector space: the nearest ones to k-means centres, in turns.

    Args:
        vectors: float32 [n, d].
        count: How many; fewer where there are not as many.
        rng: Decides the order inside a cluster's turn and the start of k-means.
        without: int64, texts to leave out.
    """
    from sklearn.cluster import KMeans

    free = np.setdiff1d(np.arange(len(vectors)), without)
    if count >= len(free):
        return free
    texts = normalized(vectors[free])
    some = texts if len(texts) <= LEARN_FROM else texts[rng.choice(len(texts), LEARN_FROM, replace=False)]
    centres = min(count, CENTRES, len(some))
    means = KMeans(centres, n_init="auto", max_iter=20, random_state=int(rng.integers(2**31))).fit(some)
    cluster, distance = means.predict(texts), means.transform(texts).min(axis=1)
    # The first turn takes each cluster's nearest text, the second each one's next, and so on.
    order = np.lexsort((distance, cluster))
    sizes = np.bincount(cluster, minlength=centres)
    turn = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(free[order[np.lexsort((rng.random(len(order)), turn))[:count]]])


def unsure(shares: np.ndarray, count: int, rng: np.random.Generator, without: np.ndarray) -> np.ndarray:
    """Return int64 [count] texts whose label is least clear, picked at random among three times as many.

    Args:
        shares: float [n, labels], probabilities.
        count: How many; fewer where there are not as many.
        rng: Picks among the unclear ones, so that they are not all of one kind.
        without: int64, texts to leave out.
    """
    free = np.setdiff1d(np.arange(len(shares)), without)
    if count >= len(free):
        return free
    best = np.sort(shares[free], axis=1)
    clear = best[:, -1] - best[:, -2] if shares.shape[1] > 1 else np.abs(best[:, 0] - 0.5)
    pool = free[np.argsort(clear, kind="stable")[: 3 * count]]
    return np.sort(rng.choice(pool, count, replace=False))

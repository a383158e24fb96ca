"""How far two labellings of the same texts agree."""

import numpy as np

AGREEMENT = ("nmi", "ari", "v_measure", "purity")


def agreement(classes: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return nmi, ari, v_measure and purity of two labellings, int64 [n] each; -1 is a cluster like any other.

    nmi is normalised by the arithmetic mean of the entropies, which makes it the same as the V-measure.
    """
    (first, second), shared = _table(classes, labels)
    rows, columns = np.bincount(first, shared), np.bincount(second, shared)
    best = np.zeros(len(columns))
    np.maximum.at(best, second, shared)
    share = shared / len(classes)
    information = max(float((share * np.log(shared * len(classes) / (rows[first] * columns[second]))).sum()), 0.0)
    entropies = _entropy(rows) + _entropy(columns)
    nmi = 2 * information / entropies if entropies else 1.0
    values = (nmi, adjusted_rand(classes, labels), nmi, float(best.sum() / len(classes)))
    return dict(zip(AGREEMENT, values, strict=True))


def adjusted_rand(classes: np.ndarray, labels: np.ndarray) -> float:
    """Return how many pairs of texts both labellings treat alike, corrected for chance (Hubert and Arabie, 1985)."""
    (first, second), shared = _table(classes, labels)
    pairs = float(len(classes) * (len(classes) - 1))
    sizes = (shared, np.bincount(first, shared), np.bincount(second, shared))
    both, one, other = (float((part * (part - 1)).sum()) for part in sizes)
    if both == one == other:
        return 1.0
    by_chance = one * other / pairs
    return (both - by_chance) / ((one + other) / 2 - by_chance)


def _table(classes: np.ndarray, labels: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the pairs of a class and a label that occur, numbered from 0, and how many texts have each."""
    first, second = (np.unique(part, return_inverse=True)[1] for part in (classes, labels))
    width = int(second.max(initial=0)) + 1
    cells, sizes = np.unique(first * width + second, return_counts=True)
    return np.divmod(cells, width), sizes


def _entropy(sizes: np.ndarray) -> float:
    shares = sizes / sizes.sum()
    return -float((shares * np.log(shares)).sum())

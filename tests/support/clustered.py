"""Vectors as texts of a few topics lie, and the naive scan that every vector index is compared with."""

import numpy as np

from sonde.indexer.ann import ArraySource, Kind

KINDS: tuple[Kind, ...] = ("exact", "hnsw", "hnsw-sq8", "ivf", "ivf-sq8", "ivf-fastscan", "ivf-rabitq")
DIMENSION = 32


def clustered(rows: int, dimension: int = DIMENSION, seed: int = 0) -> np.ndarray:
    """Unit vectors around 30 centres, as texts of a few topics lie."""
    centres = np.random.default_rng(99).standard_normal((30, dimension))
    random = np.random.default_rng(seed)
    points = centres[random.integers(30, size=rows)] + 0.8 * random.standard_normal((rows, dimension))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def stored(vectors: np.ndarray) -> ArraySource:
    return ArraySource(vectors.astype(np.float16))


def naive(source: ArraySource, queries: np.ndarray, k: int, allowed: np.ndarray | None = None):
    """The best k rows by float64 products, ties by row."""
    rows = np.arange(len(source)) if allowed is None else np.flatnonzero(allowed)
    scores = queries.astype(np.float64) @ source.half[rows].astype(np.float64).T
    order = [np.lexsort((rows, -row))[:k] for row in scores]
    return np.array([s[o] for s, o in zip(scores, order, strict=True)]), np.array([rows[o] for o in order])

"""UMAP, seeded and fed with exact neighbours (McInnes, Healy and Melville, arXiv:1802.03426).

A seeded UMAP runs in one thread. Of its time the most would go into looking for neighbours, which FAISS finds exactly
and in all threads, into the layout, which is ours (`layout.py`), and in a new process into compiling, which its graph
of neighbours here does without (`graph.py`). Where points begin is left to the functions below `umap.UMAP`.
"""

from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from .graph import fuzzy_graph
from .layout import arrange
from .neighbours import neighbours as nearest_neighbours
from .threads import one_thread

LARGE = 10_000
EPOCHS, EPOCHS_LARGE = 500, 200
"""Rounds of the layout up to `LARGE` points and beyond: UMAP's own."""
FEW = 4
"""UMAP starts from eigenvectors of the graph; below so many points per dimension, from chance."""


def project(
    vectors: np.ndarray,
    dimensions: int,
    seed: int,
    *,
    neighbours: int = 15,
    spread_out: float = 0.0,
    nearest: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Return float32 [n, dimensions] places in which near vectors are near.

    The same vectors, settings and versions give the same places, in any process and with any number of threads.

    Args:
        vectors: float32 [n, d], of length 1, best all distinct.
        dimensions: 2 and up.
        seed: Of the start and of the layout.
        neighbours: Neighbours of each vector in the graph, itself included; fewer look at finer structure.
        spread_out: Least distance between places (UMAP's `min_dist`): 0 packs clusters tightly, 0.1 suits a map.
        nearest: What `nearest_neighbours(vectors, vectors, neighbours)`, or more of them, gave, where that is known.

    Raises:
        MissingExtraError: umap-learn is not installed.
    """
    count = min(neighbours, len(vectors))
    if len(vectors) <= dimensions + 1:
        return _few(vectors, dimensions)
    rows, cosines = nearest or nearest_neighbours(vectors, vectors, count)
    rows, cosines = rows[:, :count], cosines[:, :count]
    distances = np.maximum(1 - cosines, 0).astype(np.float32)
    with one_thread():
        return _layout(vectors, dimensions, seed, spread_out, rows, distances)


def umap() -> Any:
    """The module umap.umap_; MissingExtraError where it is not installed."""
    try:
        from umap import umap_
    except ImportError as error:
        raise MissingExtraError("umap-learn", "cluster", "reducing vectors to a few dimensions") from error
    return umap_


def _layout(
    vectors: np.ndarray, dimensions: int, seed: int, spread_out: float, rows: np.ndarray, distances: np.ndarray
) -> np.ndarray:
    module, random = umap(), np.random.RandomState(seed)
    a, b = module.find_ab_params(1.0, spread_out)
    start = "spectral" if len(vectors) > FEW * dimensions + rows.shape[1] else "random"
    graph = fuzzy_graph(rows, distances)
    places = module.simplicial_set_embedding(  # of no epochs: where UMAP would start
        vectors, graph, dimensions, 1.0, a, b, 1.0, 5, 0, start, random, "cosine", {}, False, {}, False,
        parallel=False, verbose=False,
    )[0]  # fmt: skip
    return arrange(places, graph, a, b, EPOCHS if len(vectors) <= LARGE else EPOCHS_LARGE, seed)


def _few(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Return the main directions of a handful of vectors, for which UMAP has no neighbours."""
    found = np.zeros((len(vectors), dimensions), np.float32)
    if len(vectors) > 1:
        left, strengths, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
        kept = min(dimensions, len(strengths))
        found[:, :kept] = left[:, :kept] * strengths[:kept]
    return found

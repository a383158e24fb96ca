"""Where texts lie on the map: fitted by UMAP on a sample, the others placed among their neighbours in it."""

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.wording import counted
from ..cluster.neighbours import neighbours
from ..cluster.projection import project
from .settings import MapSettings

AMONG = 10
"""Neighbours that decide where a text is placed that the map was not fitted on."""
SHARPNESS = 20.0
"""A neighbour whose cosine is lower by 0.05 weighs less by a factor of e."""
BLOCK = 16_384
TWIN = 1 - 1e-6
"""A cosine from which on two texts count as the same, and get the same place."""


def sample_rows(count: int, most: int, seed: int) -> np.ndarray:
    """Return int64 rows, ascending: all of them, or `most` drawn without replacement."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False))


def fit_places(vectors: np.ndarray, settings: MapSettings, notify: Notify = silent) -> tuple[np.ndarray, np.ndarray]:
    """Lay out vectors on the map.

    Args:
        vectors: float32 [n, d], of length 1, best all distinct.
        settings: The map's.
        notify: Receives progress.

    Returns:
        float32 [n, 2] places, and the int64 rows of the vectors that the map was fitted on.
    """
    chosen = sample_rows(len(vectors), settings.sample, settings.seed)
    notify(f"laying out {counted(len(chosen), 'text')}")
    fitted = project(
        vectors[chosen], 2, settings.seed, neighbours=settings.neighbours, spread_out=settings.spread_out
    )  # fmt: skip
    places = np.empty((len(vectors), 2), np.float32)
    places[chosen] = fitted
    others = np.setdiff1d(np.arange(len(vectors)), chosen, assume_unique=True)
    places[others] = place(vectors[others], vectors[chosen], fitted, notify)
    return places, chosen


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
    blocks = range(0, len(queries), BLOCK)
    return np.concatenate([_among(places[rows[at : at + BLOCK]], cosines[at : at + BLOCK]) for at in blocks])


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

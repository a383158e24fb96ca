"""EVoC's layers: dense groups of vectors at several grains, each with its persistence.

EVoC (McInnes, https://github.com/TutteInstitute/evoc) embeds a graph of neighbours in a few dimensions and cuts one
density tree at the sizes of group that persist longest. Its result depends on the number of Numba's threads, and with
several it differs from run to run, so it runs in one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from ..analysis.describe import centroids
from ..analysis.neighbours import one_thread, sample_rows
from ..cluster.kmeans import nearest

FEWEST = 30
"""Vectors below which there are no layers: EVoC's graph has 15 neighbours of each."""
SAMPLE = 20_000
"""Vectors that EVoC reads, at most: its time grows with them, 5 to 11 s for this many on one core."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Groups at one grain.

    Attributes:
        means: float32 [k, d], of length 1: the direction of each group.
        persistence: How long groups of this size stay the same as the smallest size grows; higher is better, 0 for the
            finest layer, whose persistence EVoC does not measure.
    """

    means: np.ndarray
    persistence: float

    @property
    def k(self) -> int:
        """How many groups there are."""
        return len(self.means)

    def labels(self, vectors: np.ndarray) -> np.ndarray:
        """Return the group of each vector, int64 [n]: the one with the nearest mean, so that there are no outliers."""
        with one_thread():
            return nearest(vectors, self.means)[0]


def evoc_layers(vectors: np.ndarray, seed: int) -> list[Layer]:
    """Return the layers of at least two groups, the finest first; none for fewer than 30 vectors.

    Args:
        vectors: float32 [n, d], of length 1, all different.
        seed: Of EVoC, and of the sample of 20,000 that it reads of more.

    Raises:
        MissingExtraError: EVoC is not installed.
    """
    if len(vectors) < FEWEST:
        return []
    some = vectors[sample_rows(len(vectors), SAMPLE, seed)]
    with one_thread(), _one_numba_thread():
        fitted = _evoc().EVoC(random_state=seed).fit(some)
    found = []
    for labels, persistence in zip(fitted.cluster_layers_, fitted.persistence_scores_, strict=True):
        count = int(labels.max(initial=-1)) + 1
        if count > 1:
            found.append(Layer(centroids(some, labels.astype(np.int64), count), float(persistence)))
    return found


def _evoc() -> Any:
    try:
        import evoc
    except ImportError as error:
        raise MissingExtraError("EVoC", "topics", "levels of topics") from error
    return evoc


@contextmanager
def _one_numba_thread() -> Iterator[None]:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)

"""EVoC's layers: dense groups of vectors at several grains, each with its persistence.

EVoC (McInnes, https://github.com/TutteInstitute/evoc) embeds a graph of neighbours in a few dimensions and cuts one
density tree at the sizes of group that persist longest. Its result depends on the number of Numba's threads, and with
several it differs from run to run, so it runs in one.

Importing EVoC compiles its search for neighbours three times, for float32, int8 and binary embeddings: a third of the
minutes that the first `sonde topics` on a machine takes. Sonde's embeddings are float32, so the rest is left out.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from ..analysis.describe import centroids
from ..analysis.neighbours import one_thread, sample_rows
from ..cluster.choice import FEW
from ..cluster.kmeans import nearest

FEWEST = 30
"""Vectors below which there are no layers: EVoC's graph has 15 neighbours of each."""
SAMPLE = 20_000
"""Vectors that EVoC reads, at most: its time grows with them, 5 to 11 s for this many on one core."""

REFITS, AGAIN = 2, 5_000
"""Further fits that persistence is measured with, and the vectors that each reads, at most."""

UNUSED = ("evoc.int8_nndescent", "evoc.uint8_nndescent")
_one_import = Lock()


@dataclass(frozen=True, slots=True)
class Layer:
    """Groups at one grain.

    Attributes:
        means: float32 [k, d], of length 1: the direction of each group.
        persistence: How long groups of this size stay the same as the minimum size grows; higher is better, 0 for the
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


def evoc_layers(vectors: np.ndarray, seed: int, most: int = SAMPLE) -> list[Layer]:
    """Return the layers of at least two groups, the finest first; none for fewer than 30 vectors.

    Args:
        vectors: float32 [n, d], of length 1, all different.
        seed: Of EVoC and of the sample.
        most: Vectors that EVoC reads; a sample of more.

    Raises:
        MissingExtraError: EVoC is not installed.
    """
    if len(vectors) < FEWEST:
        return []
    some = vectors[sample_rows(len(vectors), most, seed)]
    evoc = _evoc()
    with one_thread(), _one_numba_thread(), _flat_loops():
        fitted = evoc.EVoC(random_state=seed).fit(some)
    found = []
    for labels, persistence in zip(fitted.cluster_layers_, fitted.persistence_scores_, strict=True):
        count = int(labels.max(initial=-1)) + 1
        if count > 1:
            found.append(Layer(centroids(some, labels.astype(np.int64), count), float(persistence)))
    return found


def persistent_size(vectors: np.ndarray, layers: Sequence[Layer], seed: int) -> int:
    """Return how many groups the most persistent layer has: the median over three fits with different seeds.

    One fit is not enough: on 1,716 texts, two layers differed by 0.5 % in persistence, and last digits decided. The
    other two fits read at most 5,000 texts. Layers of two or three groups count only if there is no other.

    Args:
        vectors: float32 [n, d], of length 1, all different.
        layers: Of the first fit; at least one.
        seed: Of the first fit.
    """
    fits = [layers, *(evoc_layers(vectors, seed + 1 + number, AGAIN) for number in range(REFITS))]
    tops = [max((each for each in fit if each.k > FEW), key=_persistence, default=None) for fit in fits]
    return int(np.median([top.k for top in tops if top] or [layers[0].k]))


def _persistence(layer: Layer) -> float:
    return layer.persistence


def _evoc() -> Any:
    try:
        return lean_evoc()
    except ImportError as error:
        raise MissingExtraError("EVoC", "topics", "levels of topics") from error


@contextmanager
def _one_numba_thread() -> Iterator[None]:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def _flat_loops() -> Iterator[None]:
    """Keep EVoC from parallel loops inside parallel loops, in which one thread has nothing to gain.

    Where Numba has neither OpenMP nor TBB, as in a container without libgomp, such a loop ends the process.
    """
    import evoc.float_nndescent as search

    before = search.ENABLE_NESTED_PARALLELISM
    search.ENABLE_NESTED_PARALLELISM = False
    try:
        yield
    finally:
        search.ENABLE_NESTED_PARALLELISM = before


def lean_evoc() -> ModuleType:
    """Return the module `evoc`, whole for everybody: what was left out is compiled when somebody calls it.

    Raises:
        ImportError: It is not installed.
    """
    with _one_import, _placeholders():
        return import_module("evoc")


@contextmanager
def _placeholders() -> Iterator[None]:
    """Let modules that are imported meanwhile take functions from placeholders for the unused modules."""
    placeholders = {name: _Placeholder(name) for name in UNUSED if name not in sys.modules}
    sys.modules.update(placeholders)
    try:
        yield
    finally:
        for name in placeholders:
            del sys.modules[name]


class _Placeholder(ModuleType):
    """A module of functions that import the real module of this name when they are called."""

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if function.startswith("__"):
            raise AttributeError(function)

        def call(*args: Any, **options: Any) -> Any:
            return getattr(import_module(self.__name__), function)(*args, **options)

        return call

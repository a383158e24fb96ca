"""UMAP, seeded, from exact neighbours: graph and layout (McInnes, Healy and Melville, arXiv:1802.03426)."""

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.errors import MissingExtraError, need
from .cuml import has_cuml, project_with_cuml, with_cuml
from .neighbours import neighbours as nearest_neighbours
from .neighbours import one_thread

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FITTED_ON = 50_000
"""Documents that a map or a density clustering is fitted on, at most; the rest is placed or assigned."""
HALVINGS = 64
TOLERANCE = 1e-5
LEAST = 1e-3
"""Of the mean distance to the neighbours, which a scale is at least."""


def fuzzy_graph(rows: np.ndarray, distances: np.ndarray) -> "csr_matrix":
    """Return the strength, 0 to 1, with which points belong together.

    From a point, the strength falls from 1 at its nearest neighbour by exp(-distance / scale), with the scale at which
    the k strengths add up to log2(k); either point's view is enough (a + b - a b).

    Args:
        rows: int64 [n, k], the neighbours of each point, the nearest first, itself included.
        distances: float32 [n, k], 0 or more.

    Returns:
        Symmetric float32 [n, n], without a diagonal.
    """
    from scipy.sparse import coo_matrix

    nearest = np.where(distances > 0, distances, np.inf).min(axis=1)
    nearest[np.isinf(nearest)] = 0
    beyond = np.maximum(distances - nearest[:, None], 0).astype(np.float64)
    means = np.where(nearest > 0, distances.mean(axis=1), distances.mean(dtype=np.float64))
    scales = np.maximum(_scales(beyond[:, 1:], np.log2(rows.shape[1])), LEAST * means)
    strengths = np.exp(-beyond / np.where(scales > 0, scales, 1)[:, None]).astype(np.float32)
    own = np.repeat(np.arange(len(rows)), rows.shape[1])
    others = rows.ravel() != own
    edges = (own[others], rows.ravel()[others])
    graph: Any = coo_matrix((strengths.ravel()[others], edges), shape=(len(rows), len(rows))).tocsr()
    return graph + graph.T - graph.multiply(graph.T)


def _scales(beyond: np.ndarray, total: float) -> np.ndarray:
    """Return float64 [n] by bisection: the sum of exp(-beyond / scale) over a row is the total, where it can be."""
    low, high, scales = np.zeros(len(beyond)), np.full(len(beyond), np.inf), np.ones(len(beyond))
    left = np.arange(len(beyond))
    for _ in range(HALVINGS):
        sums = np.exp(-beyond[left] / scales[left, None]).sum(axis=1)
        wrong = np.abs(sums - total) >= TOLERANCE
        left, large = left[wrong], sums[wrong] > total
        high[left[large]], low[left[~large]] = scales[left[large]], scales[left[~large]]
        open_ended = np.isinf(high[left])
        scales[left] = np.where(open_ended, 2 * scales[left], (low[left] + np.where(open_ended, 0, high[left])) / 2)
    return scales


AGAIN = 50
"""After this many steps the other way is tried again."""
WEIGHT = 0.3
"""Of the last step in the time that one is expected to take."""


class ThreadPace:
    """Tells for each step how many threads to take, one or all, and learns from the seconds that it took."""

    def __init__(self, threads: int, clock: Callable[[], float] = perf_counter) -> None:
        self.threads = threads
        self.clock = clock
        self.seconds: dict[int, float] = {}
        self.steps = 0

    def run(self, step: Callable[[int], None]) -> None:
        """Do a step with the number of threads that it is given."""
        threads = self._next()
        began = self.clock()
        step(threads)
        taken = self.clock() - began
        before = self.seconds.get(threads, taken)
        self.seconds[threads] = taken if self._trial() else before + WEIGHT * (taken - before)
        self.steps += 1

    def _next(self) -> int:
        untried = [threads for threads in (self.threads, 1) if threads not in self.seconds]
        if untried:
            return untried[0]
        best = min(self.seconds, key=self.seconds.__getitem__)
        return next((one for one in self.seconds if one != best), best) if self._trial() else best

    def _trial(self) -> bool:
        return self.steps % AGAIN == 0


def arrange(start: np.ndarray, graph: Any, a: float, b: float, rounds: int, seed: int) -> np.ndarray:
    """Move points until neighbours in a graph are near and others are not (McInnes, Healy, Melville, arXiv:1802.03426).

    Args:
        start: float32 [n, dimensions], where the points begin.
        graph: Symmetric scipy matrix [n, n] of the weights of edges, 0 to 1.
        a: Of the curve 1 / (1 + a d^2b) that a weight is to follow at the distance d.
        b: The same.
        rounds: Each edge pulls in a share of the rounds that is its weight, of the largest.
        seed: Of which points push.

    Returns:
        float32 [n, dimensions].
    """
    import numba

    from .umap_moves import turn

    places = np.array(start, np.float32, order="C")
    starts, ends, every = _edges(graph, rounds)
    state = (places, places.copy(), places.copy(), starts, ends, every, every.copy(), *_forces(a, b))
    axes, before = (0,) * places.shape[1], numba.get_num_threads()
    turn(*state, axes, 0, 0, np.uint64(seed))  # compiles or loads it, so that no round is timed with that
    pace = ThreadPace(before)
    try:
        for number in range(rounds):
            pace.run(lambda threads, number=number: _turn(threads, *state, axes, number, rounds, np.uint64(seed)))
    finally:
        numba.set_num_threads(before)
    return places


def _turn(threads: int, *arguments: Any) -> None:
    import numba

    from .umap_moves import turn

    numba.set_num_threads(threads)
    turn(*arguments)


def _edges(graph: Any, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges of each point and part: where they begin, [n * PARTS + 1], their ends, rounds between pulls.

    Both directions of an edge are in the same part; those that would never pull are left out.
    """
    from .umap_moves import PARTS

    edges = graph.tocoo()
    kept = edges.data >= edges.data.max() / rounds
    points, ends, weights = edges.row[kept].astype(np.int64), edges.col[kept].astype(np.uint32), edges.data[kept]
    parts = points * PARTS + (points + ends) % PARTS
    order = np.lexsort((ends, parts))
    starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=graph.shape[0] * PARTS))])
    return starts, ends[order], (edges.data.max() / weights[order]).astype(np.float32)


def _forces(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Return pull and push, float32 [65536], by the leading bits of a squared distance: powers are slow."""
    from .umap_moves import COARSE

    halfway = np.uint32(1 << COARSE - 1)
    bits = (np.arange(1 << 32 - COARSE - 1, dtype=np.uint32) << np.uint32(COARSE)) + halfway
    with np.errstate(invalid="ignore", over="ignore"):  # the last ones are for NaN
        squared = bits.view(np.float32).astype(np.float64)
        pull = -2 * a * b * squared ** (b - 1) / (1 + a * squared**b)
        push = 2 * b / ((0.001 + squared) * (1 + a * squared**b))
    return _finite(pull), _finite(push)


def _finite(force: np.ndarray) -> np.ndarray:
    return np.nan_to_num(force, posinf=0, neginf=0).astype(np.float32)


LARGE = 10_000
EPOCHS, EPOCHS_LARGE = 500, 200
"""Rounds of the layout up to `LARGE` points and beyond: UMAP's own."""
FEW = 4
"""UMAP starts from eigenvectors of the graph; below this many points per dimension, from chance."""


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

    The same vectors, settings and versions give the same places, in any process and with any number of threads. With
    cuML, the places differ from the CPU's, and are the same again only on the same GPU.

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
    start = "spectral" if len(vectors) > FEW * dimensions + count else "random"
    rounds = EPOCHS if len(vectors) <= LARGE else EPOCHS_LARGE

    def on_cpu() -> np.ndarray:
        with one_thread():
            return _layout(vectors, dimensions, seed, spread_out, rows, distances, start, rounds)

    def on_gpu() -> np.ndarray:
        return project_with_cuml(
            vectors, (rows, distances), dimensions=dimensions, spread_out=spread_out, start=start, rounds=rounds,
            seed=seed,
        )  # fmt: skip

    return with_cuml("UMAP", on_gpu, on_cpu)


_MISSING = ("umap-learn", "cluster", "reducing vectors to a few dimensions")


def umap() -> Any:
    """The module umap.umap_; MissingExtraError where it is not installed."""
    try:
        from umap import umap_
    except ImportError as error:
        raise MissingExtraError(*_MISSING) from error
    return umap_


def check_umap() -> None:
    """Check that vectors can be projected here.

    Raises:
        MissingExtraError: umap-learn is not installed.
    """
    if not has_cuml():
        need("umap", *_MISSING)


def _layout(
    vectors: np.ndarray, dimensions: int, seed: int, spread_out: float, rows: np.ndarray, distances: np.ndarray,
    start: str, rounds: int,
) -> np.ndarray:  # fmt: skip
    module, random = umap(), np.random.RandomState(seed)
    a, b = module.find_ab_params(1.0, spread_out)
    graph = fuzzy_graph(rows, distances)
    places = module.simplicial_set_embedding(  # of no epochs: where UMAP would start
        vectors, graph, dimensions, 1.0, a, b, 1.0, 5, 0, start, random, "cosine", {}, False, {}, False,
        parallel=False, verbose=False,
    )[0]  # fmt: skip
    return arrange(places, graph, a, b, rounds, seed)


def _few(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Return the main directions of a handful of vectors, for which UMAP has no neighbours."""
    found = np.zeros((len(vectors), dimensions), np.float32)
    if len(vectors) > 1:
        left, strengths, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
        kept = min(dimensions, len(strengths))
        found[:, :kept] = left[:, :kept] * strengths[:kept]
    return found

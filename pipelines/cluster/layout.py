"""The layout of UMAP's graph, in all threads and the same whatever their number.

UMAP moves both ends of an edge at once, edge by edge, so that its layout can be repeated only in one thread. Here each
point is moved alone, against the places that the others had when its part of a round began: points do not touch each
other meanwhile, and the order of them does not matter. What UMAP would have done to the other end of an edge in between
is reckoned along; without that, near points jump past each other and clusters stay loose (benchmarks/README.md).
"""

from functools import cache
from typing import Any

import numpy as np

from .pace import Pace

NEGATIVES = 5
"""Points that are pushed away for each neighbour that pulls: UMAP's own."""
LIMIT = 4.0
"""Longest step along one axis at a rate of 1: UMAP's own."""
RATE = 0.5
"""At the start; it falls to 0. UMAP's own 1 is too much for places that are a part of a round old."""
PARTS = 4
"""Parts of a round, each with its share of the edges: the more, the fresher the places of the others."""
COARSE = 16
"""Low bits of a squared distance, as float32, that the forces leave out: they are right to 0.8 %."""


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

    places = np.array(start, np.float32, order="C")
    starts, ends, every = _edges(graph, rounds)
    state = (places, places.copy(), places.copy(), starts, ends, every, every.copy(), *_forces(a, b))
    turn, before = _compiled(places.shape[1]), numba.get_num_threads()
    turn(*state, 0, 0, np.uint64(seed))  # compiles it, so that no round is timed with that
    pace = Pace(before)
    try:
        for number in range(rounds):
            pace.run(lambda threads, number=number: _turn(turn, threads, *state, number, rounds, np.uint64(seed)))
    finally:
        numba.set_num_threads(before)
    return places


def _turn(turn: Any, threads: int, *arguments: Any) -> None:
    import numba

    numba.set_num_threads(threads)
    turn(*arguments)


def _edges(graph: Any, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges of each point and part: where they begin, [n * PARTS + 1], their ends, rounds between pulls.

    Both directions of an edge are in the same part; those that would never pull are left out.
    """
    edges = graph.tocoo()
    kept = edges.data >= edges.data.max() / rounds
    points, ends, weights = edges.row[kept].astype(np.int64), edges.col[kept].astype(np.uint32), edges.data[kept]
    parts = points * PARTS + (points + ends) % PARTS
    order = np.lexsort((ends, parts))
    starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=graph.shape[0] * PARTS))])
    return starts, ends[order], (edges.data.max() / weights[order]).astype(np.float32)


def _forces(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Return pull and push, float32 [65536], by the leading bits of a squared distance: powers are slow."""
    halfway = np.uint32(1 << COARSE - 1)
    bits = (np.arange(1 << 32 - COARSE - 1, dtype=np.uint32) << np.uint32(COARSE)) + halfway
    with np.errstate(invalid="ignore", over="ignore"):  # the last ones stand for what is no number
        squared = bits.view(np.float32).astype(np.float64)
        pull = -2 * a * b * squared ** (b - 1) / (1 + a * squared**b)
        push = 2 * b / ((0.001 + squared) * (1 + a * squared**b))
    return _finite(pull), _finite(push)


def _finite(force: np.ndarray) -> np.ndarray:
    return np.nan_to_num(force, posinf=0, neginf=0).astype(np.float32)


@cache
def _compiled(axes: int) -> Any:
    import numba

    compiled = numba.njit(fastmath=True)

    @compiled
    def step(force: Any, gap: Any, rate: Any) -> Any:
        return rate * max(np.float32(-LIMIT), min(np.float32(LIMIT), force * gap))

    @compiled
    def at(squared: Any) -> Any:
        return np.float32(squared).view(np.int32) >> COARSE

    @compiled
    def mixed(state: Any) -> Any:  # splitmix64 (Steele, Lea, Flood 2014)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))

    @compiled
    def squared_gap(then: Any, point: Any, now: Any, other: Any) -> Any:
        total = np.float32(0)
        for axis in range(axes):
            gap = then[point, axis] - now[other, axis]
            total += gap * gap
        return total

    @compiled
    def pulled(then: Any, point: Any, now: Any, other: Any, pull: Any, rate: Any) -> None:
        """Move a point twice, as the edge from either end would, the other point giving way as much in between."""
        first, left = pull[at(squared_gap(then, point, now, other))], np.float32(0)
        for axis in range(axes):
            gap = then[point, axis] - now[other, axis]
            once = step(first, gap, rate)
            left += (gap + once + once) * (gap + once + once)
        second = pull[at(left)]
        for axis in range(axes):
            gap = then[point, axis] - now[other, axis]
            once = step(first, gap, rate)
            then[point, axis] += once + step(second, gap + once + once, rate)

    @compiled
    def pushed(then: Any, point: Any, moved: Any, now: Any, other: Any, push: Any, rate: Any) -> None:
        force = push[at(squared_gap(then, point, now, other))]
        for axis in range(axes):
            moved[point, axis] += step(force, then[point, axis] - now[other, axis], rate)

    @numba.njit(parallel=True, fastmath=True)
    def turn(
        now: Any, then: Any, moved: Any, starts: Any, ends: Any, every: Any, due: Any, pull: Any, push: Any,
        number: Any, rounds: Any, seed: Any,
    ) -> None:  # fmt: skip
        """Do a round: its places are in `now` again, since the number of parts is even."""
        count, rate = np.uint64(len(now)), np.float32(RATE * (1 - number / max(rounds, 1)))
        for part in range(PARTS if rounds else 0):
            for point in numba.prange(len(now)):
                turned = np.uint64(number * PARTS + part)
                state = mixed((seed * np.uint64(rounds * PARTS) + turned) * count + np.uint64(point))
                for axis in range(axes):
                    then[point, axis] = now[point, axis]
                for edge in range(starts[point * PARTS + part], starts[point * PARTS + part + 1]):
                    if due[edge] > number:
                        continue
                    due[edge] += every[edge]
                    pulled(then, point, now, ends[edge], pull, rate)
                    for axis in range(axes):
                        moved[point, axis] = then[point, axis]
                    for _ in range(NEGATIVES):  # all from one place: none has to wait for the one before
                        state += np.uint64(0x9E3779B97F4A7C15)
                        other = ((mixed(state) >> np.uint64(32)) * count) >> np.uint64(32)
                        if other != point:
                            pushed(then, point, moved, now, other, push, rate)
                    for axis in range(axes):
                        then[point, axis] = moved[point, axis]
            now, then = then, now

    return turn

"""One round of UMAP's layout, compiled by Numba, which keeps what it compiled on the disk for the next process.

The number of axes is the length of a tuple, `axes`, so that the compiler knows it.
"""

from typing import Any

import numba
import numpy as np

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

compiled = numba.njit(cache=True)


@compiled
def _step(force: Any, gap: Any, rate: Any) -> Any:
    return rate * max(np.float32(-LIMIT), min(np.float32(LIMIT), force * gap))


@compiled
def _at(squared: Any) -> Any:
    return np.float32(squared).view(np.int32) >> COARSE


@compiled
def _mixed(state: Any) -> Any:  # splitmix64 (Steele, Lea, Flood 2014)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled
def _squared_gap(then: Any, point: Any, now: Any, other: Any, axes: Any) -> Any:
    total = np.float32(0)
    for axis in range(len(axes)):
        gap = then[point, axis] - now[other, axis]
        total += gap * gap
    return total


@compiled
def _pulled(then: Any, point: Any, now: Any, other: Any, axes: Any, pull: Any, rate: Any) -> None:
    """Move a point twice, as the edge from either end would, the other point giving way as much in between."""
    first, left = pull[_at(_squared_gap(then, point, now, other, axes))], np.float32(0)
    for axis in range(len(axes)):
        gap = then[point, axis] - now[other, axis]
        once = _step(first, gap, rate)
        left += (gap + once + once) * (gap + once + once)
    second = pull[_at(left)]
    for axis in range(len(axes)):
        gap = then[point, axis] - now[other, axis]
        once = _step(first, gap, rate)
        then[point, axis] += once + _step(second, gap + once + once, rate)


@compiled
def _pushed(then: Any, point: Any, moved: Any, now: Any, other: Any, axes: Any, push: Any, rate: Any) -> None:
    force = push[_at(_squared_gap(then, point, now, other, axes))]
    for axis in range(len(axes)):
        moved[point, axis] += _step(force, then[point, axis] - now[other, axis], rate)


@numba.njit(parallel=True, cache=True)
def turn(
    now: Any, then: Any, moved: Any, starts: Any, ends: Any, every: Any, due: Any, pull: Any, push: Any, axes: Any,
    number: Any, rounds: Any, seed: Any,
) -> None:  # fmt: skip
    """Do a round: its places are in `now` again, since the number of parts is even."""
    count, rate = np.uint64(len(now)), np.float32(RATE * (1 - number / max(rounds, 1)))
    for part in range(PARTS if rounds else 0):
        for point in numba.prange(len(now)):
            turned = np.uint64(number * PARTS + part)
            state = _mixed((seed * np.uint64(rounds * PARTS) + turned) * count + np.uint64(point))
            for axis in range(len(axes)):
                then[point, axis] = now[point, axis]
            for edge in range(starts[point * PARTS + part], starts[point * PARTS + part + 1]):
                if due[edge] > number:
                    continue
                due[edge] += every[edge]
                _pulled(then, point, now, ends[edge], axes, pull, rate)
                for axis in range(len(axes)):
                    moved[point, axis] = then[point, axis]
                for _ in range(NEGATIVES):  # all from one place: none has to wait for the one before
                    state += np.uint64(0x9E3779B97F4A7C15)
                    other = ((_mixed(state) >> np.uint64(32)) * count) >> np.uint64(32)
                    if other != point:
                        _pushed(then, point, moved, now, other, axes, push, rate)
                for axis in range(len(axes)):
                    then[point, axis] = moved[point, axis]
        now, then = then, now

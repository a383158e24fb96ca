"""The minimum of a smooth function: L-BFGS (Liu and Nocedal, Mathematical Programming 45, 1989)."""

from collections import deque
from collections.abc import Callable

import numpy as np

Slope = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Returns the value of a function and its gradient at a place, float64 [n]."""

STEPS = 200
KEPT = 10
"""Steps whose curvature is remembered."""
FLAT, SETTLED = 1e-5, 1e-9
"""The descent ends when no slope is larger than the first, or the value falls by less than the second, relatively."""
FALL, STEEP = 1e-4, 0.9
"""A step is long enough and not too long: Wolfe's conditions."""
HALVINGS = 40


def minimise(function: Slope, start: np.ndarray) -> np.ndarray:
    """Return the place of the minimum, float64 [n], after at most 200 steps from `start`."""
    place, (value, slope) = start, function(start)
    curvature: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=KEPT)
    for _ in range(STEPS):
        if np.abs(slope).max() <= FLAT:
            break
        direction = _direction(slope, curvature)
        length = 1.0 if curvature else min(1.0, 1 / float(np.linalg.norm(slope)))
        there, lower, after = _step(function, place, value, slope, direction, length)
        if not value - lower > SETTLED * max(abs(value), abs(lower), 1.0):
            return there if lower < value else place
        curvature.append((there - place, after - slope))
        place, value, slope = there, lower, after
    return place


def _direction(slope: np.ndarray, curvature: deque[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    direction, shares = -slope, []
    for moved, change in reversed(curvature):
        shares.append(float(moved @ direction) / float(moved @ change))
        direction = direction - shares[-1] * change
    if curvature:
        moved, change = curvature[-1]
        direction = direction * (float(moved @ change) / float(change @ change))
    for (moved, change), share in zip(curvature, reversed(shares), strict=True):
        direction = direction + (share - float(change @ direction) / float(moved @ change)) * moved
    return direction


def _step(
    function: Slope, place: np.ndarray, value: float, slope: np.ndarray, direction: np.ndarray, length: float
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the place after a step of a good length, and the value and the slope there."""
    shortest, longest, fall = 0.0, np.inf, float(slope @ direction)
    there, lower, after = place, value, slope
    for _ in range(HALVINGS):
        there = place + length * direction
        lower, after = function(there)
        if not lower <= value + FALL * length * fall:
            longest = length
        elif float(after @ direction) < STEEP * fall:
            shortest = length
        else:
            break
        length = (shortest + longest) / 2 if np.isfinite(longest) else 2 * length
    return there, lower, after

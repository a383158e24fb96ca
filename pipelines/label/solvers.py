"""What labelling computes by itself: Euclidean k-means, the minimum of a smooth function, and probabilities.

KMeans takes greedy k-means++ seeds (Arthur and Vassilvitskii, SODA 2007) and Lloyd's rounds.
`scikit-learn.cluster.KMeans(k, n_init=1, max_iter=20, random_state=seed)` gives the same clusters. The chances of "none
of these" were fitted to them. The minimum is found by L-BFGS (Liu and Nocedal, Mathematical Programming 45, 1989).
"""

from collections import deque
from collections.abc import Callable

import numpy as np

ROUNDS = 20
STILL = 1e-4
"""The centres have settled when they move less than this share of the texts' mean variance."""

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


def euclidean_kmeans(vectors: np.ndarray, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k centres, float32 [k, d], and the number of the nearest one of each of float32 [n, d] vectors."""
    middle = vectors.mean(axis=0)
    vectors = vectors - middle
    centres = _seeds(vectors, k, np.random.RandomState(seed))
    enough, before = STILL * float(vectors.var(axis=0).mean()), np.full(len(vectors), -1)
    for _ in range(ROUNDS):
        labels = nearest(vectors, centres)[0]
        old, centres = centres, _means(vectors, labels, centres)
        if np.array_equal(labels, before):
            return centres + middle, labels
        if float(((centres - old) ** 2).sum()) <= enough:
            break
        before = labels
    return centres + middle, nearest(vectors, centres)[0]


def nearest(vectors: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each vector's nearest centre, int64 [n], and its squared distance, float32 [n]."""
    distances = (centres**2).sum(axis=1) - 2 * (vectors @ centres.T)
    labels = distances.argmin(axis=1)
    return labels, np.maximum(distances[np.arange(len(labels)), labels] + np.einsum("nd,nd->n", vectors, vectors), 0)


def _seeds(vectors: np.ndarray, k: int, random: np.random.RandomState) -> np.ndarray:
    exact, trials, every = vectors.astype(np.float64), 2 + int(np.log(k)), np.ones(len(vectors), np.float32)
    squares = np.einsum("nd,nd->n", exact, exact)

    def away(rows: np.ndarray) -> np.ndarray:
        found = squares[rows, None] + squares - 2 * (exact[rows] @ exact.T)
        return np.maximum(found, 0).astype(np.float32)

    chosen = [int(random.choice(len(vectors), p=every / every.sum()))]
    closest = away(np.array(chosen))[0]
    total = closest @ every
    for _ in range(1, k):
        drawn = np.searchsorted(np.cumsum(closest), random.uniform(size=trials) * total)
        drawn = np.minimum(drawn, len(vectors) - 1)
        after = np.minimum(closest, away(drawn))
        totals = after @ every
        best = int(totals.argmin())
        chosen.append(int(drawn[best]))
        closest, total = after[best], totals[best]
    return vectors[chosen]


def _means(vectors: np.ndarray, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the mean of each centre's vectors; a centre without any gets the vector that is farthest from its own."""
    sizes = np.bincount(labels, minlength=len(centres)).astype(np.float32)
    sums = np.zeros_like(centres)
    filled = np.flatnonzero(sizes)
    starts = np.searchsorted(np.sort(labels), filled)
    sums[filled] = np.add.reduceat(vectors[np.argsort(labels, kind="stable")], starts, axis=0)
    empty = np.flatnonzero(sizes == 0)
    far = ((vectors - centres[labels]) ** 2).sum(axis=1)
    if len(empty) and far.any():
        for centre, row in zip(empty, np.argsort(-far, kind="stable"), strict=False):
            sums[labels[row]] -= vectors[row]
            sizes[labels[row]] -= 1
            sums[centre], sizes[centre] = vectors[row], 1
    return sums / np.maximum(sizes, 1)[:, None]


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


def softmax(margins: np.ndarray) -> np.ndarray:
    """Return float64 [n, labels] that sum to one in each row; minus infinity and NaN count as impossible."""
    safe = np.where(np.isnan(margins), -np.inf, margins).astype(np.float64)
    shares = np.exp(safe - safe.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def sigmoid(margins: np.ndarray) -> np.ndarray:
    """Return float64 [n, labels], each from 0 to 1; NaN counts as impossible."""
    safe = np.where(np.isnan(margins), -np.inf, margins).astype(np.float64)
    return 0.5 * (1 + np.tanh(0.5 * safe))


def probabilities(margins: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return float64 [n, labels]: probabilities that sum to one, or independent ones with several labels per text."""
    return sigmoid(margins) if multi_label else softmax(margins)


def log_odds(shares: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return margins whose `probabilities` are `shares`."""
    safe = np.clip(shares, 1e-9, 1 - 1e-9)
    return np.log(safe) - np.log1p(-safe) if multi_label else np.log(safe)


def standardised(margins: np.ndarray) -> np.ndarray:
    """Scale each label's margins to mean 0 and deviation 1 over the texts; a label with constant margins gets zeros."""
    found = margins.astype(np.float64)
    spread = found.std(axis=0)
    return (found - found.mean(axis=0)) / np.where(spread > 0, spread, 1)

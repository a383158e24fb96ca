"""How many clusters: silhouette and stability over k, and the choice of k on that curve."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from ...indexer.progress import Notify, Progress, silent
from ..analysis.describe import silhouettes
from ..analysis.neighbours import one_thread
from ..analysis.statistics import adjusted_rand
from . import density, kmeans
from .kmeans import fit_from, seeds
from .settings import ClusterSettings

KMEANS_SAMPLE = 20_000
DENSITY_SAMPLE = 10_000
"""Vectors that a clustering is made again with, at most."""
SHARE = 0.9

Refit = Callable[[np.ndarray, int], np.ndarray]
"""Clusters float32 [n, d] vectors with a seed; returns int64 [n] labels."""


def stability(
    vectors: np.ndarray, labels: np.ndarray, settings: ClusterSettings, notify: Notify = silent
) -> np.ndarray | None:
    """Return for each cluster how far it comes back, float64 [k], 0 to 1; None where it is not to be measured.

    The clustering is made again with other seeds, and with other seeds on 90 % of the vectors. A cluster's stability is
    the mean over these fits of the largest Jaccard similarity that any cluster there has to it. Beyond 20,000 vectors
    (KMeans) or 10,000 (density) a sample is used.
    """
    count = int(labels.max(initial=-1)) + 1
    if not settings.stability_refits or not count:
        return None
    most = KMEANS_SAMPLE if settings.method == "kmeans" else DENSITY_SAMPLE
    rows = _some(len(vectors), min(most, len(vectors)), settings.seed)
    found = np.zeros((2 * settings.stability_refits, count))
    for number, kept in enumerate(_refits(rows, settings)):
        again = _again(vectors[kept], count, settings, settings.seed + 1 + number)
        found[number] = best_jaccard(labels[kept], again, count)
        notify(Progress("measuring stability", number + 1, len(found), "fits"))
    return np.nanmean(found, axis=0) if len(found) else None


def _refits(rows: np.ndarray, settings: ClusterSettings) -> Iterator[np.ndarray]:
    for number in range(2 * settings.stability_refits):
        part = int(SHARE * len(rows)) if number % 2 else len(rows)
        yield rows[_some(len(rows), max(1, part), settings.seed + number)]


def _some(total: int, count: int, seed: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).choice(total, count, replace=False))


def _again(vectors: np.ndarray, count: int, settings: ClusterSettings, seed: int) -> np.ndarray:
    if settings.method == "kmeans":
        return kmeans.fit_kmeans(vectors, min(count, len(vectors)), seed).labels
    return density.fit_density(vectors, replace(settings, seed=seed)).labels


def best_jaccard(labels: np.ndarray, again: np.ndarray, count: int) -> np.ndarray:
    """Return for each cluster the largest Jaccard similarity to a cluster of another labelling, float64 [count].

    A cluster without a member here gets 0; outliers (-1) are in no cluster.
    """
    others = int(again.max(initial=-1)) + 1
    both = (labels >= 0) & (again >= 0)
    common = np.zeros((count, max(others, 1)))
    np.add.at(common, (labels[both], again[both]), 1)
    here = np.bincount(labels[labels >= 0], minlength=count)[:, None]
    there = np.bincount(again[again >= 0], minlength=max(others, 1))[None]
    return (common / np.maximum(here + there - common, 1)).max(axis=1)


SAMPLE = 5_000
SEEDS = 3
ROUNDS = 15
MOST = 150
LEAST_SIZE = 10
"""Sampled vectors per cluster, at least, up to which k is tried."""
STEP = 1.19
"""How much larger the next k is that is tried."""
GOOD_ENOUGH = 0.97
"""The smallest k is taken whose score is at least this share of the best."""
FEW, LEAD = 3, 1.1
"""Nearly every corpus falls into two or three parts that come back: such a k must be so much better than the others."""


@dataclass(frozen=True, slots=True)
class Point:
    """One k on the curve.

    Attributes:
        k: Clusters.
        silhouette: Mean over the sample, -1 to 1.
        stability: Mean adjusted Rand index between fits with different seeds, at most 1.
        objective: Mean cosine to the centroid.
    """

    k: int
    silhouette: float
    stability: float
    objective: float

    @property
    def score(self) -> float:
        """Silhouette times the square root of stability: clusters that are apart, and that come back.

        The root, since stability is the noisier of the two, and falls with k wherever there are many clusters: with the
        bare product, four seeds chose 6 to 119 for the 77 classes of banking77, with the root 71 to 119.
        """
        return max(self.silhouette, 0.0) * max(self.stability, 0.0) ** 0.5

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: round(value, 6) for name, value in asdict(self).items()} | {"score": round(self.score, 6)}


def ks(count: int, most: int = MOST) -> list[int]:
    """Return the k that are tried for this many vectors: 2, 3 and so on, then steps of about a fifth."""
    found, k = [], 2
    while k <= min(most, max(2, count // LEAST_SIZE)) and k < count:
        found.append(k)
        k = max(k + 1, round(k * STEP))
    return found


def k_curve(vectors: np.ndarray, seed: int, notify: Notify = silent) -> list[Point]:
    """Return the points of the curve over a sample of float32 [n, d] vectors of length 1; none for fewer than 3."""
    random = np.random.default_rng(seed)
    if len(vectors) > SAMPLE:
        vectors = vectors[np.sort(random.choice(len(vectors), SAMPLE, replace=False))]
    return points_of(vectors, ks(len(vectors)), seed, notify)


def points_of(vectors: np.ndarray, tried: Sequence[int], seed: int, notify: Notify = silent) -> list[Point]:
    """Return the points of these k over all of float32 [n, d] vectors of length 1."""
    points = []
    with one_thread():
        starts = [seeds(vectors, max(tried), seed + number) for number in range(SEEDS)] if tried else []
        for point in _points(vectors, tried, starts, seed):
            points.append(point)
            notify(Progress("choosing k", len(points), len(tried), "values tried"))
    return points


def _points(vectors: np.ndarray, tried: Sequence[int], starts: list[np.ndarray], seed: int) -> Iterator[Point]:
    for k in tried:
        fits = [fit_from(vectors, start[:k], seed + number, ROUNDS) for number, start in enumerate(starts)]
        best = max(fits, key=lambda fitted: fitted.objective)
        agreement = [adjusted_rand(one.labels, other.labels) for one, other in combinations(fits, 2)]
        silhouette = float(silhouettes(vectors, best.labels).mean())
        yield Point(k, silhouette, float(np.mean(agreement)), best.objective)


def choose_k(points: list[Point]) -> int:
    """Return the smallest k whose score is within 3 % of the best; 1 where there is no point, or nothing holds.

    Two and three count only where they are a tenth better than every larger k.
    """
    few, many = ([point for point in points if (point.k <= FEW) == is_few] for is_few in (True, False))
    candidates = few if _best(few) > LEAD * _best(many) else many
    best = _best(candidates)
    return next((point.k for point in candidates if best > 0 and point.score >= GOOD_ENOUGH * best), 1)


def _best(points: list[Point]) -> float:
    return max((point.score for point in points), default=0.0)


ALIKE = 0.9
"""Scores of this share of the best count as equal: refits of the same k differ by as much."""
SPREAD, STEADY, APART = 2, 0.6, 0.01
"""A number of groups is clear if equal scores span at most a factor of 2, refits agree by an ARI of 0.6 or more, and
the silhouette is more than rounding makes of texts that are all alike."""


class Measured(Protocol):
    """A number of groups with its measures."""

    @property
    def silhouette(self) -> float:
        """Mean over a sample, -1 to 1."""
        ...

    @property
    def stability(self) -> float:
        """Mean adjusted Rand index between fits with different seeds."""
        ...


def is_clear(low: int, high: int, chosen: Measured) -> bool:
    """Whether other numbers of groups than the chosen one are clearly worse, and its groups come back with other seeds.

    Args:
        low: The fewest groups whose score counts as equal.
        high: The most.
        chosen: The measures of the number that was chosen.
    """
    return high <= SPREAD * low and chosen.stability >= STEADY and chosen.silhouette >= APART


def clearness(points: Sequence[Point], k: int) -> dict[str, Any]:
    """Return for the report of a run whether the chosen k is clear, and the fewest and most that are about as good."""
    chosen = next((point for point in points if point.k == k), None)
    if chosen is None:
        return {}
    rivals = [point for point in points if (point.k <= FEW) == (k <= FEW)]
    equal = [point.k for point in rivals if point.score >= ALIKE * _best(rivals)]
    return {"clear": is_clear(equal[0], equal[-1], chosen), "equal": [equal[0], equal[-1]]}

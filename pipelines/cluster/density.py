"""Density clusters: UMAP to a few dimensions, then the dense groups there.

What lies in no dense region stays an outlier, number -1, unless it is to be put elsewhere.
"""

from dataclasses import dataclass, replace

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.wording import counted
from .carrying import VOTERS, centroids
from .groups import dense_groups, hdbscan
from .kmeans import nearest
from .membership import belong, limits, nearness
from .neighbours import neighbours
from .projection import project, umap
from .settings import ClusterSettings
from .threads import one_thread

MIN_SAMPLES = 1
"""HDBSCAN's neighbours for a core distance: on five sets fewer outliers than with more, and about the same NMI."""
LEAST_SIZE, ENOUGH = 5, 15
"""Fewest texts of a cluster in a small corpus, and in one of 1,500 to 5,625 texts."""


@dataclass(frozen=True, slots=True)
class Dense:
    """A density clustering of vectors.

    Attributes:
        labels: int64 [n], -1 for outliers; clusters are numbered by size, the largest first.
        scores: float32 [n], how much a vector belongs: HDBSCAN's probability for the fitted, the share of its
            neighbours' votes for the carried, the cosine to its cluster's mean for an outlier put there, else 0.
        fitted: int64 rows that it was fitted on.
        near: float64 [fitted], the mean cosine of each of these to those nearest it.
    """

    labels: np.ndarray
    scores: np.ndarray
    fitted: np.ndarray
    near: np.ndarray

    def limits(self) -> np.ndarray:
        """Return float32 [clusters]: the nearness below which a new text belongs to none of them."""
        return limits(self.labels[self.fitted], self.near, int(self.labels.max(initial=-1)) + 1)


def smallest(settings: ClusterSettings, count: int) -> int:
    """Return the fewest vectors of a cluster among so many: what was asked for, or as docs/clusters.md says."""
    return settings.min_size or max(LEAST_SIZE, min(ENOUGH, count // 100), round(count**0.5 / 5))


def fit(vectors: np.ndarray, settings: ClusterSettings, notify: Notify = silent) -> Dense:
    """Cluster distinct float32 [n, d] vectors of length 1.

    Raises:
        MissingExtraError: umap-learn or hdbscan is not installed.
    """
    count = len(vectors)
    rows = np.arange(count)
    if count > settings.sample:
        random = np.random.default_rng(settings.seed)
        rows = np.sort(random.choice(count, settings.sample, replace=False))
        notify(f"fitting on {len(rows):,} of {count:,} distinct texts; the rest follows its nearest neighbours")
    some = vectors if len(rows) == count else vectors[rows]
    nearest_of = neighbours(some, some, max(settings.neighbours, VOTERS + 1), notify)
    near = nearness(nearest_of[1][:, 1:])  # the first is the text itself
    found, scores = _fit(some, nearest_of, settings, notify)
    labels = np.full(count, -1)
    strengths = np.zeros(count, np.float32)
    labels[rows], strengths[rows] = found, scores
    rest = np.setdiff1d(np.arange(count), rows)
    if len(rest):
        least = limits(found, near, int(found.max(initial=-1)) + 1)
        labels[rest], strengths[rest] = belong(vectors[rest], some, found, least, notify)
    labels, strengths = _outliers(vectors, labels, strengths, settings, notify)
    return Dense(by_size(labels), np.where(labels < 0, 0, strengths).astype(np.float32), rows, near)


def _fit(
    vectors: np.ndarray, nearest_of: tuple[np.ndarray, np.ndarray], settings: ClusterSettings, notify: Notify
) -> tuple[np.ndarray, np.ndarray]:
    size = smallest(settings, len(vectors))
    _ = hdbscan(), umap()  # told before the work, if they are missing
    if len(vectors) < max(size, MIN_SAMPLES + 2):
        return np.full(len(vectors), -1), np.zeros(len(vectors))
    notify(f"reducing {counted(len(vectors), 'distinct text')} to {settings.dimensions} dimensions, then clustering")
    places = project(vectors, settings.dimensions, settings.seed, neighbours=settings.neighbours, nearest=nearest_of)
    return dense_groups(places, size, MIN_SAMPLES)


def _outliers(
    vectors: np.ndarray, labels: np.ndarray, scores: np.ndarray, settings: ClusterSettings, notify: Notify
) -> tuple[np.ndarray, np.ndarray]:
    outside = np.flatnonzero(labels < 0)
    count = int(labels.max(initial=-1)) + 1
    if settings.outliers == "nearest" and count and len(outside):
        labels, scores = labels.copy(), scores.copy()
        labels[outside], scores[outside] = to_nearest(vectors[outside], centroids(vectors, labels, count))
    if settings.outliers == "recluster" and len(outside):
        labels, scores = labels.copy(), scores.copy()
        again = fit(vectors[outside], replace(settings, outliers="keep"), notify)
        labels[outside] = np.where(again.labels >= 0, again.labels + count, -1)
        scores[outside] = again.scores
    return labels, scores


def to_nearest(vectors: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster with the nearest mean, int64 [n], and the cosine to it, 0 to 1."""
    with one_thread():
        labels, cosines = nearest(vectors, means)
    return labels, np.clip(cosines, 0, 1)


def by_size(labels: np.ndarray) -> np.ndarray:
    """Return the labels with clusters numbered by size, the largest first, equal ones by their first vector."""
    inside = labels >= 0
    numbers, first, sizes = np.unique(labels[inside], return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    new = np.full(int(numbers.max(initial=-1)) + 2, -1)  # the last one is what -1 looks up
    new[numbers[order]] = np.arange(len(order))
    return new[labels]

"""Density clusters: UMAP to a few dimensions, then HDBSCAN (Campello, Moulavi and Sander, PAKDD 2013)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from ...indexer.progress import Notify, silent
from ...indexer.wording import counted
from ..analysis.cuml import groups_with_cuml, with_cuml
from ..analysis.describe import VOTERS, ballot, centroids
from ..analysis.neighbours import neighbours, one_thread
from ..analysis.umap import project, umap
from .kmeans import nearest
from .settings import ClusterSettings

LARGEST = 0.5
"""A group of more than this share of the places is parted into the groups that HDBSCAN finds in it, if there are two.

Where texts differ little, HDBSCAN's own choice is often one group with nearly all of them and a few small ones beside
it: 500,000 sentences of one kind gave two groups, one with 98 % of the texts.
"""


def hdbscan() -> Any:
    """The module hdbscan; MissingExtraError where it is not installed."""
    try:
        import hdbscan as module
    except ImportError as error:
        raise MissingExtraError("hdbscan", "cluster", "clustering by density") from error
    return module


def dense_groups(places: np.ndarray, min_size: int, min_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dense group of each place, int64 [n], -1 for none, and how firmly it belongs, float64 [n], 0 to 1.

    Args:
        places: float [n, d], n larger than `min_size` and `min_samples`.
        min_size: Fewest places of a group.
        min_samples: From how many neighbours the density around a place is measured.

    Raises:
        MissingExtraError: hdbscan is not installed.
    """

    def fitted(**more: Any) -> tuple[np.ndarray, np.ndarray]:
        settings = {"min_cluster_size": min_size, "min_samples": min_samples} | more
        return with_cuml("HDBSCAN", lambda: groups_with_cuml(places, **settings), lambda: _on_cpu(places, **settings))

    with one_thread():
        labels, firmness = fitted()
        largest = _largest(labels)
        if largest.sum() <= LARGEST * len(places):
            return labels, firmness
        parts, firmness_of_parts = fitted(max_cluster_size=int(LARGEST * len(places)))
    return (parts, firmness_of_parts) if len(np.unique(parts[largest & (parts >= 0)])) > 1 else (labels, firmness)


def _on_cpu(places: np.ndarray, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    found = hdbscan().HDBSCAN(core_dist_n_jobs=1, **settings).fit(places.astype(np.float64))
    return found.labels_.astype(np.int64), np.nan_to_num(found.probabilities_)


def _largest(labels: np.ndarray) -> np.ndarray:
    sizes = np.bincount(labels + 1)
    sizes[0] = 0
    return labels == (int(sizes.argmax()) - 1 if sizes.any() else 0)


STRANGE = 0.05


def nearness(cosines: np.ndarray) -> np.ndarray:
    """Return float64 [n]: the mean of the cosines, float32 [n, k], to the nearest fitted texts, the nearest first."""
    some = cosines[:, :VOTERS]
    return some.mean(axis=1, dtype=np.float64) if some.shape[1] else np.zeros(len(some))


def limits(labels: np.ndarray, near: np.ndarray, count: int) -> np.ndarray:
    """Return float32 [count]: the nearness below which a text does not belong to a cluster.

    Args:
        labels: int64 [n], the cluster of each fitted text, -1 for outliers.
        near: float64 [n], the nearness of each to the others.
        count: Of clusters.
    """
    found = np.full(count, -1, np.float32)
    for number in np.unique(labels[labels >= 0]).tolist():
        found[number] = np.quantile(near[labels == number], STRANGE)
    return found


def belong(
    queries: np.ndarray, fitted: np.ndarray, labels: np.ndarray, least: np.ndarray, notify: Notify = silent
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster of each text, int64 [m], -1 for outliers, and float32 [m] shares of the neighbours' votes.

    Args:
        queries: float32 [m, d], of length 1.
        fitted: float32 [n, d], of length 1, n at least 1.
        labels: int64 [n], the cluster of each; outliers vote like any other.
        least: float32 [clusters], as `limits` gave them.
        notify: Receives progress.
    """
    rows, cosines = neighbours(queries, fitted, VOTERS, notify)
    found, shares = ballot(labels[rows], cosines)
    strange = nearness(cosines) < np.append(least, -1)[found]  # the last one is what -1 looks up
    return np.where(strange, -1, found), shares


MIN_SAMPLES = 1
"""HDBSCAN's neighbours for a core distance: on five sets fewer outliers than with more, and about the same NMI."""
LEAST_SIZE, ENOUGH = 5, 15
"""Fewest texts of a cluster in a small corpus, and in one of 1,500 to 5,625 texts."""


@dataclass(frozen=True, slots=True)
class DenseClusters:
    """A density clustering of vectors.

    Attributes:
        labels: int64 [n], -1 for outliers; clusters are numbered by size, the largest first.
        scores: float32 [n], how much a vector belongs: HDBSCAN's probability for the fitted, the share of its
            neighbours' votes for the assigned, the cosine to its cluster's mean for an outlier put there, else 0.
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
    """Return the fewest vectors of a cluster among this many: what was asked for, or as docs/clusters.md says."""
    return settings.min_size or max(LEAST_SIZE, min(ENOUGH, count // 100), round(count**0.5 / 5))


def fit_density(vectors: np.ndarray, settings: ClusterSettings, notify: Notify = silent) -> DenseClusters:
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
    return DenseClusters(groups_by_size(labels), np.where(labels < 0, 0, strengths).astype(np.float32), rows, near)


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
        again = fit_density(vectors[outside], replace(settings, outliers="keep"), notify)
        labels[outside] = np.where(again.labels >= 0, again.labels + count, -1)
        scores[outside] = again.scores
    return labels, scores


def to_nearest(vectors: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster with the nearest mean, int64 [n], and the cosine to it, 0 to 1."""
    with one_thread():
        labels, cosines = nearest(vectors, means)
    return labels, np.clip(cosines, 0, 1)


def groups_by_size(labels: np.ndarray) -> np.ndarray:
    """Return the labels with clusters numbered by size, the largest first, equal ones by their first vector."""
    inside = labels >= 0
    numbers, first, sizes = np.unique(labels[inside], return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    new = np.full(int(numbers.max(initial=-1)) + 2, -1)  # the last one is what -1 looks up
    new[numbers[order]] = np.arange(len(order))
    return new[labels]

"""Whether a cluster comes back when the clustering is made again.

Hennig, Cluster-wise assessment of cluster stability, Computational Statistics & Data Analysis 52, 2007.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...indexer.progress import Notify, Progress, silent
from . import density, kmeans
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
        found[number] = jaccard(labels[kept], again, count)
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
        return kmeans.fit(vectors, min(count, len(vectors)), seed).labels
    return density.fit(vectors, replace(settings, seed=seed)).labels


def jaccard(labels: np.ndarray, again: np.ndarray, count: int) -> np.ndarray:
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

"""Where a text belongs that a density clustering was not fitted on, and whether it belongs anywhere.

A conformal test (Laxhammar and Falkman, Conformal prediction for distribution-independent anomaly detection, 2010): how
strange a text is, is told by its distance from its nearest fitted texts, and it is an outlier if it is stranger than
all but 5 % of the texts that made the cluster. So about one in twenty texts of a cluster's own kind is left out.
"""

import numpy as np

from ...indexer.progress import Notify, silent
from .carrying import VOTERS, ballot
from .neighbours import neighbours

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

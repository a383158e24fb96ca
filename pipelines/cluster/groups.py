"""Dense groups of places: HDBSCAN (Campello, Moulavi and Sander, PAKDD 2013), in one thread."""

from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from .threads import one_thread

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
    library, exact = hdbscan(), places.astype(np.float64)

    def fitted(**more: Any) -> tuple[np.ndarray, np.ndarray]:
        settings = {"min_cluster_size": min_size, "min_samples": min_samples, "core_dist_n_jobs": 1} | more
        found = library.HDBSCAN(**settings).fit(exact)
        return found.labels_.astype(np.int64), np.nan_to_num(found.probabilities_)

    with one_thread():
        labels, firmness = fitted()
        largest = _largest(labels)
        if largest.sum() <= LARGEST * len(places):
            return labels, firmness
        parts, firmness_of_parts = fitted(max_cluster_size=int(LARGEST * len(places)))
    return (parts, firmness_of_parts) if len(np.unique(parts[largest & (parts >= 0)])) > 1 else (labels, firmness)


def _largest(labels: np.ndarray) -> np.ndarray:
    sizes = np.bincount(labels + 1)
    sizes[0] = 0
    return labels == (int(sizes.argmax()) - 1 if sizes.any() else 0)

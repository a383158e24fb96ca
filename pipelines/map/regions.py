"""Regions of a map at two zoom levels, and their names from the words that tell them apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.runs import Item
from ...indexer.view import View
from ..cluster.corpus import Corpus, texts_of
from ..cluster.describe import languages, sampled
from ..cluster.terms import count_terms
from ..cluster.threads import one_thread
from ..topics.counts import Weighted, short_name, terms_of

LARGE, SMALL = 1, 2
"""Levels: what is named from afar, and from near."""
TEXTS_PER_REGION = 40
MOST_SMALL, MOST_LARGE = 48, 9
FEWEST = 8
"""Distinct texts without which a map has no regions."""
FITTED = 20_000
KEPT = 10


@dataclass(frozen=True)
class Regions:
    """Regions by place.

    Attributes:
        centres: float64 [small, 2].
        large_of: int64 [small]: the large region that each small one lies in.
    """

    centres: np.ndarray
    large_of: np.ndarray

    def of(self, places: np.ndarray) -> np.ndarray:
        """Return the small region whose centre is nearest to each of float [n, 2] places, int64 [n]."""
        found = np.zeros(len(places), np.int64)
        for start in range(0, len(places), 65_536):
            some = places[start : start + 65_536].astype(np.float64)
            distances = ((some[:, None] - self.centres) ** 2).sum(axis=2)
            found[start : start + 65_536] = distances.argmin(axis=1)
        return found


def find_regions(places: np.ndarray, seed: int) -> Regions:
    """Part float [n, 2] places into small regions by KMeans, and join these into large ones by Ward's method."""
    count = int(np.clip(len(places) // TEXTS_PER_REGION, 2, MOST_SMALL))
    if len(places) < FEWEST:
        return Regions(np.zeros((0, 2)), np.zeros(0, np.int64))
    from sklearn.cluster import AgglomerativeClustering, KMeans

    random = np.random.default_rng(seed)
    some = places if len(places) <= FITTED else places[np.sort(random.choice(len(places), FITTED, replace=False))]
    with one_thread():
        repeats: Any = 3
        centres = KMeans(count, n_init=repeats, random_state=seed).fit(some.astype(np.float64)).cluster_centers_
        large = int(np.clip(round(count / 5), 2, MOST_LARGE))
        joined = AgglomerativeClustering(large, linkage="ward").fit(centres).labels_
    return Regions(np.round(centres, 5), joined.astype(np.int64))


def region_items(view: View, corpus: Corpus, places: np.ndarray, regions: Regions, seed: int) -> list[Item]:
    """Return one item for each region, the large ones first.

    Its data: `level` (1: large, 2: small), `x` and `y` (where its name stands: the place of the text in its middle),
    `centre`, `size` (documents), `terms` (with c-TF-IDF weights) and, of a small one, `within` (the large one's
    number).

    Args:
        view: Of the collection.
        corpus: Its documents.
        places: float [m, 2], of the distinct texts.
        regions: What `find_regions` found.
        seed: Of the sample of texts that terms are counted in.
    """
    if not len(regions.centres):
        return []
    small = regions.of(places)
    large = regions.large_of[small]
    shift = int(regions.large_of.max()) + 1
    rows = sampled(small, seed)
    counts = count_terms(texts_of(view, corpus.snapshot.docs[corpus.first[rows]]), languages(view))
    named = [terms_of(counts, labels[rows], int(labels.max()) + 1) if counts else [] for labels in (large, small)]
    items = _level(corpus, places, large, LARGE, named[0], 0)
    for item in _level(corpus, places, small, SMALL, named[1], shift):
        region = item.number - shift
        more = {"within": int(regions.large_of[region]), "centre": regions.centres[region].tolist()}
        items.append(Item(item.number, item.name, {**item.data, **more}))
    return items


def stored_regions(items: list[Item]) -> Regions:
    """Return the regions that a run's items describe."""
    small = [item for item in items if item.data["level"] == SMALL]
    centres = np.array([item.data["centre"] for item in small], np.float64).reshape(-1, 2)
    return Regions(centres, np.array([item.data["within"] for item in small], np.int64))


def _level(
    corpus: Corpus, places: np.ndarray, labels: np.ndarray, level: int, terms: list[Weighted], shift: int
) -> list[Item]:
    sizes = np.bincount(labels[corpus.group])
    items = []
    for region in np.unique(labels).tolist():
        inside = places[labels == region]
        middle = np.median(inside, axis=0)
        x, y = inside[((inside - middle) ** 2).sum(axis=1).argmin()]
        found = terms[region][:KEPT] if terms else []
        data = {
            "level": level, "x": round(float(x), 5), "y": round(float(y), 5), "size": int(sizes[region]),
            "terms": [list(pair) for pair in found],
        }  # fmt: skip
        name = short_name((term for term, _ in found), 3 if level == LARGE else 2)
        items.append(Item(region + shift, name or f"region {region}", data))
    return items

"""Parts of a map: documents inside outlines, and named regions at two zoom levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.store.runs import Item
from ...indexer.store.view import View
from ..analysis.corpus import Corpus, texts_of
from ..analysis.describe import languages, sampled
from ..analysis.naming.names import naming_of
from ..analysis.neighbours import one_thread
from ..analysis.terms import Weighted, count_terms, terms_of

Outline = Sequence[tuple[float, float]]


def inside(places: np.ndarray, outlines: Sequence[Outline]) -> np.ndarray:
    """Return bool [n]: which of float [n, 2] places lie inside one of the outlines, by the even-odd rule."""
    found = np.zeros(len(places), bool)
    for outline in outlines:
        corners = np.asarray(outline, np.float64).reshape(-1, 2)
        low, high = corners.min(axis=0), corners.max(axis=0)
        near = np.flatnonzero(((places >= low) & (places <= high)).all(axis=1) & ~found)
        found[near[_odd(places[near], corners)]] = True
    return found


def _odd(places: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return bool [n]: whether a ray from each place crosses the outline an odd number of times."""
    order = np.argsort(places[:, 1])  # an edge then meets a slice of them: few of the places are near each of its edges
    x, y = places[order, 0], places[order, 1]
    odd = np.zeros(len(places), bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        some = slice(*np.searchsorted(y, sorted((y1, y2))))  # those with (y1 > y) != (y2 > y)
        odd[some] ^= x[some] < (x2 - x1) * (y[some] - y1) / (y2 - y1) + x1
    found = np.empty(len(places), bool)
    found[order] = odd
    return found


def read_outlines(text: str) -> list[list[tuple[float, float]]]:
    """Read the outlines in an address of the former page Map: "x,y;x,y;x,y" with | between them.

    Raises:
        UsageError: It is anything else.
    """
    try:
        found = [[_corner(pair) for pair in part.split(";")] for part in text.split("|") if part]
    except ValueError:
        raise UsageError("the area in the address cannot be read: draw it again") from None
    if any(len(outline) < 3 for outline in found):
        raise UsageError("the area in the address has fewer than three corners: draw it again")
    return found


def _corner(text: str) -> tuple[float, float]:
    x, y = (float(number) for number in text.split(","))
    if not np.isfinite([x, y]).all():
        raise ValueError(text)
    return x, y


LARGE, SMALL = 1, 2
"""Levels: what is named from afar, and from near."""
TEXTS_PER_REGION = 40
MOST_SMALL, MOST_LARGE = 48, 9
FEWEST = 8
"""Distinct texts without which a map has no regions."""
FITTED = 20_000
KEPT = 10
SMALL_PHRASES = 2
"""Phrases of a small region's name."""


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

    Its data: `level` (1: large, 2: small), `x` and `y` (where its name is shown: the place of the text in its middle),
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
    terms = [terms_of(counts, labels[rows], int(labels.max()) + 1) if counts else [] for labels in (large, small)]
    names = _names(view, corpus, large, small, regions, seed)
    items = _level(corpus, places, large, LARGE, terms[0], names[0], 0)
    for item in _level(corpus, places, small, SMALL, terms[1], names[1], shift):
        region = item.number - shift
        more = {"within": int(regions.large_of[region]), "centre": regions.centres[region].tolist()}
        items.append(Item(item.number, item.name, {**item.data, **more}))
    return items


def stored_regions(items: list[Item]) -> Regions:
    """Return the regions that a run's items describe."""
    small = [item for item in items if item.data["level"] == SMALL]
    centres = np.array([item.data["centre"] for item in small], np.float64).reshape(-1, 2)
    return Regions(centres, np.array([item.data["within"] for item in small], np.int64))


def _names(
    view: View, corpus: Corpus, large: np.ndarray, small: np.ndarray, regions: Regions, seed: int
) -> tuple[list[str], list[str]]:
    """Return the names of large and small regions; no small one repeats the name of the large one that it lies in."""
    over = naming_of(view, corpus, large, int(regions.large_of.max()) + 1, seed)
    above = over.or_quoted(over.choose())
    below = naming_of(view, corpus, small, len(regions.centres), seed)
    taken = [name.casefold() for name in above]
    parents = [(within, above[within]) for within in regions.large_of.tolist()]
    names = below.choose(parents=parents, most=SMALL_PHRASES)
    return above, below.or_quoted([name if name.casefold() not in taken else "" for name in names])


def _level(
    corpus: Corpus, places: np.ndarray, labels: np.ndarray, level: int, terms: list[Weighted], names: list[str],
    shift: int,
) -> list[Item]:  # fmt: skip
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
        items.append(Item(region + shift, names[region] or f"region {region + shift}", data))
    return items

"""Make a map of a collection and store it as a run; add new documents without moving any other."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...indexer.ann.devices import faiss_package
from ...indexer.errors import SondeError, out_of_range
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import MAP
from ...indexer.store.run_writing import NewRun, check_run_name, write_run
from ...indexer.store.runs import Item, check_model, find_run, items_of, places_of
from ...indexer.wording import counted
from ..analysis.corpus import Corpus
from ..analysis.cuml import cuml_package
from ..analysis.neighbours import place, sample_rows
from ..analysis.umap import FITTED_ON, check_umap, project
from .regions import SMALL, find_regions, region_items, stored_regions


@dataclass(frozen=True, slots=True)
class MapSettings:
    """Settings of one map.

    Attributes:
        seed: Of everything that chance decides.
        neighbours: Neighbours of a text in UMAP's graph: fewer show finer structure, more the large one.
        spread_out: Least distance between places, 0 to 1 (UMAP's `min_dist`).
        sample: Distinct texts that the map is fitted on, at most; the rest is placed among them.
    """

    seed: int = 0
    neighbours: int = 15
    spread_out: float = 0.1
    sample: int = FITTED_ON

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting is not valid.
        """
        for name, low in {"seed": 0, "neighbours": 2, "sample": 100}.items():
            if getattr(self, name) < low:
                raise out_of_range(name, getattr(self, name), f"give a whole number from {low}")
        if self.seed >= 2**31:
            raise out_of_range("seed", self.seed, f"give a whole number below {2**31}")
        if not 0 <= self.spread_out <= 1:
            raise out_of_range("spread_out", self.spread_out, "give a number from 0 to 1")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def fit_places(vectors: np.ndarray, settings: MapSettings, notify: Notify = silent) -> tuple[np.ndarray, np.ndarray]:
    """Lay out vectors on the map.

    Args:
        vectors: float32 [n, d], of length 1, best all distinct.
        settings: The map's.
        notify: Receives progress.

    Returns:
        float32 [n, 2] places, and the int64 rows of the vectors that the map was fitted on.
    """
    chosen = sample_rows(len(vectors), settings.sample, settings.seed)
    notify(f"laying out {counted(len(chosen), 'text')}")
    fitted = project(
        vectors[chosen], 2, settings.seed, neighbours=settings.neighbours, spread_out=settings.spread_out
    )  # fmt: skip
    places = np.empty((len(vectors), 2), np.float32)
    places[chosen] = fitted
    others = np.setdiff1d(np.arange(len(vectors)), chosen, assume_unique=True)
    places[others] = place(vectors[others], vectors[chosen], fitted, notify)
    return places, chosen


LIBRARIES = ("numba", "numpy", "scikit-learn", "scipy", "umap-learn")


def libraries() -> tuple[str, ...]:
    """Return the distributions that make a map here."""
    return (faiss_package(), *cuml_package(), *LIBRARIES)


def make_map(
    collection: StoredCollection,
    settings: MapSettings = MapSettings(),
    name: str = "map",
    *,
    replace: bool = False,
    notify: Notify = silent,
) -> None:
    """Lay out the documents of a collection on a plane, near what they are like, and store that as the run `name`.

    The same collection, settings and versions give the same places.

    Args:
        collection: What to map.
        settings: How.
        name: Of the run.
        replace: Whether a run of this name may be replaced.
        notify: Receives progress.

    Raises:
        UsageError: A setting is not valid, or the name is taken.
        SondeError: The collection is empty, or another process is writing.
        MissingExtraError: umap-learn is not installed.
    """
    began = time.perf_counter()
    settings.check()
    check_umap()
    with collection.view() as view:
        check_run_name(view.catalog, MAP, name, replace)
        corpus = Corpus.of(view)
        if not corpus.documents:
            raise SondeError(f"{collection.named} holds no documents to map")
        places, fitted = fit_places(corpus.vectors, settings, notify)
        notify("naming regions")
        items = region_items(view, corpus, places, find_regions(places, settings.seed), settings.seed)
    report = {
        "documents": corpus.documents, "distinct": len(places), "fitted": len(fitted),
        "carried": len(places) - len(fitted), "regions": len(items),
    }  # fmt: skip
    run = NewRun(
        MAP, name, settings.to_dict(), libraries(), report, time.perf_counter() - began, items,
        places=(corpus.snapshot.docs, places[corpus.group].astype(np.float64)),
    )  # fmt: skip
    write_run(collection, run, corpus.snapshot, replace=replace)


def update_map(collection: StoredCollection, name: str | None = None, notify: Notify = silent) -> int:
    """Place the documents that a map does not have, and return how many; the others stay where they are.

    Raises:
        SondeError: There is no such map, nothing is left on it, or another process is writing.
    """
    began = time.perf_counter()
    with collection.view() as view:
        run = find_run(view.catalog, MAP, name)
        check_model(run, view.generation.spec)
        docs, known = places_of(view.catalog, run)
        corpus = Corpus.of(view)
        items = items_of(view.catalog, run)
    placed = np.isin(corpus.snapshot.docs, docs)
    count = int((~placed).sum())
    if not count:
        return 0
    if not placed.any():
        raise SondeError(f"the documents on the map {run.name!r} were deleted or have changed: make the map again")
    places = np.full((len(corpus.snapshot.docs), 2), np.nan)
    places[placed] = known[np.searchsorted(docs, corpus.snapshot.docs[placed])]
    places[~placed] = _places_of_new(corpus, places, placed, notify)[~placed]
    report = run.report | {"documents": len(places), "placed": run.report.get("placed", 0) + count}
    new = NewRun(
        MAP, run.name, run.parameters, libraries(), report,
        run.seconds + time.perf_counter() - began, _resized(items, places), places=(corpus.snapshot.docs, places),
    )  # fmt: skip
    write_run(collection, new, corpus.snapshot, replace=True)
    return count


def _places_of_new(corpus: Corpus, places: np.ndarray, placed: np.ndarray, notify: Notify) -> np.ndarray:
    """Return a place for every document: that of the same text, or among the neighbours that have one."""
    of_text = np.full((len(corpus.first), 2), np.nan)
    of_text[corpus.group[placed][::-1]] = places[placed][::-1]
    known = ~np.isnan(of_text[:, 0])
    of_text[~known] = place(corpus.vectors[~known], corpus.vectors[known], of_text[known], notify)
    return of_text[corpus.group]


def _resized(items: list[Item], places: np.ndarray) -> list[Item]:
    """Return regions with their sizes recounted; their names and places stay."""
    regions = stored_regions(items)
    if not len(regions.centres):
        return items
    small = np.bincount(regions.of(places), minlength=len(regions.centres))
    large = np.bincount(regions.large_of, weights=small)
    shift = len(items) - len(small)

    def size(item: Item) -> dict[str, Any]:
        own = small[item.number - shift] if item.data["level"] == SMALL else large[item.number]
        return {**item.data, "size": int(own)}

    return [Item(item.number, item.name, size(item)) for item in items]

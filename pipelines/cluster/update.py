"""Change a clustering without fitting it again: merge clusters, add new documents."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.ann.devices import faiss_package
from ...indexer.errors import SondeError, UsageError
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import CLUSTER
from ...indexer.store.run_writing import NAME_ACCURACY, RENAMED, NewRun, Snapshot, write_run
from ...indexer.store.runs import Item, Run, array_of, assignments_of, check_model, find_run, items_of
from ...indexer.store.view import View, document_vectors, normalized
from ...indexer.wording import existing
from ..analysis.corpus import Corpus
from ..analysis.describe import OUTLIERS, REPRESENTATIVES, cluster_terms, ids_of, name_by_terms, placeholder, vote
from ..analysis.naming.names import AUTOMATIC, embedder, naming_of
from ..search.filters import documents_where
from .clustering import LIBRARIES
from .density import belong, to_nearest

ARRAYS = ("centroids", "fitted", "limits")
UNKNOWN_NOW = ("silhouette", "stability", NAME_ACCURACY)
OF_NUMBER = ("clear", "equal")
"""What a report says of the number of clusters, which a merge changes."""
"""What a report no longer knows after clusters were merged."""
MERGED = "merged"
"""The parameter that tells where the numbers of merged clusters lead."""


def merge_clusters(collection: StoredCollection, numbers: Sequence[int], name: str | None = None) -> Item:
    """Make clusters one, under the first one's number, and return it; the other numbers are no longer used.

    A name that a person gave to the first stays. New documents that are nearest to any of them join it.

    Args:
        collection: Where the run is.
        numbers: Of two clusters or more.
        name: Of the cluster run; the newest where None.

    Raises:
        UsageError: They are fewer than two.
        SondeError: There is no such run or cluster, or another process is writing.
    """
    began = time.perf_counter()
    chosen = list(dict.fromkeys(numbers))
    if len(chosen) < 2:
        raise UsageError("merging needs the numbers of two clusters or more", code="too-few", field="merge")
    with collection.view() as view:
        run = find_run(view.catalog, CLUSTER, name)
        check_model(run, view.generation.spec)
        items = {item.number: item for item in items_of(view.catalog, run)}
        known = [number for number in items if number >= 0]
        if missing := [number for number in chosen if number not in known]:
            raise SondeError(f"the run {run.name!r} has no cluster {missing[0]}: {existing(known)}")
        docs, labels, scores = assignments_of(view.catalog, run)
        corpus = Corpus.of(view, docs)
        labels = np.where(np.isin(labels, chosen), chosen[0], labels)
        item, mean = _described(view, corpus, run, labels, items[chosen[0]])
        if not item.name:
            others = {number: one.name for number, one in items.items() if number >= 0 and number not in chosen}
            item = _renamed(view, corpus, run, labels, item, others)
        arrays = _arrays(view, run)
    arrays["centroids"][chosen[0]] = mean
    kept = {number: one for number, one in items.items() if number not in chosen} | {item.number: item}
    leads = {**run.parameters.get(MERGED, {}), **{str(number): chosen[0] for number in chosen[1:]}}
    leads = {number: chosen[0] if to in chosen else to for number, to in leads.items()}
    new = NewRun(
        CLUSTER, run.name, run.parameters | {MERGED: leads}, (faiss_package(), *LIBRARIES[_method(run)][1:]),
        {name: value for name, value in run.report.items() if name not in OF_NUMBER}
        | {"clusters": len(known) - len(chosen) + 1} | dict.fromkeys(UNKNOWN_NOW),
        run.seconds + time.perf_counter() - began, [kept[number] for number in sorted(kept)], (docs, labels, scores),
        arrays=arrays,
    )  # fmt: skip
    write_run(collection, new, corpus.snapshot, replace=True)
    return item


def followed(labels: np.ndarray, run: Run) -> np.ndarray:
    """Return int64 [n] clusters where merged ones are followed to what they are now."""
    found = labels.copy()
    for number, to in run.parameters.get(MERGED, {}).items():
        found[labels == int(number)] = to
    return found


def _method(run: Run) -> str:
    return run.parameters["method"] if run.parameters.get("method") in LIBRARIES else "kmeans"


def _described(view: View, corpus: Corpus, run: Run, labels: np.ndarray, first: Item) -> tuple[Item, np.ndarray]:
    """Return the merged cluster, without a name unless a person gave it one, and its mean, float32 [d]."""
    of_text = labels[corpus.first]
    terms = cluster_terms(view, corpus, of_text, run.parameters.get("seed", 0))
    rows = np.flatnonzero(of_text == first.number)
    mean = normalized(corpus.vectors[rows].mean(axis=0, dtype=np.float64)[None])[0].astype(np.float32)
    cosines = corpus.vectors[rows] @ mean
    near = rows[np.lexsort((rows, -cosines))[:REPRESENTATIVES]]
    own = terms.get(first.number, [])
    data = {
        "size": int((labels == first.number).sum()), "distinct": len(rows), "terms": [list(pair) for pair in own],
        "representatives": ids_of(view, corpus.snapshot.docs[corpus.first[near]]),
        "cohesion": round(float(cosines.mean(dtype=np.float64)), 4), "stability": None,
    }  # fmt: skip
    before = [(str(term), float(weight)) for term, weight in first.data.get("terms", [])]
    by_hand = RENAMED in first.data or first.name != first.data.get(AUTOMATIC, name_by_terms(before, first.number))
    data |= {RENAMED: True} if by_hand else {}
    return Item(first.number, first.name if by_hand else "", data), mean


def _renamed(view: View, corpus: Corpus, run: Run, labels: np.ndarray, item: Item, others: dict[int, str]) -> Item:
    """Return a merged cluster under a name that none of the others has."""
    numbers = sorted({item.number, *others})
    groups = np.full(len(corpus.first), -1)
    for place, number in enumerate(numbers):
        groups[labels[corpus.first] == number] = place
    seed, choice = run.parameters.get("seed", 0), run.parameters.get("names", "auto")
    naming = naming_of(view, corpus, groups, len(numbers), seed, embedder(view.collection, choice))
    kept = {place: others[number] for place, number in enumerate(numbers) if number in others}
    name = naming.or_quoted(naming.choose(kept))[numbers.index(item.number)] or placeholder(item.number)
    return Item(item.number, name, {**item.data, AUTOMATIC: name})


def _arrays(view: View, run: Run) -> dict[str, np.ndarray]:
    found = {}
    for name in ARRAYS:
        try:
            found[name] = array_of(view.catalog, run, name)
        except SondeError:  # KMeans keeps centroids only
            continue
    return found


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did.

    Attributes:
        run: The run's name.
        added: Documents that were put into a cluster or among the outliers.
        outliers: How many of them are outliers.
        documents: How many documents the run knows now.
    """

    run: str
    added: int
    outliers: int
    documents: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def update(collection: StoredCollection, name: str | None = None, notify: Notify = silent) -> Updated:
    """Put the documents that a cluster run does not know into the nearest of its clusters; numbers and names stay.

    KMeans uses the nearest centroid, density the votes of the nearest documents that were fitted: a document that
    is farther from them than all but 5 % of the cluster's own are from each other is an outlier, unless the run left
    none. A run over a filter takes those that pass it.

    Raises:
        SondeError: There is no such run, nothing is left of what it was fitted on, or the collection cannot be written.
    """
    began = time.perf_counter()
    with collection.view() as view:
        run, snapshot = find_run(view.catalog, CLUSTER, name), Snapshot.of(view)
        check_model(run, view.generation.spec)
        docs, labels, scores = assignments_of(view.catalog, run)
        where = run.parameters.get("where")
        every = snapshot.docs if where is None else documents_where(view.catalog, where)
        new = np.setdiff1d(every, docs)
        found, sure = _place(view, run, new, docs, labels, notify) if len(new) else (labels[:0], scores[:0])
        found = followed(found, run)
        before = items_of(view.catalog, run)
        items = _resized(before, np.concatenate([labels, found]))
        names = ("centroids", "fitted", "limits") if run.parameters["method"] == "density" else ("centroids",)
        arrays = {kept: array_of(view.catalog, run, kept) for kept in names}
    outliers = int((found < 0).sum())
    if len(new) or items != before:  # without a new one, documents may still have been deleted
        everything = (
            np.append(docs, new),
            np.append(labels, found),
            np.append(scores, np.where(found < 0, np.nan, sure)),
        )
        report = run.report | {"documents": len(everything[0]), "outliers": int((everything[1] < 0).sum())}
        report["outlier_share"] = round(report["outliers"] / max(report["documents"], 1), 6)
        report["updated"] = report.get("updated", 0) + len(new)
        report["fitted_with"] = run.report.get("fitted_with", run.versions)
        libraries = (faiss_package(), *LIBRARIES[run.parameters["method"]][1:])
        seconds = run.seconds + time.perf_counter() - began
        again = NewRun(CLUSTER, run.name, run.parameters, libraries, report, seconds, items, everything, arrays=arrays)
        write_run(collection, again, snapshot, replace=True)
    return Updated(run.name, len(new), outliers, len(docs) + len(new))


def _place(
    view: View, run: Run, new: np.ndarray, docs: np.ndarray, labels: np.ndarray, notify: Notify
) -> tuple[np.ndarray, np.ndarray]:
    vectors, means = normalized(document_vectors(view, new)), array_of(view.catalog, run, "centroids")
    if run.parameters["method"] == "kmeans":
        return to_nearest(vectors, means)
    fitted = np.flatnonzero(np.isin(docs, array_of(view.catalog, run, "fitted")))
    if not len(fitted):
        raise SondeError(f"no document is left that the cluster run {run.name!r} was fitted on: make it again")
    known = normalized(document_vectors(view, docs[fitted]))
    if run.parameters["outliers"] != "nearest":
        return belong(vectors, known, labels[fitted], array_of(view.catalog, run, "limits"), notify)
    found, sure = vote(vectors, known, labels[fitted], notify)
    outside = np.flatnonzero(found < 0)
    if len(means) and len(outside):
        found[outside], sure[outside] = to_nearest(vectors[outside], means)
    return found, sure


def _resized(items: list[Item], labels: np.ndarray) -> list[Item]:
    """Return the items with their sizes recounted; outliers that were none before get an item of their own."""
    sizes = dict(zip(*(part.tolist() for part in np.unique(labels, return_counts=True)), strict=True))
    if -1 in sizes and all(item.number != -1 for item in items):
        items = [Item(-1, OUTLIERS, {}), *items]
    return [Item(item.number, item.name, {**item.data, "size": sizes.get(item.number, 0)}) for item in items]

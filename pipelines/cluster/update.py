"""Putting documents that a run does not know yet into its clusters, without fitting anew."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.collection import Collection
from ...indexer.document_vectors import document_vectors, normalized
from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ...indexer.run_writing import NewRun, Snapshot, write_run
from ...indexer.runs import Item, Run, array_of, assignments_of, find_run, items_of
from ...indexer.view import View
from ..filters import documents_where
from .carrying import vote
from .clustering import LIBRARIES, faiss_package
from .density import to_nearest
from .describe import OUTLIERS
from .membership import belong
from .merge import followed


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


def update(collection: Collection, name: str | None = None, notify: Notify = silent) -> Updated:
    """Put the documents that a cluster run does not know into the nearest of its clusters; numbers and names stay.

    KMeans goes by the nearest centroid, density by the votes of the nearest documents that were fitted: a document that
    is farther from them than all but 5 % of the cluster's own are from each other is an outlier, unless the run left
    none. A run over a filter takes those that pass it.

    Raises:
        SondeError: There is no such run, nothing is left of what it was fitted on, or the collection cannot be written.
    """
    began = time.perf_counter()
    with collection.view() as view:
        run, snapshot = find_run(view.catalog, "cluster", name), Snapshot.of(view)
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
        again = NewRun(
            "cluster", run.name, run.parameters, libraries, report, seconds, items, everything, arrays=arrays
        )
        write_run(collection.path, again, snapshot, replace=True)
    return Updated(run.name, len(new), outliers, len(docs) + len(new))


def _place(
    view: View, run: Run, new: np.ndarray, docs: np.ndarray, labels: np.ndarray, notify: Notify
) -> tuple[np.ndarray, np.ndarray]:
    vectors, means = normalized(document_vectors(view, new)), array_of(view.catalog, run, "centroids")
    if run.parameters["method"] == "kmeans":
        return to_nearest(vectors, means)
    fitted = np.flatnonzero(np.isin(docs, array_of(view.catalog, run, "fitted")))
    if not len(fitted):
        raise SondeError(f"no document is left that the cluster run {run.name!r} was fitted on: make it anew")
    known = normalized(document_vectors(view, docs[fitted]))
    if run.parameters["outliers"] != "nearest":
        return belong(vectors, known, labels[fitted], array_of(view.catalog, run, "limits"), notify)
    found, sure = vote(vectors, known, labels[fitted], notify)
    outside = np.flatnonzero(found < 0)
    if len(means) and len(outside):
        found[outside], sure[outside] = to_nearest(vectors[outside], means)
    return found, sure


def _resized(items: list[Item], labels: np.ndarray) -> list[Item]:
    """Return the items with their sizes counted anew; outliers that were none before get an item of their own."""
    sizes = dict(zip(*(part.tolist() for part in np.unique(labels, return_counts=True)), strict=True))
    if -1 in sizes and all(item.number != -1 for item in items):
        items = [Item(-1, OUTLIERS, {}), *items]
    return [Item(item.number, item.name, {**item.data, "size": sizes.get(item.number, 0)}) for item in items]

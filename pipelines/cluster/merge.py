"""Merging clusters of a run by hand."""

import time
from collections.abc import Sequence

import numpy as np

from ...indexer.collection import Collection
from ...indexer.document_vectors import normalized
from ...indexer.errors import SondeError, UsageError
from ...indexer.run_writing import NewRun, write_run
from ...indexer.runs import Item, Run, array_of, assignments_of, find_run, items_of
from ...indexer.view import View
from ...indexer.wording import existing
from .clustering import LIBRARIES, faiss_package
from .corpus import Corpus
from .describe import REPRESENTATIVES, cluster_terms, ids_of, name_of

ARRAYS = ("centroids", "fitted", "limits")
MERGED = "merged"
"""The parameter that tells where the numbers of merged clusters lead."""


def merge_clusters(collection: Collection, numbers: Sequence[int], name: str | None = None) -> Item:
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
        raise UsageError("merging needs two clusters or more: --merge 3,7")
    with collection.view() as view:
        run = find_run(view.catalog, "cluster", name)
        items = {item.number: item for item in items_of(view.catalog, run)}
        known = [number for number in items if number >= 0]
        if missing := [number for number in chosen if number not in known]:
            raise SondeError(f"the run {run.name!r} has no cluster {missing[0]}: {existing(known)}")
        docs, labels, scores = assignments_of(view.catalog, run)
        corpus = Corpus.of(view, docs)
        labels = np.where(np.isin(labels, chosen), chosen[0], labels)
        item, mean = _described(view, corpus, run, labels, items[chosen[0]])
        arrays = _arrays(view, run)
    arrays["centroids"][chosen[0]] = mean
    kept = {number: one for number, one in items.items() if number not in chosen} | {item.number: item}
    leads = {**run.parameters.get(MERGED, {}), **{str(number): chosen[0] for number in chosen[1:]}}
    leads = {number: chosen[0] if to in chosen else to for number, to in leads.items()}
    new = NewRun(
        "cluster", run.name, run.parameters | {MERGED: leads}, (faiss_package(), *LIBRARIES[_method(run)][1:]),
        run.report | {"clusters": len(known) - len(chosen) + 1, "silhouette": None, "stability": None},
        run.seconds + time.perf_counter() - began, [kept[number] for number in sorted(kept)], (docs, labels, scores),
        arrays=arrays,
    )  # fmt: skip
    write_run(collection.path, new, corpus.snapshot, replace=True)
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
    """Return the merged cluster and its mean, float32 [d]."""
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
    by_hand = first.name != name_of(before, first.number)
    return Item(first.number, first.name if by_hand else name_of(own, first.number), data), mean


def _arrays(view: View, run: Run) -> dict[str, np.ndarray]:
    found = {}
    for name in ARRAYS:
        try:
            found[name] = array_of(view.catalog, run, name)
        except SondeError:  # KMeans keeps centroids only
            continue
    return found

"""Compare two clusterings, or two parts of a collection."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.arguments import Texts, as_texts
from ...indexer.errors import SondeError, UsageError
from ...indexer.store.collection import StoredCollection
from ...indexer.store.runs import assignments_of, items_of
from ..analysis.describe import agreement
from ..analysis.runs import named
from .contrast import DEPTH, Contrast, compare_clusters, compare_filters, compare_queries

SHARE = 0.2
"""Part of a cluster from which on it counts as going, or coming, from another."""


@dataclass(frozen=True, slots=True)
class Change:
    """Where the documents of a cluster are in the other run.

    Attributes:
        number: Of the cluster.
        name: Of the cluster.
        size: Documents that both runs know.
        parts: Number, name and share, at least a fifth, of the clusters there that hold its documents, largest first.
    """

    number: int
    name: str
    size: int
    parts: tuple[tuple[int, str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        parts = [{"number": n, "name": name, "share": round(share, 4)} for n, name, share in self.parts]
        return {"number": self.number, "name": self.name, "size": self.size, "parts": parts}


@dataclass(frozen=True, slots=True)
class RunComparison:
    """How far two runs agree on the documents that both know; outliers count as one cluster.

    Attributes:
        runs: Their names.
        documents: That both know.
        nmi: Normalised mutual information, 0 to 1.
        ari: Adjusted Rand index, at most 1, 0 for chance.
        split: Clusters of the first run whose documents are in several of the second.
        merged: Clusters of the second run whose documents come from several of the first.
    """

    runs: tuple[str, str]
    documents: int
    nmi: float
    ari: float
    split: tuple[Change, ...]
    merged: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        values = {"runs": list(self.runs), "documents": self.documents, "nmi": self.nmi, "ari": self.ari}
        return values | {name: [change.to_dict() for change in getattr(self, name)] for name in ("split", "merged")}


def compare_runs(collection: StoredCollection, first: str, second: str, kind: str | None = None) -> RunComparison:
    """Compare two cluster or topic runs.

    Raises:
        SondeError: There is no such run, or they have no document in common.
        UsageError: It is not clear which run is meant.
    """
    with collection.view() as view:
        runs = [named(view.catalog, name, kind) for name in (first, second)]
        known = [assignments_of(view.catalog, run)[:2] for run in runs]
        names = [{item.number: item.name for item in items_of(view.catalog, run)} for run in runs]
    (docs, one), (others, two) = (_once(*pair) for pair in known)
    common, here, there = np.intersect1d(docs, others, return_indices=True)
    if not len(common):
        raise SondeError(f"the runs {first!r} and {second!r} have no document in common")
    one, two = one[here], two[there]
    found = agreement(one, two)
    split, merged = _changes(one, two, *names), _changes(two, one, *reversed(names))
    return RunComparison((first, second), len(common), found["nmi"], found["ari"], split, merged)


def _once(docs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    docs, first = np.unique(docs, return_index=True)
    return docs, labels[first]


def _changes(
    here: np.ndarray, there: np.ndarray, names: dict[int, str], other_names: dict[int, str]
) -> tuple[Change, ...]:
    found = []
    for number in np.unique(here[here >= 0]).tolist():
        targets, counts = np.unique(there[here == number], return_counts=True)
        shares = counts / counts.sum()
        parts = [
            (int(targets[i]), other_names.get(int(targets[i]), ""), float(shares[i]))
            for i in np.argsort(-shares, kind="stable")
        ]
        large = tuple(part for part in parts if part[2] >= SHARE)
        if len(large) > 1:
            found.append(Change(number, names.get(number, ""), int(counts.sum()), large))
    return tuple(found)


def compare(
    collection: StoredCollection,
    *,
    clusters: Sequence[int] = (),
    where: Texts = (),
    queries: Texts = (),
    runs: Texts = (),
    run: str | None = None,
    k: int = DEPTH,
) -> Contrast | RunComparison:
    """Compare two clusters (of `run`), two filters, two queries (by their k best documents) or two runs.

    Raises:
        UsageError: Not exactly two of one of these were given, or one of them holds no document.
        SondeError: There is no such run.
    """
    where, queries, runs = as_texts(where, "filter"), as_texts(queries, "query"), as_texts(runs, "run")
    given = {"clusters": as_texts(clusters, "cluster"), "filters": where, "queries": queries, "runs": runs}
    named = {name: values for name, values in given.items() if values}
    if len(named) != 1 or any(len(values) != 2 for values in named.values()):
        said = "; ".join(f"{name}: {', '.join(values)}" for name, values in named.items()) or "nothing"
        raise UsageError(f"give two clusters, two filters, two queries or two runs, and nothing else, not {said}")
    if run is not None and not clusters:
        raise UsageError("a run is named for its clusters: give two of them")
    if clusters:
        return compare_clusters(collection, clusters, run)
    if where:
        return compare_filters(collection, where)
    return compare_queries(collection, queries, k) if queries else compare_runs(collection, runs[0], runs[1])

"""Compare two runs, or two parts of a collection: what they share and what distinguishes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..indexer.errors import SondeError, Texts, UsageError, arg, as_texts
from ..indexer.store.collection import StoredCollection
from ..indexer.store.documents import document_numbers
from ..indexer.store.kinds import CLUSTER, group_kinds
from ..indexer.store.members import items_inside
from ..indexer.store.runs import Run, assignments_of, find_run, items_of, list_runs
from ..indexer.store.view import View, document_vectors, normalized
from ..indexer.wording import counted, either, existing
from .analysis.corpus import texts_of
from .analysis.describe import ids_of, languages
from .analysis.runs import named
from .analysis.statistics import agreement, beyond_chance, term_log_odds
from .analysis.terms import count_terms
from .search.filters import documents_where, empty_hint

SAMPLE = 10_000
"""Documents of each side that are read for terms."""
TERMS, DOCUMENTS = 15, 5
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Side:
    """One of two parts of a collection.

    Attributes:
        name: What it is.
        documents: How many it holds.
        terms: Those that distinguish it from the other side with their z-scores, best first.
        examples: Ids of its documents that are farthest from the other side, as the difference of two cosines tells.
        beyond_chance: Those of `terms` whose difference is beyond chance. If the parts differ only by chance, at most
            5 % of comparisons have such a term.
    """

    name: str
    documents: int
    terms: tuple[tuple[str, float], ...]
    examples: tuple[str, ...]
    beyond_chance: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two parts of a collection, and how alike they are.

    Attributes:
        sides: Both.
        common: Documents in both; they count for neither side's terms and examples.
        similarity: Cosine between the means of both sides, -1 to 1.
    """

    sides: tuple[Side, Side]
    common: int
    similarity: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        shown = [
            {"name": side.name, "documents": side.documents, "terms": [list(pair) for pair in side.terms],
             "examples": list(side.examples), "beyond_chance": list(side.beyond_chance)}
            for side in self.sides
        ]  # fmt: skip
        return {"sides": shown, "common": self.common, "similarity": self.similarity}


def compare_clusters(collection: StoredCollection, numbers: Sequence[int], run: str | None = None) -> Contrast:
    """Return what tells two groups of a run apart; in a taxonomy, each with all groups under it.

    Args:
        collection: Where the run is.
        numbers: Of both groups.
        run: Name of a cluster or topic run or of a taxonomy; the newest cluster run if None.

    Raises:
        SondeError: There is no such run.
        UsageError: Its items are not numbered groups, it has no such group, or one is empty.
    """
    with collection.view() as view:
        found = _run_of_groups(view, run)
        docs, labels, _ = assignments_of(view.catalog, found)
        items = {item.number: item.name for item in items_of(view.catalog, found)}
        for number in numbers:
            if number not in items:
                known = existing(number for number in items if number >= 0)
                said = f"the {found.kind} run {found.name!r} has no {found.kind.item} {number}: {known}"
                raise UsageError(said, code="not-found", field="clusters", value=number)
        names = [f"{number} ({items[number]})" for number in numbers]
        inside = [items_inside(view.catalog, found, number) for number in numbers]
        return _contrast(view, names, [np.unique(docs[np.isin(labels, each)]) for each in inside])


def _run_of_groups(view: View, name: str | None) -> Run:
    """Return the run of this name; a cluster run before others of the name, and the newest one if it is None.

    Raises:
        SondeError: There is none.
        UsageError: It has no groups, or it is not clear which run is meant.
    """
    if name is None or any(run.name == name for run in list_runs(view.catalog, CLUSTER, count=False)):
        return find_run(view.catalog, CLUSTER, name)
    run = named(view.catalog, name)
    if not run.kind.groups:
        said = f"the {run.kind} run {name!r} has no groups to compare: give a {either(group_kinds())} run"
        raise UsageError(said, code="bad-kind", field="run", value=name)
    return run


def compare_filters(collection: StoredCollection, filters: Sequence[str], sample: int = SAMPLE) -> Contrast:
    """Return what tells the documents of two filters apart, for example those of two years.

    Terms are counted in `sample` documents of each side, at most.

    Raises:
        UsageError: A filter is not valid, or lets no document pass.
    """
    with collection.view() as view:
        docs = [documents_where(view.catalog, text) for text in filters]
        for text, some in zip(filters, docs, strict=True):
            if not len(some) and (hint := empty_hint(view.catalog, text)):
                raise UsageError(f"no document passes the filter {text!r}{hint}")
        return _contrast(view, filters, docs, sample)


def compare_queries(collection: StoredCollection, queries: Sequence[str], k: int = DEPTH) -> Contrast:
    """Return what tells the k documents that answer one query best from those that answer another.

    Raises:
        UsageError: k or a query is not valid, or both find the same documents.
        SondeError: The collection's model is not available.
    """
    from .search.search import search_many
    from .search.settings import SearchSettings

    found = [
        [hit.id for hit in results]
        for results in search_many(collection, queries, SearchSettings(k=k, collapse=False), excerpts=False)
    ]
    with collection.view() as view:
        numbers = [sorted(n for key in keys if (n := view.document_number(key)) is not None) for keys in found]
        return _contrast(view, queries, [np.array(some, np.int64) for some in numbers])


def _contrast(view: View, names: Sequence[str], docs: Sequence[np.ndarray], sample: int = SAMPLE) -> Contrast:
    if len(names) != 2:
        raise UsageError(f"two parts can be compared, and {len(names)} were given")
    empty = [name for name, some in zip(names, docs, strict=True) if not len(some)]
    if empty:
        raise UsageError(f"{empty[0]!r} holds no documents: there is nothing to compare")
    both = np.intersect1d(docs[0], docs[1])
    own = [np.setdiff1d(some, both) for some in docs]
    if not all(map(len, own)):
        raise UsageError("every document of one side is also on the other: there is nothing to tell them apart by")
    vectors = [normalized(document_vectors(view, some)) for some in own]
    means = normalized(np.stack([some.mean(axis=0, dtype=np.float64) for some in vectors]))
    terms = _terms(view, own, sample)
    sides = []
    for side, other in ((0, 1), (1, 0)):
        apart = vectors[side] @ (means[side] - means[other])
        best = own[side][np.lexsort((own[side], -apart))[:DOCUMENTS]]
        listed = tuple((term, score) for term, score, _ in terms[side])
        certain = tuple(term for term, _, certain in terms[side] if certain)
        sides.append(Side(names[side], len(docs[side]), listed, tuple(ids_of(view, best)), certain))
    return Contrast((sides[0], sides[1]), len(both), float(means[0] @ means[1]))


def against_rest(view: View, docs: np.ndarray, sample: int = SAMPLE) -> tuple[tuple[str, float], ...]:
    """Return the terms that tell some documents from all others, with their z-scores, best first.

    Args:
        view: Of the collection.
        docs: int64, their numbers; those that no longer exist are left out.
        sample: How many of them, and how many of the others, are read.
    """
    numbers = document_numbers(view.catalog)
    own = np.intersect1d(docs, numbers)
    found = _terms(view, [own, np.setdiff1d(numbers, own, assume_unique=True)], sample)[0]
    return tuple((term, score) for term, score, _ in found)


def _terms(view: View, docs: Sequence[np.ndarray], sample: int = SAMPLE) -> list[list[tuple[str, float, bool]]]:
    """Return each side's best terms, their z-scores, and whether they are beyond chance."""
    random = np.random.default_rng(0)
    some = [np.sort(random.choice(part, sample, replace=False)) if len(part) > sample else part for part in docs]
    counts = count_terms(texts_of(view, np.concatenate(some)), languages(view))
    if counts is None:
        return [[], []]
    side = np.repeat([0, 1], [len(part) for part in some])
    scores, certain = term_log_odds(counts, side), beyond_chance(counts, side)
    found = []
    for place, sign in enumerate((1, -1)):
        order = np.lexsort((counts.terms, -sign * scores))[:TERMS].tolist()
        listed = [i for i in order if sign * scores[i] > 0]
        found.append(
            [(str(counts.terms[i]), round(float(sign * scores[i]), 3), bool(certain[place, i])) for i in listed]
        )
    return found


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
        notes: Which run gives documents several labels, of which only the likeliest counts.
    """

    runs: tuple[str, str]
    documents: int
    nmi: float
    ari: float
    split: tuple[Change, ...]
    merged: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        values = {"runs": list(self.runs), "documents": self.documents, "nmi": self.nmi, "ari": self.ari}
        changes = {name: [change.to_dict() for change in getattr(self, name)] for name in ("split", "merged")}
        return values | changes | {"notes": list(self.notes)}


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
    notes = tuple(_several(name, docs) for name, (docs, _) in zip((first, second), known, strict=True))
    return RunComparison(
        (first, second), len(common), found["nmi"], found["ari"], split, merged, tuple(filter(None, notes))
    )


def _several(run: str, docs: np.ndarray) -> str:
    """Return a note if a run gives documents several labels, "" otherwise."""
    several = int((np.unique(docs, return_counts=True)[1] > 1).sum())
    have = "has" if several == 1 else "have"
    said = (
        f"{counted(several, 'document')} of {run!r} {have} several labels: only the likeliest one of each counts here"
    )
    return said if several else ""


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
    """Compare two groups of `run`, two filters, two queries (by their k best documents) or two runs.

    Raises:
        UsageError: Not exactly two of one of these were given, or one of them holds no document.
        SondeError: There is no such run.
    """
    where, queries, runs = as_texts(where, "filter"), as_texts(queries, "query"), as_texts(runs, "run")
    given = {"cluster": as_texts(clusters, "cluster"), "filter": where, "query": queries, "run": runs}
    named = {name: values for name, values in given.items() if values}
    if len(named) != 1 or any(len(values) != 2 for values in named.values()):
        said = " and ".join(
            f"{counted(len(values), name, 'queries' if name == 'query' else None)} ({', '.join(values)})"
            for name, values in named.items()
        )
        wanted = "give two clusters, two filters, two queries or two runs"
        raise UsageError(f"{said} cannot be compared: {wanted}" if said else wanted)
    if run is not None and not clusters:
        raise UsageError(f"{arg('run')} is for two groups of a run: give their numbers with {arg('clusters')}")
    if clusters:
        return compare_clusters(collection, clusters, run)
    if where:
        return compare_filters(collection, where)
    return compare_queries(collection, queries, k) if queries else compare_runs(collection, runs[0], runs[1])

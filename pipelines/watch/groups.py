"""The groups that are compared, of a run or made for the purpose, and how far their shares of the documents differ."""

from dataclasses import dataclass

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from ...indexer.store.runs import Run, assignments_of, items_of, list_runs
from ...indexer.store.view import View
from ...indexer.wording import counted
from ..analysis.corpus import Corpus
from ..analysis.describe import VOTERS, ballot, placeholder
from ..analysis.naming.corpus import naming_of
from ..analysis.neighbours import neighbours
from ..analysis.runs import named
from ..analysis.statistics import Batch, chances
from ..cluster.kmeans import fit_kmeans

MOST, FEWEST = 50, 2
"""Clusters that are made where there is no run."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of vectors.

    Attributes:
        run: Name of the run that they are from; None if they were made for the purpose.
        names: Of the groups 0, 1, 2 …
        labels: int64 [m], the group of each vector, -1 for none.
    """

    run: str | None
    names: tuple[str, ...]
    labels: np.ndarray


def groups_of(
    view: View, corpus: Corpus, new: np.ndarray, run: str | None, seed: int, notify: Notify = silent
) -> Groups:
    """Return the groups of a run: the named one or the newest; clusters of all documents if there is none.

    Args:
        view: Of the collection.
        corpus: The old and the new documents.
        new: bool [n], which documents are new.
        run: Name of a cluster or topic run, or None.
        seed: Of the clusters.
        notify: Receives progress.

    Raises:
        SondeError: There is no such run.
        UsageError: It is of another kind, or knows no old document.
    """
    found = run_to_compare(view, run)
    if found is None:
        count = int(np.clip(round(np.sqrt(len(corpus.vectors)) / 2), FEWEST, MOST))
        labels = fit_kmeans(corpus.vectors, min(count, len(corpus.vectors)), seed).labels
        naming = naming_of(view, corpus, labels, int(labels.max(initial=-1)) + 1, seed)
        made = enumerate(naming.or_quoted(naming.choose()))
        return Groups(None, tuple(name or placeholder(number) for number, name in made), labels)
    numbers = [item.number for item in items_of(view.catalog, found) if item.number >= 0]
    names = {item.number: item.name for item in items_of(view.catalog, found)}
    labels = _labels(view, corpus, new, found, notify)
    places = np.full(max([*numbers, *labels.tolist()], default=-1) + 2, -1)
    places[numbers] = np.arange(len(numbers))
    return Groups(found.name, tuple(names[number] for number in numbers), places[labels])


def run_to_compare(view: View, name: str | None) -> Run | None:
    """Return the run of this name, or the newest with groups; None if there is none.

    Raises:
        SondeError: There is no such run.
        UsageError: It is of another kind.
    """
    if name is None:
        runs = [run for run in list_runs(view.catalog) if run.kind.groups and run.complete]
        return runs[-1] if runs else None
    run = named(view.catalog, name)
    if not run.kind.groups:
        said = f"the {run.kind} run {name!r} has no groups to compare: give a cluster, topic or taxonomy run"
        raise UsageError(said, code="bad-kind", field="run", value=name)
    return run


def _labels(view: View, corpus: Corpus, new: np.ndarray, run: Run, notify: Notify) -> np.ndarray:
    """Return the group of each vector, int64 [m].

    A run that was fitted on all documents decides, and so does a taxonomy that knows all of them: a document is where
    people keep it. Otherwise the nearest old documents vote (of a taxonomy, all that it knows), on themselves too, each
    without its own vote. If only the new ones were placed, both parts would differ even if their texts did not.
    """
    docs, numbers, _ = assignments_of(view.catalog, run)
    docs, first = np.unique(docs, return_index=True)
    known = dict(zip(docs.tolist(), numbers[first].tolist(), strict=True))
    given = [known.get(doc) for doc in corpus.snapshot.docs.tolist()]
    kept, missing = run.kind.logged, given.count(None)
    placed = run.report.get("updated") or run.report.get("carried")
    if not missing and (kept or not placed):
        return np.array(given, np.int64)[corpus.first]
    voters = {}
    for place in range(len(given)) if kept else np.flatnonzero(~new).tolist():
        if (number := given[place]) is not None:
            voters.setdefault(int(corpus.group[place]), number)
    if not voters:
        what = "no document that is compared" if kept else "no old document"
        said = f"the {run.kind} run {run.name!r} knows {what}: give another run, or make one"
        raise UsageError(said, code="empty", field="run", value=run.name)
    if kept:
        said = f"the {run.kind} {run.name!r} does not know {counted(missing, 'document')} yet, so similar documents "
        said += f"decide the group of each: to compare its groups as they are, run `sonde {run.kind} update` first"
        notify(said)
    rows, labels = np.array(list(voters)), np.array(list(voters.values()))
    return _voted(corpus.vectors, rows, labels, notify)


def _voted(vectors: np.ndarray, rows: np.ndarray, labels: np.ndarray, notify: Notify) -> np.ndarray:
    """Return the group that the nearest of the vectors `rows`, each with its label, give every vector."""
    found, cosines = neighbours(vectors, vectors[rows], VOTERS + 1, notify)
    if found.shape[1] > 1:
        own = rows[found] == np.arange(len(vectors))[:, None]
        own[~own.any(axis=1), -1] = True
        found, cosines = (part[~own].reshape(len(vectors), -1) for part in (found, cosines))
    return ballot(labels[found], cosines)[0]


@dataclass(frozen=True, slots=True)
class Shares:
    """The groups of new and of old texts.

    Attributes:
        new: float64 [k], the share of each group among the new texts, 0 to 1; equal texts count once.
        old: float64 [k], among the old texts.
        p: float64 [k], the chance that any group differs that much if new documents are like old ones.
    """

    new: np.ndarray
    old: np.ndarray
    p: np.ndarray


def compare_shares(batch: Batch, labels: np.ndarray, count: int, times: int, seed: int) -> Shares:
    """Compare the shares of groups.

    A group's score is the difference of its two shares, standardised by what the permutations give for this group. The
    largest score of each permutation decides for all groups, so that many groups do not mean many false alarms.

    Args:
        batch: The texts.
        labels: int64 [m], the group of each text, -1 for none, which counts for the total only.
        count: How many groups there are.
        times: Number of permutations.
        seed: Of the permutations.
    """
    parts = np.array([_shares(each, labels, count) for each in batch.exchanged(times, seed)])
    apart = parts[:, 0] - parts[:, 1]
    mean, spread = apart.mean(axis=0), np.maximum(apart.std(axis=0), 1e-12)
    new, old = _shares(batch, labels, count)

    def scores(difference: np.ndarray) -> np.ndarray:
        return np.abs(difference - mean) / spread

    by_chance = np.sort(scores(apart).max(axis=1, initial=0))
    return Shares(new, old, chances(scores(new - old), by_chance))


def _shares(batch: Batch, labels: np.ndarray, count: int) -> np.ndarray:
    """Return float64 [2, k] shares of the groups among the new texts and among the old ones."""
    found = []
    for part in (batch.new, batch.old):
        inside = labels[part]
        found.append(np.bincount(inside + 1, minlength=count + 1)[1:] / max(len(inside), 1))
    return np.array(found)

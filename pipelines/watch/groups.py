"""What a watch compares: the new and the old documents, and the shares that groups have of them."""

from dataclasses import dataclass

import numpy as np

from ...indexer.errors import SondeError, UsageError, arg
from ...indexer.progress import Notify, silent
from ...indexer.readers.column_types import looks_like_dates
from ...indexer.store.documents import column_values, document_numbers
from ...indexer.store.fields import Field
from ...indexer.store.kinds import CLUSTER, LABEL, MAP, TAXONOMY, TOPIC
from ...indexer.store.runs import Run, assignments_of, items_of, list_runs, places_of
from ...indexer.store.view import View
from ...indexer.wording import counted, existing
from ..analysis.corpus import Corpus
from ..analysis.describe import VOTERS, ballot, placeholder
from ..analysis.naming.names import naming_of
from ..analysis.neighbours import neighbours, sample_rows
from ..analysis.runs import named
from ..analysis.statistics import Batch, chances
from ..cluster.kmeans import fit_kmeans
from ..search.filters import documents_where
from ..search.text_dates import why_no_dates
from .settings import WatchSettings

COMPARED = 20_000
"""Old documents, and new ones, that are compared; of more, that many are sampled at random."""
KNOWING = (CLUSTER, TOPIC, MAP, LABEL, TAXONOMY)
"""Kinds of run that say something of every document that they read; a taxonomy, of those of its last update."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The documents of both parts.

    Attributes:
        new: int64, numbers of the new documents, ascending.
        old: int64, numbers of the old documents, ascending.
        notes: Which documents were left out, in sentences.
    """

    new: np.ndarray
    old: np.ndarray
    notes: tuple[str, ...] = ()

    def sampled(self, seed: int) -> "Parts":
        """Return at most `COMPARED` documents of each part."""
        notes, kept = list(self.notes), []
        for name, docs in (("new", self.new), ("old", self.old)):
            kept.append(docs[sample_rows(len(docs), COMPARED, seed)])
            if len(docs) > COMPARED:
                notes.append(f"{COMPARED:,} of the {len(docs):,} {name} documents were compared, chosen at random")
        return Parts(kept[0], kept[1], tuple(notes))


def parts_of(view: View, settings: WatchSettings) -> Parts:
    """Return the new and the old documents; there may be no new ones.

    Raises:
        UsageError: The date column or the run cannot tell what is new.
        SondeError: There is no such run, or there is no old document.
    """
    moment = settings.moment
    names = {run.name for run in list_runs(view.catalog, count=False)}
    if moment is None and settings.like_date and settings.since not in names:
        said = f"{arg('since')} {settings.since!r} is not a date: write it as 2026-11-01, or as 2026-11-01T12:00"
        raise UsageError(said, code="bad-date", field="since", value=settings.since)
    found = _since_run(view, settings.since) if moment is None else _since_date(view, moment, settings.date)
    if not len(found.old):
        said = f"there are no old documents to compare since {settings.since!r}: give a later date or run"
        raise SondeError(said, code="empty", field="since", value=settings.since)
    return found


def _since_date(view: View, moment: str, column: str | None) -> Parts:
    field = _date_column(view, column)
    values = {doc: value for doc, value in column_values(view.catalog, field).items() if value is not None}
    docs = document_numbers(view.catalog)
    dated = np.array([doc for doc in docs.tolist() if doc in values], np.int64)
    new = np.array([values[doc] >= moment for doc in dated.tolist()], bool)
    missing = len(docs) - len(dated)
    notes = (f"{counted(missing, 'document')} without a date in {field.name!r} left out",) if missing else ()
    return Parts(dated[new], dated[~new], notes)


def _date_column(view: View, name: str | None) -> Field:
    dates = [field for field in view.fields.values() if field.type == "date"]
    known = [field.name for field in dates]
    if name is None and len(dates) == 1:
        return dates[0]
    if name in known:
        return view.fields[name]
    if name in view.fields and view.fields[name].type == "text":
        why = why_no_dates(name, _present(view, view.fields[name]))
        raise UsageError(f"the column {name!r} {why}", code="not-found", field="date", value=name, alternatives=known)
    if name is not None:
        what = "does not hold dates" if name in view.fields else "does not exist"
        said = f"the column {name!r} {what}: of columns with dates, {existing(known)}"
        raise UsageError(said, code="not-found", field="date", value=name, alternatives=known)
    if not known:
        said = f"no column holds dates: {_way_to_dates(view)}, or give {arg('since')} the name of a run"
        raise UsageError(said, code="not-found", field="date")
    said = f"several columns hold dates: choose one with {arg('date')} ({', '.join(known)})"
    raise UsageError(said, code="ambiguous", field="date", alternatives=known)


def _way_to_dates(view: View) -> str:
    """Return what to do in a collection without a column of dates: a text column may hold some."""
    for field in view.fields.values():
        if field.type == "text" and looks_like_dates(values := _present(view, field)):
            return f"{field.name!r} {why_no_dates(field.name, values)}"
    return "index the texts with a date column"


def _present(view: View, field: Field) -> list[str]:
    return [value for value in column_values(view.catalog, field).values() if value is not None]


def _since_run(view: View, name: str) -> Parts:
    run = named(view.catalog, name)
    if run.kind not in KNOWING:
        said = f"the {run.kind} run {name!r} does not know every document: "
        said += "give a cluster, topic, map or label run, or a taxonomy"
        raise UsageError(said, code="bad-kind", field="since", value=name)
    known, where = _known(view, run), run.parameters.get("where")
    every = document_numbers(view.catalog) if where is None else documents_where(view.catalog, where)
    notes = (f"only documents that pass the filter of the run {name!r} were compared",) if where is not None else ()
    return Parts(np.setdiff1d(every, known), np.intersect1d(every, known), notes)


def _known(view: View, run: Run) -> np.ndarray:
    found = places_of(view.catalog, run) if run.kind is MAP else assignments_of(view.catalog, run)
    return np.unique(found[0])


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

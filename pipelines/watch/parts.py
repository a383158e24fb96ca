"""Which documents are new, and which are old."""

from dataclasses import dataclass

import numpy as np

from ...indexer.errors import SondeError, UsageError, arg
from ...indexer.readers.column_types import looks_like_dates
from ...indexer.store.documents import column_values, document_numbers
from ...indexer.store.fields import Field
from ...indexer.store.kinds import CLUSTER, LABEL, MAP, TAXONOMY, TOPIC
from ...indexer.store.runs import Run, assignments_of, list_runs, places_of
from ...indexer.store.view import View
from ...indexer.wording import counted, existing
from ..analysis.neighbours import sample_rows
from ..analysis.runs import named
from ..search.filters import documents_where
from ..search.text_dates import why_no_dates
from .settings import WatchSettings

MOST = 20_000
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
        """Return at most `MOST` documents of each part."""
        notes, kept = list(self.notes), []
        for name, docs in (("new", self.new), ("old", self.old)):
            kept.append(docs[sample_rows(len(docs), MOST, seed)])
            if len(docs) > MOST:
                notes.append(f"{MOST:,} of the {len(docs):,} {name} documents were compared, chosen at random")
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

"""Notes on a labelling: what a user should check, and what to do about it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...indexer.errors import Message, arg
from ...indexer.store.catalog import Catalog
from ...indexer.store.kinds import LABEL
from ...indexer.store.run_writing import NewRun
from ...indexer.store.runs import assignments_of, items_of, list_runs
from ...indexer.store.view import View
from ...indexer.wording import counted
from ..search.foreign import languages_of
from .labels import NONE_NAME, Label
from .margins import FEW_CORRECTIONS, tell_of_all
from .none import HALF
from .outcome import LabelReport
from .settings import LabelSettings

MOST = 1 / 2
"""Share of all documents above which a static model has probably given one label too many."""
NEARLY_ALL = 0.9
"""Share of the documents above which a note says that they were refused."""
FEWEST = 20
"""Documents that a label needs before the corrections, for a note on how many it lost."""
LOST = 3 / 4
MOVED = 10
"""Other documents for each correction, from which on a note says how many have another label."""
UNCALIBRATED = (
    "without corrections, texts often get too many labels: code about 60 random texts by hand "
    "(`sonde runs correct C.sonde --random -k 60 --to hand.csv`) and label again"
)
Entries = tuple[np.ndarray, np.ndarray]


def notes_of(
    report: LabelReport, settings: LabelSettings, none: np.ndarray | None, static: bool, lost: Sequence[str]
) -> tuple[str, ...]:
    """Return notes on a run, each a sentence.

    Args:
        report: The run's report.
        settings: The settings.
        none: float [n], the chance of none of each document, if there is one.
        static: Whether the labels come from the similarity of a static model.
        lost: What `losses` returns, and other notes on corrections.
    """
    large = [name for name in report.counts if static and _takes_most(report, name)]
    notes = [
        f"{name!r} takes {report.counts[name] / report.documents:.0%} of all documents, which a static model often gets"
        f" wrong: read some of them, or use {arg('engine')} nli"
        for name in large
    ]
    notes += [
        f"{name!r} takes a third of all documents or more, mostly by narrow margins"
        for name in report.doubtful
        if name not in large
    ]
    if settings.multi_label and not report.corrected and len(report.counts) > 1:
        notes.append(UNCALIBRATED)
    notes += [*_of_none(report, settings, none), *lost]
    if report.changed:
        notes.append(f"{counted(report.changed, 'document')} left out: changed during the run")
    return tuple(Message(note) for note in notes)


def few_nones(truth: np.ndarray) -> tuple[str, ...]:
    """Return a note if corrections to "none of these" are too few to learn from.

    Args:
        truth: float [corrected, labels], 1 for each label of a corrected document; all 0 for "none of these".
    """
    nones = int((~truth.any(axis=1)).sum())
    if not nones or tell_of_all(truth):
        return ()
    verb = "changes only its own document" if nones == 1 else "change only their own documents"
    said = f"{counted(nones, 'correction')} to {NONE_NAME!r} {verb}: Sonde learns from such corrections"
    return (f"{said} if a run has {FEW_CORRECTIONS} corrections or more, one of them with a label",)


def untrained(view: View) -> tuple[str, ...]:
    """Return a sentence if the model was not trained on the language of most texts; nothing if that is not known."""
    found = languages_of(view)
    if not found.mostly_foreign:
        return ()
    ways = "read some texts of each label, correct 50 or more, or change the model with `sonde model`"
    return (f"{found.why}: {ways}",)


def _takes_most(report: LabelReport, name: str) -> bool:
    """Whether a label of three or more takes more than half of all documents."""
    labels = len(report.counts.keys() - {NONE_NAME})
    return labels > 2 and name != NONE_NAME and report.counts[name] > MOST * report.documents


def _of_none(report: LabelReport, settings: LabelSettings, none: np.ndarray | None) -> list[str]:
    if settings.refuses and report.counts.get(NONE_NAME, 0) > NEARLY_ALL * report.documents:
        share = report.counts[NONE_NAME] / report.documents
        return [f"{share:.0%} of the documents were refused: correct some that fit a label, and label again"]
    if NONE_NAME in report.counts or none is None:
        return []
    correcting = f"correct 20 random documents, to {NONE_NAME!r} where no label fits, and label again"
    if settings.promise is not None:
        return [f"no document was refused: if some fit no label, give a larger {arg('promise')}, or {correcting}"]
    if settings.none:
        said = f"no document was refused: the highest chance of none is {none.max():.2f}, and {arg('none')} refuses"
        return [f"{said} from {HALF} on. If some fit no label, give {arg('promise')} 0.1, or {correcting}"]
    if not report.likely_none:
        return []
    many, verb = counted(report.likely_none, "document"), "fits" if report.likely_none == 1 else "fit"
    said = f"{many} ({report.likely_none / report.documents:.1%}) probably {verb} no label, and there may be more"
    return [f"{said}: see {arg('none')}"]


def moved(before: Entries, after: Entries, known: np.ndarray, labels: int) -> list[str]:
    """Return a note if learning from corrections gave many other documents another label.

    Args:
        before: int64 texts and int64 labels of them without the corrections.
        after: The same with them.
        known: int64, the corrected texts.
        labels: How many labels there are.
    """
    first, then = (texts.astype(np.int64) * (labels + 1) + numbers + 1 for texts, numbers in (before, after))
    others = np.setdiff1d(np.setxor1d(first, then) // (labels + 1), known)
    if len(others) < max(MOVED * len(known), FEWEST):
        return []
    cause = f"learning from {counted(len(known), 'correction')}"
    return [f"{cause} changed the labels of {len(others):,} other documents: read some of them, or correct more"]


def relabelled(catalog: Catalog, new: NewRun) -> list[str]:
    """Return notes if documents get another label than in the run that a new one replaces, or settings are missing.

    Labels are compared by their names. Documents that changed since that run have no label in it, and do not count.
    """
    old = next((run for run in list_runs(catalog, LABEL, count=False) if run.name == new.name and run.complete), None)
    if old is None or new.assignments is None:
        return []
    notes = _other_settings(old.parameters, new.parameters)
    codes = {item.name: item.number for item in new.items}
    own = {item.number: codes.get(item.name, -2 - place) for place, item in enumerate(items_of(catalog, old))}
    docs, items, _ = assignments_of(catalog, old)
    before = set(zip(docs.tolist(), (own[item] for item in items.tolist()), strict=True))
    after = set(zip(new.assignments[0].tolist(), new.assignments[1].tolist(), strict=True))
    both = {doc for doc, _ in before} & {doc for doc, _ in after}
    moved = {doc for doc, _ in before ^ after} & both
    among = f"{len(moved):,} of {counted(len(both), 'earlier document')}"
    return notes + ([f"the labels of {among} differ from those in the replaced run"] if moved else [])


def _other_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return a note for each setting that decides what is in a run and that the replaced run had, but not the new."""
    notes = []
    if old.get("multi_label") and not new.get("multi_label"):
        notes.append(f"the replaced run had {arg('multi_label')}; this one gives each document one label at most")
    if (where := old.get("where")) and where != new.get("where"):
        notes.append(f"the replaced run had only the documents that match {where!r} ({arg('where')})")
    return notes


def losses(labels: Sequence[Label], before: np.ndarray, after: np.ndarray, truth: np.ndarray) -> list[str]:
    """Return a note for each label that lost more than three quarters of its documents to the corrections.

    Args:
        labels: The labels.
        before: int64 [m], a label for each entry without the corrections; -1 for none.
        after: int64 [m], the same with them.
        truth: float [corrected, labels], 1 for each label of a corrected document.
    """
    notes = []
    for number, label in enumerate(labels):
        had, has = int((before == number).sum()), int((after == number).sum())
        if had < FEWEST or has >= (1 - LOST) * had:
            continue
        favour = int((truth[:, number] > 0).sum())
        many = f"only {counted(favour, 'correction')}" if favour else "no correction"
        naming = f"{many} {'name' if favour > 1 else 'names'} it"
        way = f"if {has:,} are too few, find more" if has else "find"
        notes.append(
            f"the corrections leave {label.name!r} with {counted(has, 'document')} instead of {had:,}, and {naming}: "
            f"{way} documents of this label and correct them"
        )
    return notes

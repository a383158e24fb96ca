"""Corrections: labels that a person assigned to documents, stored beside the label run that they correct.

Corrections are stored as a correction run with the name of the label run. They remain when the label run is replaced,
and they are exported. A correction is deleted when its document is deleted or the document's text changes. The next
labelling with that name learns from the corrections and applies them to their documents.
"""

import csv
import io
import json
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from ...indexer.errors import Ids, SondeError, UsageError, arg, as_text, as_texts
from ...indexer.files import check_target, text_of, write_output
from ...indexer.progress import Notify, silent
from ...indexer.readers.columns import ids_or, place_of_ids
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import ids_by_number
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.run_writing import NewRun, change_run, delete_run
from ...indexer.store.runs import Item, Run, assignments_of, items_of, list_runs
from ...indexer.store.spreadsheets import Formulas, unquoted
from ...indexer.upkeep.delete import numbers_of
from ...indexer.wording import counted, existing, on_one_line
from .labels import NONE, NONE_NAME, Label

SUFFIXES = (".csv", ".jsonl")
_ADVICE = f"give a label, or {NONE_NAME!r}"


@dataclass(frozen=True, slots=True)
class Correction:
    """The correct labels of a document; empty for "none of these"."""

    id: str
    labels: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"id": self.id, "label": self.labels[0] if self.labels else NONE_NAME, "labels": list(self.labels)}


@dataclass(frozen=True, slots=True)
class Corrected:
    """What `correct` stored.

    Attributes:
        run: The label run that was corrected.
        documents: Number of documents that were corrected.
        total: Number of corrections that the run has now.
    """

    run: str
    documents: int
    total: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Truths:
    """The corrections that a labelling can use.

    Attributes:
        docs: int64 [m], document numbers, ascending.
        shares: float64 [m, labels]: 1 for each label of a document; all 0 for "none of these".
        unknown: Names of labels that occur in the corrections but not in the labelling.
        notes: Sentences on corrections of other runs, which the labelling does not use.
    """

    docs: np.ndarray
    shares: np.ndarray
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def correct(collection: StoredCollection, given: Mapping[str, str | Sequence[str]], run: str = "labels") -> Corrected:
    """Store corrections, which the next labelling with the run's name applies.

    Args:
        collection: The collection of the documents.
        given: One or several labels for each document id; "none of these" means that no label fits.
        run: The label run to correct.

    Raises:
        UsageError: A label is empty or not in the label run, or several are given but the run allows one per document.
        SondeError: An id does not exist, or another process is writing.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"{reprlib.repr(given)} is not a valid correction: give labels by id, as {{'12': 'refund'}}")
    said = {as_text(id, "id"): _names(labels, id) for id, labels in given.items()}

    def changed(catalog: Catalog, old: Run | None) -> NewRun:
        known, several = _labels_of(catalog, run)
        if old is None and not known:
            _refuse_slip(catalog, run)
        spelled = {id: _spelled(names, known, run) for id, names in said.items()}
        if known and not several and (both := next((n for n in spelled.values() if len(n) > 1), None)):
            raise UsageError(f"the run {run!r} gives each text one label: choose one of {', '.join(both)}")
        docs = dict(zip(said, numbers_of(catalog, list(said)), strict=True))
        kept = _kept(catalog, old) | {docs[id]: names for id, names in spelled.items()}
        return _run(run, kept, several or any(len(names) > 1 for names in kept.values()))

    total = int(change_run(collection, CORRECTION, run, changed).report["documents"])
    return Corrected(run, len(said), total)


def forget_corrections(collection: StoredCollection, ids: Ids, run: str = "labels") -> int:
    """Delete the corrections of documents; return how many corrections are left.

    Raises:
        SondeError: A document does not exist, the run has no corrections, or another process is writing.
    """
    keys = as_texts(ids, "id")

    def changed(catalog: Catalog, old: Run | None) -> NewRun:
        if old is None:
            raise SondeError(f"the run {run!r} has no corrections")
        gone = set(numbers_of(catalog, keys))
        kept = {doc: names for doc, names in _kept(catalog, old).items() if doc not in gone}
        return _run(run, kept, bool(old.parameters.get("multi_label")))

    left = int(change_run(collection, CORRECTION, run, changed).report["documents"])
    if not left:
        delete_run(collection, CORRECTION, run)
    return left


def corrections(collection: StoredCollection, run: str = "labels") -> list[Correction]:
    """Return the corrections of a run, in document order."""
    with collection.view() as view:
        kept = _kept(view.catalog, _find(view.catalog, run))
        keys = ids_by_number(view.catalog, sorted(kept))
    return [Correction(keys[doc], tuple(kept[doc])) for doc in sorted(kept)]


def take_corrections(
    collection: StoredCollection, source: str, run: str, labels: Sequence[Label], several: bool
) -> int:
    """Copy corrections with labels of another run to it, where it has none for a document; return how many were copied.

    Args:
        collection: The collection of the documents.
        source: The run whose corrections are copied.
        run: The run that gets them, which need not exist yet.
        labels: Its labels.
        several: Whether it may give a text several labels; otherwise, corrections with several are left out.

    Raises:
        SondeError: The source has no corrections, or another process is writing.
    """
    spelled = {label.name.casefold(): label.name for label in labels}

    def usable(catalog: Catalog, own: Mapping[int, list[str]]) -> dict[int, list[str]]:
        return {
            doc: [spelled[name.casefold()] for name in names]
            for doc, names in _kept(catalog, _find(catalog, source)).items()
            if doc not in own and (several or len(names) < 2) and all(name.casefold() in spelled for name in names)
        }

    def changed(catalog: Catalog, old: Run | None) -> NewRun:
        kept = (own := _kept(catalog, old)) | usable(catalog, own)
        return _run(run, kept, any(len(names) > 1 for names in kept.values()))

    with collection.view() as view:
        known = [each.name for each in list_runs(view.catalog, CORRECTION, count=False)]
        many = len(usable(view.catalog, _kept(view.catalog, _find(view.catalog, run))))
    if source not in known:
        said = f"the run {source!r} has no corrections: {existing(known)}"
        raise SondeError(said, code="not-found", field="corrections_of", value=source, alternatives=known)
    if many:
        change_run(collection, CORRECTION, run, changed)
    return many


def truths_of(catalog: Catalog, run: str, labels: Sequence[Label]) -> Truths:
    """Return the corrections of a run in the form that a labelling with these labels uses."""
    places = {label.name.casefold(): place for place, label in enumerate(labels)}
    docs, shares, unknown = [], [], dict[str, None]()
    for doc, names in sorted(_kept(catalog, _find(catalog, run)).items()):
        strange = [name for name in names if name.casefold() not in places]
        unknown |= dict.fromkeys(strange)
        if not strange:
            row = np.zeros(len(labels))
            row[[places[name.casefold()] for name in names]] = 1
            docs.append(doc)
            shares.append(row)
    return Truths(np.array(docs, np.int64), np.array(shares).reshape(len(docs), len(labels)), tuple(unknown))


def unused_corrections(
    catalog: Catalog, run: str, labels: Sequence[Label], docs: np.ndarray, several: bool
) -> tuple[str, ...]:
    """Return a sentence for each other run whose corrections have labels of a labelling, which does not use them.

    Args:
        catalog: Of the collection.
        run: The name of the labelling.
        labels: Its labels.
        docs: int64 [n], the documents to label that have no correction of this run.
        several: Whether a document may get several labels.
    """
    notes = []
    for other in list_runs(catalog, CORRECTION, count=False):
        found = truths_of(catalog, other.name, labels)
        usable = np.isin(found.docs, docs) & (several | (found.shares.sum(axis=1) <= 1))
        if other.name != run and not found.unknown and found.shares[usable].any():
            many = int(usable.sum())
            are, them = ("is", "it") if many == 1 else ("are", "them")
            said = (
                f"{counted(many, 'correction')} of {other.name!r} {are} not used here: to use {them}, label again with"
            )
            notes.append(f"{said} {arg('corrections_of')} {quote(other.name)}")
    return tuple(notes)


def read_corrections(path: Path, own: str | None = None) -> dict[str, list[str]]:
    """Read a file of corrections, CSV or JSONL: `id`, and `label` or (JSONL) `labels`; one row for each document.

    Args:
        path: The file.
        own: A name that the column of ids may have too: the column that the ids of the collection come from.

    Raises:
        UsageError: The suffix is not valid, a column is missing, a label is empty, or two rows of a document differ.
        SondeError: The file cannot be read.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"cannot read corrections from {str(path)!r}: the name must end in .csv or .jsonl")
    try:
        text = text_of(path, "the corrections")
        rows: Iterable[Any] = (
            _table(text, path, own)
            if path.suffix.lower() == ".csv"
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
        found = [_row(row, number, path, own) for number, row in enumerate(rows, 1)]
        if path.suffix.lower() == ".csv":
            found = [(unquoted(id), [unquoted(name) for name in names]) for id, names in found]
        return labels_by_id(found, path)
    except (ValueError, csv.Error, RecursionError) as error:
        raise SondeError(f"cannot read {path}: {error}") from None


def labels_by_id(rows: Sequence[tuple[str, list[str]]], source: Path | str) -> dict[str, list[str]]:
    """Return the labels of each document.

    Raises:
        UsageError: Two rows assign different labels to one document.
    """
    found: dict[str, tuple[int, list[str]]] = {}
    for number, (id, names) in enumerate(rows, 1):
        first, known = found.setdefault(id, (number, names))
        if known != names:
            both = f"{', '.join(known)} and {', '.join(names)}"
            raise UsageError(
                f"rows {first} and {number} of {source} give {id!r} different labels, {both}: keep one row for each "
                "document; several labels need a .jsonl file with a list of labels"
            )
    return {id: names for id, (_, names) in found.items()}


def write_corrections(found: Sequence[Correction], path: Path, progress: Notify = silent) -> None:
    """Write corrections to a CSV or JSONL file that `read_corrections` can read; several labels need JSONL.

    A CSV cell that a spreadsheet would run as a formula gets an apostrophe in front, and `progress` a sentence.

    Raises:
        UsageError: The suffix is not valid, `path` is a folder, or a document has several labels and the file is CSV.
        SondeError: The folder does not exist.
    """
    check_target(path, SUFFIXES, "write corrections to")
    formulas = Formulas()
    if path.suffix.lower() == ".jsonl":
        text = "".join(json.dumps(each.to_dict(), ensure_ascii=False) + "\n" for each in found)
    else:
        if several := next((each for each in found if len(each.labels) > 1), None):
            raise UsageError(f"document {several.id!r} has several labels, which CSV cannot hold: write .jsonl")
        stream = io.StringIO()
        writer = csv.writer(stream)
        rows = [("id", "label"), *((each.id, each.to_dict()["label"]) for each in found)]
        writer.writerows([formulas.cell(cell) for cell in row] for row in rows)
        text = stream.getvalue()
    write_output(path, lambda stream: stream.write(text.encode()))
    if formulas.quoted:
        progress(formulas.note(".jsonl"))


def _delimiter(text: str) -> str:
    """Return the sign between the columns, which the first line shows: a comma, a semicolon or a tab."""
    header = text.partition("\n")[0]
    return max((",", ";", "\t"), key=header.count)


def _table(text: str, path: Path, own: str | None) -> Iterable[Any]:
    rows = csv.DictReader(text.splitlines(), delimiter=_delimiter(text))
    names = rows.fieldnames or []
    if place_of_ids(names, ("id",), own) is None or not {"label", "labels"} & {*names}:
        header = ", ".join(map(on_one_line, names)) or "an empty file"
        raise UsageError(f"{path} must have the columns {ids_or(own)} and label, not {header}")
    return rows


def _row(row: Any, number: int, path: Path, own: str | None) -> tuple[str, list[str]]:
    names = [*row] if isinstance(row, dict) else []
    place = place_of_ids([str(name) for name in names], ("id",), own)
    id = None if place is None else row[names[place]]
    if id is None or not {"label", "labels"} & {*names}:
        raise UsageError(f"row {number} of {path} needs {ids_or(own)} and label")
    listed = row.get("labels")
    labels = listed if isinstance(listed, list) and listed else [row.get("label")]
    given = ["" if label is None else str(label).strip() for label in labels]
    if not all(given):
        raise UsageError(f"row {number} of {path} gives {str(id)!r} an empty label: {_ADVICE}")
    return str(id), given


def _names(labels: str | Sequence[str], id: object) -> list[str]:
    names = [" ".join(name.split()) for name in as_texts(labels, "label")]
    if not names or not all(names):
        raise UsageError(f"document {str(id)!r} has an empty label: {_ADVICE}", code="empty", field="given", value=id)
    return [name for name in names if name.casefold() != NONE_NAME]


def _refuse_slip(catalog: Catalog, name: str) -> None:
    """Refuse first corrections of a label run that does not exist, if the name is close to one that does.

    Raises:
        UsageError: It is, or a run of another kind has this name.
    """
    runs = list_runs(catalog, count=False)
    labels = [run.name for run in runs if run.kind is LABEL]
    other = next((run.kind for run in runs if run.name == name and run.kind not in (LABEL, CORRECTION)), None)
    near = get_close_matches(name, labels, 1, cutoff=0.5)
    if other is not None or near:
        what = f"{name!r} is a {other} run, without labels" if other else f"there is no label run {name!r}"
        hint = f"did you mean {near[0]!r}?" if near else existing(labels)
        raise UsageError(f"{what}: {hint}", code="not-found", field="run", value=name, alternatives=labels)


def _spelled(names: list[str], known: Mapping[str, str], run: str) -> list[str]:
    """Return names as they are spelled in the label run."""
    if not known:
        return names
    for name in names:
        if name.casefold() not in known:
            raise UsageError(
                f"the run {run!r} has no label {name!r}: {existing((*known.values(), NONE_NAME))}; "
                "label again to use others"
            )
    return [known[name.casefold()] for name in names]


def _labels_of(catalog: Catalog, name: str) -> tuple[dict[str, str], bool]:
    """Return the labels of a label run by case-folded name, and whether a text may have several labels."""
    run = next((run for run in list_runs(catalog, LABEL, count=False) if run.name == name), None)
    if run is None:
        return {}, False
    names = {item.name.casefold(): item.name for item in items_of(catalog, run) if item.number != NONE}
    return names, bool(run.parameters.get("multi_label"))


def _find(catalog: Catalog, name: str) -> Run | None:
    return next((run for run in list_runs(catalog, CORRECTION, count=False) if run.name == name), None)


def _kept(catalog: Catalog, run: Run | None) -> dict[int, list[str]]:
    """Return the corrected labels by document."""
    if run is None:
        return {}
    names = {item.number: item.name for item in items_of(catalog, run)}
    found: dict[int, list[str]] = {}
    for doc, number in zip(*(part.tolist() for part in assignments_of(catalog, run)[:2]), strict=True):
        found.setdefault(doc, []).extend([names[number]] if number != NONE else [])
    return found


def _run(name: str, kept: Mapping[int, Sequence[str]], several: bool) -> NewRun:
    numbers = {label: number for number, label in enumerate(dict.fromkeys(n for ns in kept.values() for n in ns))}
    pairs = [(doc, numbers[n]) for doc, names in sorted(kept.items()) for n in names]
    pairs += [(doc, NONE) for doc, names in kept.items() if not names]
    docs, items = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    sizes = {number: int((items == number).sum()) for number in (*numbers.values(), NONE)}
    made = [Item(number, label, {"size": sizes[number]}) for label, number in numbers.items()]
    made += [Item(NONE, NONE_NAME, {"size": sizes[NONE]})] if sizes[NONE] else []
    return NewRun(
        CORRECTION, name, {"multi_label": several}, report={"documents": len(kept)}, items=made,
        assignments=(docs, items, np.full(len(docs), np.nan)),
    )  # fmt: skip

"""Corrections: labels that a person assigned to documents, stored beside the label run that they correct.

Corrections are stored as a correction run with the name of the label run. They remain when the label run is replaced,
and they are exported. A correction is deleted when its document is deleted or the document's text changes. The next
labelling with that name learns from the corrections and applies them to their documents.
"""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from shlex import quote
from typing import Any

import numpy as np

from ...indexer.errors import Ids, SondeError, UsageError, arg, as_text, as_texts, did_you_mean
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import ids_by_number
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.run_writing import NewRun, change_run, delete_run
from ...indexer.store.runs import Item, Run, assignments_of, items_of, list_runs
from ...indexer.upkeep.delete import numbers_of
from ...indexer.wording import counted, existing
from .labels import NONE, NONE_NAME, Label, codes_of, plain

ADVICE = f"give a label, or {NONE_NAME!r}"
"""For an empty label."""


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
        given: One or several labels for each document id; "none of these" means that no label fits. Text such as
            "late; broken" names two labels of the run.
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


def _names(labels: str | Sequence[str], id: object) -> list[str]:
    names = [" ".join(name.split()) for name in as_texts(labels, "label")]
    if not names or not all(names):
        raise UsageError(f"document {str(id)!r} has an empty label: {ADVICE}", code="empty", field="given", value=id)
    return names


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
    """Return names as they are spelled in the label run; one name may hold several labels, such as "late; broken"."""
    names = [name for name in (codes_of(names, known) if known else names) if plain(name) != NONE_NAME]
    if not known:
        return names
    for name in names:
        if plain(name) not in known:
            meant = did_you_mean(name, known.values())
            raise UsageError(
                f"the run {run!r} has no label {name!r}{meant}: {existing((*known.values(), NONE_NAME))}; "
                "label again to use others"
            )
    return [known[plain(name)] for name in names]


def _labels_of(catalog: Catalog, name: str) -> tuple[dict[str, str], bool]:
    """Return the labels of a label run by their plain names, and whether a text may have several labels."""
    run = next((run for run in list_runs(catalog, LABEL, count=False) if run.name == name), None)
    if run is None:
        return {}, False
    names = {plain(item.name): item.name for item in items_of(catalog, run) if item.number != NONE}
    return names, bool(run.parameters.get("multi_label"))


def labels_known(catalog: Catalog, name: str | None) -> tuple[list[str], bool]:
    """Return the labels of a label run, or of all if there is no name, and whether a text may have several."""
    runs = [run.name for run in list_runs(catalog, LABEL, count=False)]
    found = [_labels_of(catalog, run) for run in (runs if name is None else [name])]
    return list(dict.fromkeys(label for labels, _ in found for label in labels.values())), any(two for _, two in found)


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

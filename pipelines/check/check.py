"""One check of a collection's data, from the documents to the stored run."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.errors import Message, SondeError, UsageError, arg
from ...indexer.progress import Notify, Progress, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import column_values, document_ids, document_texts
from ...indexer.store.fields import load_value
from ...indexer.store.kinds import CHECK
from ...indexer.store.run_writing import NewRun, check_run_name, write_run
from ...indexer.store.runs import Item
from ...indexer.store.tabular import Shown
from ...indexer.store.view import View
from ...indexer.wording import existing
from ..analysis.corpus import Corpus
from ..duplicates import Duplicates, DuplicateSettings, find_duplicates
from ..search.foreign import readable_texts
from . import wording
from .embeddings import FEWEST, doubts, outliers
from .personal import has_digits_in_a_row, personal
from .settings import TITLES, CheckKind, CheckSettings

KEPT = 100
"""Documents of a group whose reasons are kept with the run."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document that a check found.

    Attributes:
        id: The document's.
        score: 0 to 1, higher is worse; for a copy its similarity.
        why: The reason in a few words: the likelier label, the document that it repeats, the language.
    """

    id: str
    score: float
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"id": self.id, "score": round(self.score, 4), "why": self.why}


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Shown):
    """What a check found.

    Attributes:
        name: Of the run that keeps it.
        documents: How many documents were checked.
        found: The documents of each kind that was looked for, worst first.
        notes: What could not be checked, in sentences.
        seconds: How long it took.
    """

    name: str
    documents: int
    found: Mapping[CheckKind, tuple[Found, ...]]
    notes: tuple[str, ...]
    seconds: float
    _row = "finding"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each finding, as JSON values."""
        return [{"kind": kind, **each.to_dict()} for kind, found in self.found.items() for each in found]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = {kind: [each.to_dict() for each in found] for kind, found in self.found.items()}
        return {"name": self.name, "documents": self.documents, "found": found, "notes": list(self.notes)}


def check(
    collection: StoredCollection,
    settings: CheckSettings = CheckSettings(),
    *,
    name: str = "check",
    replace: bool = False,
    notify: Notify = silent,
) -> Checked:
    """Check the data of a collection and store the result as a run; a document can be in several of its groups.

    Args:
        collection: What to check.
        settings: What to look for.
        name: Of the run.
        replace: Whether a run of this name may be replaced.
        notify: Receives progress and sentences.

    Raises:
        UsageError: A setting is not valid, a column does not exist, or the name is taken.
        SondeError: The collection is empty, or another process is writing.
        MissingExtraError: scikit-learn, which the check of labels needs, is not installed.
    """
    settings.check()
    began = time.perf_counter()
    with collection.view() as view:
        check_run_name(view.catalog, CHECK, name, replace)
        look = _Look(collection, view, settings, notify)
        found: dict[CheckKind, list[wording.Finding]] = {kind: look.at(kind) for kind in settings.chosen}
    taken = time.perf_counter() - began
    run = _run(name, settings, look, found, taken)
    write_run(collection, run, look.corpus.snapshot, replace=replace)
    told: dict[CheckKind, tuple[Found, ...]] = {
        kind: tuple(Found(look.ids[place], score, why) for place, score, why in rows) for kind, rows in found.items()
    }
    return Checked(name, look.corpus.documents, told, tuple(look.notes), taken)


def _run(
    name: str, settings: CheckSettings, look: "_Look", found: Mapping[CheckKind, list[wording.Finding]], seconds: float
) -> NewRun:
    rows = [
        (look.corpus.snapshot.docs[place], number, score)
        for number, kind in enumerate(found)
        for place, score, _ in found[kind]
    ]
    docs, numbers, scores = zip(*rows, strict=True) if rows else ((), (), ())
    items = [
        Item(
            number,
            TITLES[kind],
            {"size": len(found[kind]), "why": {look.ids[place]: why for place, _, why in found[kind][:KEPT]}},
        )
        for number, kind in enumerate(found)
    ]
    report = {"documents": look.corpus.documents, "found": len(set(docs)), "notes": look.notes}
    assignments = (np.array(docs, np.int64), np.array(numbers, np.int64), np.array(scores, float))
    return NewRun(CHECK, name, settings.to_dict(), ("scikit-learn",), report, seconds, items, assignments)


class _Look:
    """Looks at all documents of one generation, one kind of check after the other."""

    def __init__(self, collection: StoredCollection, view: View, settings: CheckSettings, notify: Notify) -> None:
        self.collection, self.view, self.settings, self.notify = collection, view, settings, notify
        self.labels = self._column("label", settings.label)
        self.parts = self._column("split", settings.split)
        self.corpus = Corpus.of(view)
        if not self.corpus.documents:
            raise SondeError(f"{collection.named} holds no documents to check")
        documents = list(document_texts(view.catalog))
        self.texts = [each.text if each.text.strip() else each.title for each in documents]
        self.titles = [each.title for each in documents]
        self.languages = [each.language for each in documents]
        keys = dict(document_ids(view.catalog))
        self.ids = [keys[doc] for doc in self.corpus.snapshot.docs.tolist()]
        self.notes: list[str] = []
        self._copies: Duplicates | None = None

    def at(self, kind: CheckKind) -> list[wording.Finding]:
        """Return what this kind of check finds, worst first."""
        kinds = self.settings.chosen
        self.notify(Progress("checking", kinds.index(kind), len(kinds), "checks"))
        match kind:
            case "label":
                return self._doubtful()
            case "leak" | "duplicate":
                return self._repeated(kind)
            case "outlier":
                places, scores = self._outliers()
                found = [(place, score, "far from all others") for place, score in zip(places, scores, strict=True)]
            case "language":
                found = wording.foreign(self.texts, self.languages, self.view.catalog.get("language"))
            case "boilerplate":
                found = wording.boilerplate(self.texts)
            case "short":
                found = wording.short(self.texts)
            case "cut":
                found = wording.cut(self.texts)
            case "personal data":
                if self.settings.region is None and any(map(has_digits_in_a_row, self.texts)):
                    said = f"phone numbers without a country code were not looked for: give {arg('region')}"
                    self.notes.append(Message(said))
                found = personal(self.texts, self.settings.region)
            case "non-answer":
                found = wording.empty(self.texts, self.titles)
        return _worst_first(found)

    def _outliers(self) -> tuple[list[int], np.ndarray]:
        """Return the places of outliers and their scores, among the texts whose script the model can read."""
        readable, notes = readable_texts(self.view, self.texts)
        if not (self._copies and self._copies.notes):  # it says the same
            self.notes += notes
        kept = np.flatnonzero(readable[self.corpus.first])
        rows, scores = outliers(self.corpus.vectors[kept], self.settings.seed)
        return self.corpus.first[kept[rows]].tolist(), scores

    def _column(self, argument: str, name: str | None) -> dict[int, str]:
        """Return a column's values as text by document number; empty for no column.

        Raises:
            UsageError: There is no such column.
        """
        if name is None:
            return {}
        field = self.view.fields.get(name)
        if field is None or field.type == "list":
            known = [each.name for each in self.view.fields.values() if each.type != "list"]
            what = "has several values per document" if field else "does not exist"
            said = f"the column {name!r} of {arg(argument)} {what}: {existing(known)}"
            raise UsageError(said, code="not-found", field=argument, value=name, alternatives=known)
        values = column_values(self.view.catalog, field)
        return {doc: str(load_value(value, field.type)) for doc, value in values.items() if value is not None}

    def _doubtful(self) -> list[wording.Finding]:
        given = [self.labels.get(doc) for doc in self.corpus.snapshot.docs.tolist()]
        names, numbers = np.unique([name for name in given if name is not None], return_inverse=True)
        labels = np.full(len(given), -1, np.int64)
        labels[[name is not None for name in given]] = numbers
        self._note_rare(names, numbers)
        found = doubts(self.corpus.vectors[self.corpus.group], labels, self.settings.seed, self.notify)
        return [
            (place, float(found.doubt[place]), f"{names[labels[place]]}; more likely: {names[found.suggested[place]]}")
            for place in found.flagged().tolist()
        ]

    def _note_rare(self, names: np.ndarray, numbers: np.ndarray) -> None:
        rare = names[np.bincount(numbers, minlength=len(names)) < FEWEST].tolist()
        if rare:
            few = ", ".join(map(repr, rare[:3])) + (" …" if len(rare) > 3 else "")
            self.notes.append(f"labels with fewer than {FEWEST} documents were not checked: {few}")
        if len(names) - len(rare) < 2:
            self.notes.append(f"{self.settings.label} has fewer than two labels to choose between: none was checked")

    def _repeated(self, kind: CheckKind) -> list[wording.Finding]:
        near = DuplicateSettings(near=self.settings.near, meaning=self.settings.meaning)
        self._copies = self._copies or find_duplicates(self.collection, near, self.notify)
        self.notes += [note for note in self._copies.notes if note not in self.notes]
        places = {id: place for place, id in enumerate(self.ids)}
        if kind == "duplicate":
            found = _duplicates(self._copies)
        else:
            docs = self.corpus.snapshot.docs.tolist()
            parts = {self.ids[place]: self.parts[doc] for place, doc in enumerate(docs) if doc in self.parts}
            found = _leaks(self._copies, parts)
        return [(places[id], score, why) for id, score, why in found if id in places]


def _worst_first(found: Iterable[wording.Finding]) -> list[wording.Finding]:
    return sorted(found, key=lambda one: (-one[1], one[0]))


_Copy = tuple[str, float, str]
"""Id of a document, its similarity to the document that it repeats, and why it is named."""


def _duplicates(found: Duplicates) -> list[_Copy]:
    """Return the documents that can be removed, the most similar first."""
    copies = [
        (each.id, each.similarity, f"{each.kind}: {group.representative}")
        for group in found.groups
        for each in group.duplicates
    ]
    return sorted(copies, key=lambda copy: -copy[1])


def _leaks(found: Duplicates, parts: Mapping[str, str]) -> list[_Copy]:
    """Return the documents with a copy in another part, the most similar first.

    Args:
        found: The groups of copies.
        parts: The part of each document by id, such as "train"; documents without one are left out.
    """
    copies = []
    for group in found.groups:
        similar = {group.representative: 1.0} | {each.id: each.similarity for each in group.duplicates}
        by_part: dict[str, list[str]] = defaultdict(list)
        for id in similar:
            if id in parts:
                by_part[parts[id]].append(id)
        for part, ids in by_part.items() if len(by_part) > 1 else ():
            other = next(ids for name, ids in by_part.items() if name != part)[0]
            copies += [(id, min(similar[id], similar[other]), f"{part}; {parts[other]}: {other}") for id in ids]
    return sorted(copies, key=lambda copy: -copy[1])

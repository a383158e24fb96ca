"""Groups of duplicates with a representative each."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from ...indexer.readers.references import DOI
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import column_values, document_ids, document_texts, text_lengths
from ...indexer.store.run_writing import Snapshot
from ...indexer.store.tabular import Shown
from ...indexer.store.view import View
from ...indexer.wording import existing
from ..search.foreign import readable_texts
from .pairs import (
    DuplicateSettings,
    FoundKind,
    Pairs,
    closest_pairs,
    likenesses,
    meaning_pairs,
    near_pairs,
    normalised_text,
)

MOST_OF_ONE_VALUE = 100


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A document that says what its group's representative says.

    Attributes:
        id: The document's.
        kind: The strictest sense in which it does: "exact", "value" (the same in a column), "near" or "meaning".
        similarity: To the representative: 1 for exact ones and those of one value, else Jaccard of shingles or cosine.
    """

    id: str
    kind: FoundKind
    similarity: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"id": self.id, "kind": self.kind, "similarity": round(self.similarity, 4)}


@dataclass(frozen=True, slots=True)
class Group:
    """A representative and its duplicates."""

    representative: str
    duplicates: tuple[Duplicate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = [duplicate.to_dict() for duplicate in self.duplicates]
        return {"representative": self.representative, "size": len(found) + 1, "duplicates": found}


@dataclass(frozen=True, slots=True, repr=False)
class Duplicates(Shown):
    """What a search for duplicates found.

    Attributes:
        groups: The largest first.
        pairs: The closest pairs of ids with their cosine, best first, if asked for.
        documents: How many documents were looked at.
        seconds: How long it took.
        notes: What could not be compared, in sentences.
    """

    groups: tuple[Group, ...]
    pairs: tuple[tuple[str, str, float], ...]
    documents: int
    seconds: float
    notes: tuple[str, ...] = ()
    _row = "duplicate"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each duplicate, with the representative of its group, as JSON values."""
        return [
            {"representative": group.representative, **duplicate.to_dict()}
            for group in self.groups for duplicate in group.duplicates
        ]  # fmt: skip

    @property
    def redundant(self) -> frozenset[str]:
        """Ids of all documents but the representatives."""
        return frozenset(duplicate.id for group in self.groups for duplicate in group.duplicates)

    @property
    def share(self) -> float:
        """Share of the documents that could go, 0 to 1."""
        return len(self.redundant) / self.documents if self.documents else 0.0


def find_duplicates(
    collection: StoredCollection, settings: DuplicateSettings = DuplicateSettings(), notify: Notify = silent
) -> Duplicates:
    """Return groups of documents that say the same.

    In the order of `keep`, each document that is in no group yet represents one, of all documents alike it that are in
    none. So every document that could go is alike one that stays, and no chain of likenesses joins unlike texts.

    Raises:
        UsageError: A setting is not valid, a column does not exist, or the date column is none.
    """
    settings.check()
    began = time.perf_counter()
    with collection.view() as view:
        docs = Snapshot.of(view).docs
        ranks = _ranks(view, docs, settings)
        texts, values = _plain_texts(view), _values(view, docs, settings.same)
        by_meaning = "meaning" in settings.kinds or settings.pairs > 0
        readable, notes = readable_texts(view, texts) if by_meaning else (np.ones(len(docs), bool), ())
        first, found = _pairs(view, docs, texts, readable, ranks, settings, notify)
        valued = _of_one_value(values, first, ranks)
        chosen = _grouped((first, found + valued), ranks)
        members = [(best, place) for best, places in chosen for place in places]
        both = {frozenset(pair[:2]) for pair in valued}
        of_one_value = {(best, place) for best, place in members if frozenset((best, int(first[place]))) in both}
        alike = dict(zip(members, likenesses(view, docs, texts, members, settings, of_one_value), strict=True))
        pairs = _closest(view, docs, texts, readable, settings.pairs, notify)
        keys = dict(document_ids(view.catalog))
    ids = [keys[doc] for doc in docs.tolist()]
    groups = tuple(
        Group(ids[best], tuple(Duplicate(ids[place], *alike[best, place]) for place in places))
        for best, places in chosen
    )
    named = tuple((ids[first], ids[second], alike) for first, second, alike in pairs)
    return Duplicates(groups, named, len(docs), time.perf_counter() - began, notes)


def _plain_texts(view: View) -> list[str]:
    return [normalised_text(f"{each.title} {each.text}") for each in document_texts(view.catalog)]


def _pairs(
    view: View,
    docs: np.ndarray,
    texts: Sequence[str],
    readable: np.ndarray,
    ranks: Sequence[Any],
    settings: DuplicateSettings,
    notify: Notify,
) -> tuple[np.ndarray, Pairs]:
    """Return for each place the best one of the same text, and the pairs alike among those."""
    first = _first_of_same(texts, ranks) if settings.kinds != ("meaning",) else np.arange(len(docs))
    heads = np.unique(first)
    found: Pairs = []
    if "near" in settings.kinds:
        found += _placed(heads, near_pairs([texts[int(place)] for place in heads], settings.near, notify))
    compared = heads[readable[heads]]
    if "meaning" in settings.kinds and len(compared):
        found += _placed(compared, meaning_pairs(view, docs[compared], settings.meaning, notify))
    return first, found


def _values(view: View, docs: np.ndarray, name: str | None) -> list[str]:
    """Return each document's value in a column in one form, "" if it has none; an empty list without a column.

    Raises:
        UsageError: There is no such column.
    """
    if name is None:
        return []
    if (field := view.fields.get(name)) is None:
        said = f"there is no metadata column {name!r}: {existing(view.fields)}"
        raise UsageError(said, code="not-found", field="same", value=name, alternatives=view.fields)
    found: dict[int, Any] = column_values(view.catalog, field)
    plain = [" ".join(str(found.get(doc) or "").split()).casefold() for doc in docs.tolist()]
    return [doi[0] if (doi := DOI.search(value)) else value for value in plain]


def _of_one_value(values: Sequence[str], first: np.ndarray, ranks: Sequence[Any]) -> Pairs:
    """Return pairs of the places that stand for texts whose documents have the same value."""
    groups: dict[str, set[int]] = defaultdict(set)
    for place, value in enumerate(values):
        if value:
            groups[value].add(int(first[place]))
    pairs: Pairs = []
    for places in groups.values():
        ranked = sorted(places, key=lambda place: ranks[place])
        # Of a value that most documents have, only the pairs with the best one: all would be too many.
        firsts = ranked if len(ranked) <= MOST_OF_ONE_VALUE else ranked[:1]
        pairs += [(one, other, 1.0) for at, one in enumerate(firsts) for other in ranked[at + 1 :]]
    return pairs


def _placed(places: np.ndarray, pairs: Pairs) -> Pairs:
    """Return pairs of numbers in `places` as pairs of these places."""
    return [(int(places[one]), int(places[other]), alike) for one, other, alike in pairs]


def _first_of_same(texts: Sequence[str], ranks: Sequence[Any]) -> np.ndarray:
    """Return int64 [n]: for each text the place of the same text that ranks first."""
    first: dict[str, int] = {}
    for place in sorted(range(len(texts)), key=lambda place: ranks[place]):
        first.setdefault(texts[place], place)
    return np.array([first[text] for text in texts], np.int64)


def _closest(
    view: View, docs: np.ndarray, texts: Sequence[str], readable: np.ndarray, most: int, notify: Notify
) -> Pairs:
    if not most or len(docs) < 2:
        return []
    kept = np.array(sorted({text: place for place, text in reversed(list(enumerate(texts)))}.values()), np.int64)
    kept = kept[readable[kept]]
    return _placed(kept, closest_pairs(view, docs[kept], most, notify)) if len(kept) > 1 else []


def _ranks(view: View, docs: np.ndarray, settings: DuplicateSettings) -> list[Any]:
    """Return a value for each document by which the smallest of a group represents it."""
    order = docs.tolist()
    if settings.keep == "first":
        return order
    if settings.keep == "longest":
        lengths = text_lengths(view.catalog)
        return [(-lengths[doc], doc) for doc in order]
    if settings.date is None:
        return [-doc for doc in order]
    field = view.fields.get(settings.date)
    if field is None or field.type != "date":
        known = [name for name, each in view.fields.items() if each.type == "date"]
        said = f"{settings.date!r} is not a date column: {existing(known)}"
        raise UsageError(said, code="not-found", field="date", value=settings.date, alternatives=known)
    dates: dict[int, str | None] = column_values(view.catalog, field)
    newest = sorted(order, key=lambda doc: (dates.get(doc) or "", doc), reverse=True)
    places = {doc: place for place, doc in enumerate(newest)}
    return [places[doc] for doc in order]


def _grouped(found: tuple[np.ndarray, Pairs], ranks: Sequence[Any]) -> list[tuple[int, list[int]]]:
    """Return each group's representative and the other places in it, the largest group first."""
    first, pairs = found
    near: dict[int, set[int]] = defaultdict(set)
    for one, other, _ in pairs:
        near[one].add(other)
        near[other].add(one)
    best, free = np.arange(len(first)), set(near)
    for place in sorted(near, key=lambda place: ranks[place]):
        if place in free:
            taken = near[place] & free
            free -= {place, *taken}
            best[sorted(taken)] = place
    groups: dict[int, list[int]] = defaultdict(list)
    for place, representative in enumerate(best[first].tolist()):
        if place != representative:
            groups[representative].append(place)
    return sorted(groups.items(), key=lambda group: -len(group[1]))

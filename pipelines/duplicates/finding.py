"""Groups of duplicates with a representative each."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.collection import Collection
from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from ...indexer.run_writing import Snapshot
from ...indexer.view import View
from .pairs import Pairs, closest_pairs, meaning_pairs, near_pairs, plain
from .settings import DuplicateKind, DuplicateSettings

TEXTS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A document that says what its group's representative says.

    Attributes:
        id: The document's.
        kind: The strictest sense in which it does: "exact", "near" or "meaning".
        similarity: 1 for exact ones, else Jaccard of shingles or cosine, to the document that it was grouped with.
    """

    id: str
    kind: DuplicateKind
    similarity: float


@dataclass(frozen=True, slots=True)
class Group:
    """A representative and its duplicates."""

    representative: str
    duplicates: tuple[Duplicate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = [{"id": d.id, "kind": d.kind, "similarity": round(d.similarity, 4)} for d in self.duplicates]
        return {"representative": self.representative, "size": len(found) + 1, "duplicates": found}


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What a search for duplicates found.

    Attributes:
        groups: The largest first.
        pairs: The closest pairs of ids with their cosine, best first, if asked for.
        documents: How many documents were looked at.
        seconds: How long it took.
    """

    groups: tuple[Group, ...]
    pairs: tuple[tuple[str, str, float], ...]
    documents: int
    seconds: float

    @property
    def redundant(self) -> frozenset[str]:
        """Ids of all documents but the representatives."""
        return frozenset(duplicate.id for group in self.groups for duplicate in group.duplicates)

    @property
    def share(self) -> float:
        """Share of the documents that could go, 0 to 1."""
        return len(self.redundant) / self.documents if self.documents else 0.0


@dataclass
class _Joined:
    """Which document each belongs to so far, how, and how much."""

    head: np.ndarray
    kind: dict[int, tuple[DuplicateKind, float]]

    def heads(self) -> np.ndarray:
        return np.flatnonzero(self.head == np.arange(len(self.head)))

    def join(self, heads: np.ndarray, pairs: Pairs, kind: DuplicateKind) -> None:
        """Join pairs of places in `heads`: every member of a group is alike its head, so that none grows by chains."""
        near: dict[int, dict[int, float]] = defaultdict(dict)
        for first, second, alike in pairs:
            near[first][second] = near[second][first] = alike
        free = set(near)
        for place in sorted(near, key=lambda place: (-len(near[place]), place)):
            if place not in free:
                continue
            taken = {other: alike for other, alike in near[place].items() if other in free}
            free -= {place, *taken}
            for other, alike in taken.items():
                member, head = int(heads[other]), int(heads[place])
                self.head[self.head == member] = head
                self.kind[member] = (kind, alike)


def find_duplicates(
    collection: Collection, settings: DuplicateSettings = DuplicateSettings(), notify: Notify = silent
) -> Duplicates:
    """Return groups of documents that say the same.

    Exact duplicates are grouped first, near ones among what is left, then those of like meaning, so each document is
    in one group at most. Within a step, every member is alike the group's middle, so no chain of likenesses joins
    unlike texts.

    Raises:
        UsageError: A setting cannot be right, or the date column is none.
        MissingExtraError: datasketch is not installed, which near duplicates need.
    """
    settings.check()
    began = time.perf_counter()
    with collection.view() as view:
        docs = Snapshot.of(view).docs
        ranks = _ranks(view, docs, settings)
        texts = _plain_texts(view, docs)
        joined = _Joined(np.arange(len(docs)), {})
        same = _same(texts)
        if "exact" in settings.kinds:
            joined.join(np.arange(len(docs)), same, "exact")
        if "near" in settings.kinds:
            heads = joined.heads()
            joined.join(heads, near_pairs([texts[place] for place in heads], settings.near, notify), "near")
        if "meaning" in settings.kinds and len(docs):
            heads = joined.heads()
            joined.join(heads, meaning_pairs(view, docs[heads], settings.meaning, notify), "meaning")
        pairs = _closest(view, docs, texts, settings.pairs, notify)
        keys = dict(view.catalog.connection.execute("SELECT doc, key FROM documents"))
    ids = [keys[doc] for doc in docs.tolist()]
    groups = _groups(joined, ids, ranks)
    named = tuple((ids[first], ids[second], alike) for first, second, alike in pairs)
    return Duplicates(groups, named, len(docs), time.perf_counter() - began)


def _plain_texts(view: View, docs: np.ndarray) -> list[str]:
    sql = "SELECT title, text FROM documents ORDER BY doc"
    return [plain(f"{title} {text}") for title, text in view.catalog.connection.execute(sql)]


def _same(texts: Sequence[str]) -> Pairs:
    """Return each text that occurred before with its first place."""
    first: dict[str, int] = {}
    return [(seen, place, 1.0) for place, text in enumerate(texts) if (seen := first.setdefault(text, place)) != place]


def _closest(view: View, docs: np.ndarray, texts: Sequence[str], most: int, notify: Notify) -> Pairs:
    if not most or len(docs) < 2:
        return []
    kept = np.array(sorted({text: place for place, text in reversed(list(enumerate(texts)))}.values()))
    found = closest_pairs(view, docs[kept], most, notify) if len(kept) > 1 else []
    return [(int(kept[first]), int(kept[second]), alike) for first, second, alike in found]


def _ranks(view: View, docs: np.ndarray, settings: DuplicateSettings) -> list[Any]:
    """Return a value for each document by which the smallest of a group represents it."""
    order = docs.tolist()
    if settings.keep == "first":
        return order
    if settings.keep == "longest":
        lengths: Mapping[int, int] = dict(view.catalog.connection.execute("SELECT doc, length(text) FROM documents"))
        return [(-lengths[doc], doc) for doc in order]
    if settings.date is None:
        return [-doc for doc in order]
    field = view.fields.get(settings.date)
    if field is None or field.type != "date":
        known = [name for name, each in view.fields.items() if each.type == "date"]
        raise UsageError(f"{settings.date!r} is no date column: there are {', '.join(known) or 'none'}")
    dates: dict[int, str | None] = dict(view.catalog.connection.execute(f"SELECT doc, {field.column} FROM metadata"))
    newest = sorted(order, key=lambda doc: (dates.get(doc) or "", doc), reverse=True)
    places = {doc: place for place, doc in enumerate(newest)}
    return [places[doc] for doc in order]


def _groups(joined: _Joined, ids: Sequence[str], ranks: Sequence[Any]) -> tuple[Group, ...]:
    members: dict[int, list[int]] = defaultdict(list)
    for place, head in enumerate(joined.head.tolist()):
        members[head].append(place)
    found = []
    for head, places in members.items():
        if len(places) > 1:
            chosen = min(places, key=lambda place: ranks[place])
            # The head itself has no likeness of its own: where another represents the group, it takes that one's.
            like = {place: joined.kind.get(place if place != head else chosen, ("exact", 1.0)) for place in places}
            rest = tuple(Duplicate(ids[place], *like[place]) for place in places if place != chosen)
            found.append(Group(ids[chosen], rest))
    return tuple(sorted(found, key=lambda group: -len(group.duplicates)))

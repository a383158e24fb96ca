"""Planning a batch: which documents are new, changed or unchanged, and what must be embedded for them.

The planner runs ahead of the model in a thread of its own, so that reading, splitting and tokenising overlap with
the forward passes. It reads the catalog through its own connection: every key is looked up before the run writes it.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..catalog import Catalog
from ..chunker import Chunker, PassageInput
from ..document import Document, Skipped
from ..writing import Identity, digest

MAX_CHARACTERS = 8_000_000
"""A batch closes early at this many characters of text, which bounds the memory that long documents take."""


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """A document to be written under `key` with its passages; None: those that it has stay as they are.

    `again` tells that an earlier batch of the same run met the same id.
    """

    key: str
    document: Document
    identity: Identity
    again: bool
    passages: list[PassageInput] | None


@dataclass(slots=True)
class Batch:
    """The plan of one commit."""

    documents: list[PlannedDocument] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    unchanged: int = 0
    duplicate_ids: int = 0
    read: int = 0


class Seen:
    """The keys that this run has met, in a temporary SQLite table: flat memory for any number of documents."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.connection.execute("CREATE TABLE seen(key TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID")
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("BEGIN")

    def count(self, key: str) -> int:
        """Note that a key was met and return how often it has been, this time included."""
        sql = "INSERT INTO seen VALUES (?, 1) ON CONFLICT(key) DO UPDATE SET times = times + 1 RETURNING times"
        return self.connection.execute(sql, (key,)).fetchone()[0]

    def missing(self, keys: Iterable[tuple[int, str]]) -> list[int]:
        """Return the numbers of those (number, key) pairs whose key was never met."""
        sql = "SELECT 1 FROM seen WHERE key = ?"
        return [number for number, key in keys if self.connection.execute(sql, (key,)).fetchone() is None]


class Planner:
    """Turns documents into batches; `size` is the number of documents in the next one and may change between two."""

    def __init__(self, catalog: Catalog, chunker: Chunker, seen: Seen, language: str | None, size: int) -> None:
        self.catalog = catalog
        self.chunker = chunker
        self.seen = seen
        self.language = language
        self.size = size

    def batches(self, documents: Iterable[Document | Skipped]) -> Iterator[Batch]:
        """Yield one planned batch after the other."""
        gathered: list[Document | Skipped] = []
        characters = 0
        for document in documents:
            gathered.append(document)
            characters += len(document.text) if isinstance(document, Document) else 0
            if len(gathered) >= self.size or characters >= MAX_CHARACTERS:
                yield self.plan(gathered)
                gathered, characters = [], 0
        if gathered:
            yield self.plan(gathered)

    def plan(self, gathered: list[Document | Skipped]) -> Batch:
        """Sort a slice of the source into what is to be written, what is unchanged and what is skipped."""
        batch = Batch(read=len(gathered))
        keyed: dict[str, tuple[Document, bool]] = {}
        for document in gathered:
            if isinstance(document, Skipped):
                batch.skipped.append(document)
            elif reason := _unfit(document):
                batch.skipped.append(Skipped(document.origin, reason))
            else:
                key, met = self._key(document)
                batch.duplicate_ids += met
                again = keyed[key][1] if key in keyed else met
                keyed[key] = (document, again)
        self._classify(keyed, batch)
        return batch

    def _key(self, document: Document) -> tuple[str, bool]:
        """Return the document's key and whether this run has met the same id before."""
        if document.key is not None:
            return document.key, self.seen.count(document.key) > 1
        key = digest(document.title, document.text).hex()
        if (times := self.seen.count(key)) > 1:
            # Texts that occur twice are two documents: the second gets a key of its own, the same in every run.
            key = f"{key}-{times}"
            self.seen.count(key)
        return key, False

    def _classify(self, keyed: dict[str, tuple[Document, bool]], batch: Batch) -> None:
        known = self._known(list(keyed))
        changed: list[tuple[str, Document, Identity, bool]] = []
        for key, (document, again) in keyed.items():
            identity, before = Identity.of(document), known.get(key)
            # What an earlier batch wrote may be in a commit that is still to come: write it anew.
            if before == identity and not again:
                batch.unchanged += 1
            elif before and before.content == identity.content and not again:
                batch.documents.append(PlannedDocument(key, document, identity, False, None))
            else:
                changed.append((key, document, identity, again))
        passages = self.chunker.split([document for _, document, _, _ in changed])
        for planned, inputs in zip(changed, passages, strict=True):
            batch.documents.append(PlannedDocument(*planned, inputs))

    def _known(self, keys: list[str]) -> dict[str, Identity]:
        sql = "SELECT key, content, extra FROM documents WHERE key IN (?)"
        return {key: Identity(content, extra) for key, content, extra in self.catalog.select_in(sql, keys)}


def _unfit(document: Document) -> str | None:
    if not (document.text.strip() or document.title.strip()):
        return "the text is empty"
    try:
        (document.text + document.title + (document.key or "")).encode()
    except UnicodeEncodeError as error:
        return f"the text holds half a surrogate pair at character {error.start}"
    return "the text contains a NUL byte" if "\0" in document.text or "\0" in document.title else None

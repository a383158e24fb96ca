"""Plan a batch: which documents are new or changed and what to embed, one batch ahead of the model."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from ..document import Document, Skipped, composed, is_blank, spellings
from ..store.catalog import Catalog
from ..store.members import Seen
from ..store.writing import Identity, digest, identities_by_id
from .chunker import Chunker, PassageInput

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
    turn: int = 0


class Planner:
    """Turns documents into batches; `size` is the number of documents in the next one and may change between two.

    `turn` is the run's turn in which a batch is planned: before the next one, others may have written.
    """

    def __init__(self, catalog: Path, chunker: Chunker, seen: Seen, size: int) -> None:
        self.catalog = catalog
        self.chunker = chunker
        self.seen = seen
        self.size = size
        self.turn = 0

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
        batch = Batch(read=len(gathered), turn=self.turn)
        keyed: dict[str, tuple[Document, bool]] = {}
        for document in self._as_stored(gathered):
            if isinstance(document, Skipped):
                batch.skipped.append(document)
                if document.key is not None:
                    self.seen.count(document.key)
            elif reason := unfit(document):
                batch.skipped.append(Skipped(document.origin, reason))
            else:
                key, met = key_of(document, self.seen)
                batch.duplicate_ids += met
                again = keyed[key][1] if key in keyed else met
                keyed[key] = (document, again)
        self._classify(keyed, batch)
        return batch

    def _as_stored(self, gathered: list[Document | Skipped]) -> list[Document | Skipped]:
        """Return documents under the decomposed ids and columns that a collection of an earlier version has of them."""
        documents = [each for each in gathered if isinstance(each, Document)]
        keys = {key: spellings(key)[-1] for each in documents if (key := each.key) and not key.isascii()}
        if not keys and "".join(name for each in documents for name in each.metadata).isascii():
            return gathered
        with closing(Catalog.open(self.catalog)) as catalog:
            there = set(identities_by_id(catalog, list({*keys, *keys.values()})))
            columns = {composed(name): name for name in catalog.fields() if not name.isascii()}
        renamed = {key: other for key, other in keys.items() if key not in there and other in there}
        if not renamed and all(new == old for new, old in columns.items()):
            return gathered
        return [_renamed(each, renamed, columns) if isinstance(each, Document) else each for each in gathered]

    def again(self, part: Batch) -> Batch:
        """Plan what is to be written of a part once more, after others have written."""
        anew = replace(part, documents=[])
        self._classify({planned.key: (planned.document, planned.again) for planned in part.documents}, anew)
        return anew

    def _classify(self, keyed: dict[str, tuple[Document, bool]], batch: Batch) -> None:
        with closing(Catalog.open(self.catalog)) as catalog:  # whose file another writer may have replaced
            known = identities_by_id(catalog, list(keyed))
        changed: list[tuple[str, Document, Identity, bool]] = []
        for key, (document, again) in keyed.items():
            identity, before = Identity.of(document), known.get(key)
            # What an earlier batch wrote may be in a commit that is still to come: write it again.
            if before == identity and not again:
                batch.unchanged += 1
            elif before and before.content == identity.content and not again:
                batch.documents.append(PlannedDocument(key, document, identity, False, None))
            else:
                changed.append((key, document, identity, again))
        passages = self.chunker.split([document for _, document, _, _ in changed])
        for planned, inputs in zip(changed, passages, strict=True):
            batch.documents.append(PlannedDocument(*planned, inputs))


def _renamed(document: Document, keys: Mapping[str, str], columns: Mapping[str, str]) -> Document:
    metadata = {columns.get(name, name): value for name, value in document.metadata.items()}
    return replace(document, key=keys.get(document.key or "", document.key), metadata=metadata)


def key_of(document: Document, seen: Seen) -> tuple[str, bool]:
    """Return a document's key and whether this run, of which `seen` is now told, has met the same id before."""
    if document.key is not None:
        return document.key, seen.count(document.key) > 1
    key = digest(document.title, document.text).hex()
    if (times := seen.count(key)) > 1:
        # Texts that occur twice are two documents: the second gets a key of its own, the same in every run.
        key = f"{key}-{times}"
        seen.count(key)
    return key, False


def unfit(document: Document) -> str | None:
    """Return why a document cannot be indexed, None if it can."""
    if is_blank(document.text) and is_blank(document.title):
        return "the text is empty"
    for name, value in (("text", document.text), ("title", document.title), ("id", document.key or "")):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return f"the {name} holds half a surrogate pair at character {error.start + 1}"
        if "\0" in value and name != "id":
            return f"the {name} contains a NUL byte"
    return None


T = TypeVar("T")
_END = object()
PATIENCE = 10.0
"""Seconds to wait for the thread after an error: it may be blocked forever on standard input, and dies with us."""


class Ahead(Generic[T]):
    """Iterates over `items` in a thread of its own, one item ahead; errors come out where they belong."""

    def __init__(self, items: Iterator[T]) -> None:
        self._queue: queue.Queue[object] = queue.Queue(1)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(items,), name="sonde-planner", daemon=True)

    def __enter__(self) -> Iterator[T]:
        self._thread.start()
        return self._items()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        patience = time.monotonic() + PATIENCE
        while self._thread.is_alive() and time.monotonic() < patience:
            self._drain()
            self._thread.join(0.05)

    def _items(self) -> Iterator[T]:
        while (item := self._queue.get()) is not _END:
            yield item  # type: ignore[misc]
        if self._error:
            raise self._error

    def _run(self, items: Iterator[T]) -> None:
        try:
            for item in items:
                self._queue.put(item)
                if self._stop.is_set():
                    return
        except BaseException as error:  # it is raised again in the consuming thread
            self._error = error
        self._queue.put(_END)

    def _drain(self) -> None:
        while not self._queue.empty():
            self._queue.get_nowait()

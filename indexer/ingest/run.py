"""The documents of one index run on their way into commits, in one or several turns, and each commit.

A run holds the writer lock for as long as it takes, which may be hours. So it makes room between two commits if another
writer waits: its turn ends as if it had been killed there, and its next one plans again what was planned before it.

A commit holds little at first, then what takes some seconds at the measured rate. It writes embeddings into a segment,
then documents and passages into the catalog, in one transaction.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import numpy as np

from ..document import Document, Skipped
from ..encoder import Encoder, Tokens
from ..progress import Notify, Progress
from ..store.catalog import Catalog
from ..store.derived import LexicalFollower
from ..store.documents import numbers_by_id
from ..store.integrity import merge_segments
from ..store.kinds import CORRECTION
from ..store.late import is_wanted
from ..store.lock import is_awaited
from ..store.members import Seen, documents_of_kind
from ..store.passages import PassageRow, add_passages, add_segment, digests_in_use, rows_by_digest
from ..store.segments import Segment, Segments, write_segment
from ..store.writing import bury, digest, put_documents, typed_fields
from .chunker import Chunker, PassageInput
from .late import LateFollower
from .plan import Ahead, Batch, PlannedDocument, Planner
from .report import BuildSettings, Tally

FIRST_BATCH, LARGEST_BATCH = 256, 16_384
FAST_COMMIT_SECONDS = 4.0

FIRST_TOKENS = 2_048
"""Of the first commit: a slow model on a busy machine takes some seconds for them."""
SECONDS = 8.0
"""What a commit should take, and so what a kill may cost. Shorter commits would slow down a fast model."""
GROWTH = 4
"""How many times as much as the last commit the next one may have."""


class Run:
    """One index run; as a context, it ends the thread that plans."""

    def __init__(
        self,
        documents: Iterable[Document | Skipped],
        folder: Path,
        encoder: Encoder,
        settings: BuildSettings,
        numbers: Mapping[str, int] | None,
        notify: Notify,
    ) -> None:
        """Take what to index; nothing is read before `turn`.

        Args:
            documents: Read once, as a stream.
            folder: The collection, which exists.
            encoder: Its bi-encoder.
            settings: Of the run.
            numbers: The numbers that new documents get, by key: a run that is given these makes no room for others.
            notify: Receives progress and notes for the user.
        """
        self.folder, self.encoder, self.settings = folder, encoder, settings
        self.numbers, self.notify = numbers, notify
        self.seen, self.tally = Seen(), Tally(folder / "skipped.jsonl")
        self._planner = Planner(folder / "catalog.db", Chunker(encoder), self.seen, settings.batch or FIRST_BATCH)
        self._ahead = Ahead(self._planner.batches(documents))
        self._done, self._turns = 0, 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._parts = self._divided(stack.enter_context(self._ahead))
            self._ends = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    def turn(self, catalog: Catalog) -> bool:
        """Commit until everything is (True) or another writer waits (False); the caller holds the lock.

        Raises:
            SondeError: The disk is full, or the source breaks off or holds no document.
        """
        # Only now that the lock is held again: what is planned while others write counts as planned before.
        self._planner.turn = self._turns
        self._turns += 1
        with LexicalFollower(self.folder, catalog) as lexical:
            lexical.follow()
            late = LateFollower(self.folder, catalog, self.encoder) if is_wanted(catalog) else None
            committer = Committer(self.folder, catalog, lexical, self.encoder, self.tally, late, self.numbers)
            typed = typed_fields(catalog)
            for part in self._parts:
                committer.commit(part if part.turn == self._planner.turn else self._planner.again(part))
                before, typed = typed, typed_fields(catalog)
                self.tally.became_text += tuple(name for name in before if name not in typed)
                self._done += part.read
                self.notify(Progress("embedding", self._done, None, "documents"))
                if self.numbers is None and not (late and late.waits) and is_awaited(self.folder):
                    return False
            if late:
                late.finish()
        if not (self.tally.added or self.tally.replaced or self.tally.unchanged):
            raise self.tally.nothing()  # before `sync` would take the source for an empty one, and delete everything
        return True

    def _divided(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield what goes into each commit."""
        pace = Pace()
        for batch in batches:
            if batch.documents and not self._done:
                self.notify(Progress("embedding", 0, None, "documents"))  # the first commit can take a while
            began = time.monotonic()
            yield from [batch] if self.settings.batch else pace.parts(batch)
            full = batch.read >= self._planner.size and time.monotonic() - began < FAST_COMMIT_SECONDS
            if full and self.settings.batch is None:
                self._planner.size = min(self._planner.size * 2, LARGEST_BATCH)


class Pace:
    """Divides planned batches into commits."""

    def __init__(self) -> None:
        self._tokens = FIRST_TOKENS

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """Yield a batch in parts, in order; what is done with a part until the next is asked for is measured.

        A document is not divided. What was skipped or is unchanged belongs to the first part.
        """
        others = batch.read - len(batch.documents)
        part, tokens = Batch([], batch.skipped, batch.unchanged, batch.duplicate_ids, others, batch.turn), 0
        for planned in batch.documents:
            if tokens >= self._tokens:
                began = time.monotonic()
                yield part
                self._measure(tokens, time.monotonic() - began)
                part, tokens = Batch(turn=batch.turn), 0
            part.documents.append(planned)
            part.read += 1
            tokens += _tokens(planned)
        yield part

    def _measure(self, tokens: int, seconds: float) -> None:
        fitting = round(tokens * SECONDS / max(seconds, 1e-3))
        self._tokens = max(1, min(fitting, self._tokens * GROWTH))


def _tokens(planned: PlannedDocument) -> int:
    return sum(len(passage.tokens.ids) for passage in planned.passages or [])


class Committer:
    """Embeds planned batches and commits them one by one."""

    def __init__(
        self,
        folder: Path,
        catalog: Catalog,
        lexical: LexicalFollower,
        encoder: Encoder,
        tally: Tally,
        late: LateFollower | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        self.folder = folder
        self.catalog = catalog
        self.lexical = lexical
        self.encoder = encoder
        self.fingerprint = encoder.spec.fingerprint
        self.tally = tally
        self.late = late
        self.numbers = numbers or {}
        self.corrected = documents_of_kind(catalog, CORRECTION)
        segments = catalog.segments()
        self._rows_before = segments[-1].start + segments[-1].count if segments else 0

    def commit(self, batch: Batch) -> None:
        """Embed what is new in the batch and make all of it visible at once."""
        if batch.documents:
            inputs = [passage for planned in batch.documents for passage in planned.passages or []]
            digests = [digest(self.fingerprint, passage.text) for passage in inputs]
            stored = rows_by_digest(self.catalog, digests)
            vectors = self._vectors(inputs, digests, stored)
            there = digests_in_use(self.catalog, stored, self._rows_before)
            existing = self._write(batch.documents, digests, vectors, stored)
            self._count(batch.documents, existing, digests, there)
        self.tally.unchanged += batch.unchanged
        self.tally.duplicate_ids += batch.duplicate_ids
        self.tally.skip(batch.skipped)

    def _vectors(self, inputs: list[PassageInput], digests: list[bytes], stored: Mapping[bytes, int]) -> np.ndarray:
        """Return float32 [n, d], embedding each distinct text that no stored vector stands for."""
        fresh = {key: place for place, key in enumerate(digests) if key not in stored}
        vectors = np.empty((len(inputs), self.encoder.spec.dimension), dtype=np.float32)
        embedded = self._encode(list(fresh), [inputs[place].tokens for place in fresh.values()])
        order = {key: place for place, key in enumerate(fresh)}
        reused = [place for place, key in enumerate(digests) if key in stored]
        anew = [place for place, key in enumerate(digests) if key in order]
        vectors[anew] = embedded[[order[digests[place]] for place in anew]]
        vectors[reused] = self._read([stored[digests[place]] for place in reused])
        self.tally.embedded += len(fresh)
        self.tally.reused += len(inputs) - len(fresh)
        self.tally.tokens += sum(len(inputs[place].tokens.ids) for place in fresh.values())
        return vectors

    def _encode(self, digests: list[bytes], tokens: list[Tokens]) -> np.ndarray:
        if not tokens:
            return np.empty((0, self.encoder.spec.dimension), np.float32)
        return self.late.encode(digests, tokens) if self.late else self.encoder.encode(tokens)

    def _read(self, rows: list[int]) -> np.ndarray:
        segments = self.catalog.segments() if rows else []
        return Segments(self.folder / "vectors", segments, self.encoder.spec.dimension).read(np.array(rows, np.int64))

    def _write(
        self,
        documents: list[PlannedDocument],
        digests: list[bytes],
        vectors: np.ndarray,
        stored: Mapping[bytes, int],
    ) -> Mapping[str, int]:
        """Return the numbers of the documents that were there, by id."""
        segment = self._segment(vectors) if len(vectors) else None
        with self.catalog.transaction(write=True):
            existing = numbers_by_id(self.catalog, [planned.key for planned in documents])
            put = [(p.key, p.document, p.identity) for p in documents]
            numbers = put_documents(self.catalog, put, existing, self.numbers)
            pairs = list(zip(documents, numbers, strict=True))
            changed = [doc for p, doc in pairs if p.passages is not None and p.key in existing]
            bury(self.catalog, changed, replaced=True)
            if segment:
                self._add_passages(segment, pairs, digests)
            self.catalog.advance()
            self.lexical.add()
        self.lexical.bury()
        if segment and self.late:
            self.late.commit(range(segment.start, segment.start + segment.count), digests, stored)
        merge_segments(self.folder, self.catalog)
        return existing

    def _segment(self, vectors: np.ndarray) -> Segment:
        known = self.catalog.segments()
        start = known[-1].start + known[-1].count if known else 0
        number = 1 + max((segment.number for segment in known), default=0)
        return write_segment(self.folder / "vectors", number, start, vectors)

    def _add_passages(self, segment: Segment, pairs: list[tuple[PlannedDocument, int]], digests: list[bytes]) -> None:
        owners = [(doc, passage) for planned, doc in pairs for passage in planned.passages or []]
        rows = [
            PassageRow(segment.start + offset, doc, passage.start, passage.end, digests[offset])
            for offset, (doc, passage) in enumerate(owners)
        ]
        add_segment(self.catalog, segment)
        add_passages(self.catalog, rows)

    def _count(
        self, documents: list[PlannedDocument], existing: Mapping[str, int], digests: list[bytes], there: set[bytes]
    ) -> None:
        place = 0
        for planned in documents:
            own = digests[place : (place := place + len(planned.passages or []))]
            self.tally.known_texts += bool(own) and planned.key not in existing and there.issuperset(own)
            self.tally.added += planned.key not in existing
            self.tally.replaced += planned.key in existing and not planned.again
            if planned.passages is not None and not planned.again:
                self.tally.languages.see(planned.document)
                self.tally.non_answers.see(planned.document)
                self.tally.new_texts += planned.key in existing
                if existing.get(planned.key) in self.corrected:
                    self.tally.recoded.append(planned.key)
            cut = sum(passage.cut for passage in planned.passages or [])
            self.tally.cut_tokens += cut
            self.tally.cut_documents += cut > 0

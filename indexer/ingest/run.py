"""The documents of one index run on their way into commits, in one or several turns.

A run holds the writer lock for as long as it takes, which may be hours. So it makes room between two commits if another
writer waits: its turn ends as if it had been killed there, and its next one plans again what was planned before it.

A commit holds little at first, then what takes some seconds at the measured rate.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from ..document import Document, Skipped
from ..encoder import Encoder
from ..progress import Notify, Progress
from ..store.catalog import Catalog
from ..store.derived import LexicalFollower
from ..store.late import is_wanted
from ..store.lock import is_awaited
from ..store.members import Seen
from ..store.retyping import typed_fields
from .chunker import Chunker
from .commit import Committer
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

"""Writing into a lexical index: entries and deletes, visible and durable together at a commit."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tantivy import Document, FieldType, Index, Query

from ..errors import SondeError
from ..languages import normalise
from . import state as states
from .analysis import UNKNOWN, analyzer
from .state import LexicalState, tantivy_errors

# More threads or memory do not index faster here, because the analysis, not the index, takes the time.
THREADS, HEAP_BYTES = 1, 64_000_000
TITLE_WEIGHT = 2


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """One passage to be indexed, under its row; `language` in any form that `normalise` knows, or None."""

    row: int
    title: str
    text: str
    language: str | None = None


class LexicalWriter:
    """The one writer of an index; as a context, it drops what was not committed."""

    def __init__(self, index: Index, folder: Path, committed: Callable[[], None]) -> None:
        self._folder, self._committed = folder, committed
        with tantivy_errors(folder):
            self._writer = index.writer(HEAP_BYTES, THREADS)
        self._schema = index.schema
        self._state = states.read_state(folder)

    def add(self, entries: Iterable[LexicalEntry]) -> int:
        """Index entries and return how many there were; a title counts twice, as two words would.

        Raises:
            SondeError: The index cannot be written, a full disk among the reasons.
        """
        count = 0
        for entry in entries:
            document = self._document(entry)
            with tantivy_errors(self._folder):
                self._writer.add_document(document)
            count += 1
        return count

    def delete(self, rows: Iterable[int]) -> None:
        """Delete rows; one that is not there is no error. A row can be added again afterwards."""
        chosen = list(rows)
        if not chosen:
            return
        with tantivy_errors(self._folder):
            # The delete by term takes every number for a signed one, and so misses rows, which are unsigned.
            self._writer.delete_documents_by_query(Query.term_set_query(self._schema, "row", chosen))

    def delete_from(self, row: int) -> None:
        """Delete this row and every later one."""
        with tantivy_errors(self._folder):
            every = Query.range_query(self._schema, "row", FieldType.Unsigned, lower_bound=row)
            self._writer.delete_documents_by_query(every)

    def commit(self, through_row: int, settled: int = 0) -> LexicalState:
        """Make everything since the last commit durable and visible, and say what the index now holds.

        Args:
            through_row: Every living row below this one is in the index.
            settled: The caller's tombstones that the statistics no longer count.

        Raises:
            SondeError: The index cannot be written; the last commit stays as it was.
        """
        coming = LexicalState(through_row, settled)
        with tantivy_errors(self._folder):
            states.announce(self._folder, self._state, coming)
            self._writer.commit()
            states.confirm(self._folder, coming)
        self._state = coming
        self._committed()
        return coming

    def close(self) -> None:
        """Drop what was not committed, wait for merges, and let another writer in."""
        with tantivy_errors(self._folder):
            self._writer.rollback()
            self._writer.wait_merging_threads()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a failed write, closing fails for the same reason, and the first error tells it better.
        with suppress(SondeError) if error else nullcontext():
            self.close()

    def _document(self, entry: LexicalEntry) -> Document:
        language = normalise(entry.language) or UNKNOWN
        text = " ".join([entry.title] * TITLE_WEIGHT + [entry.text]) if entry.title else entry.text
        fields = {"row": entry.row, "language": language, "text": " ".join(analyzer(language).terms(text))}
        return Document.from_dict(fields, self._schema)

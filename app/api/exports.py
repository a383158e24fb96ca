"""Read and export the documents of a collection: rows, texts, files, DataFrames."""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ...indexer.errors import Ids, UsageError, arg, as_texts
from ...indexer.progress import Notify, silent
from ...indexer.store import export as exporting
from ...indexer.store.documents import DocumentText, texts_by_id
from ...indexer.store.runs import RunColumns
from ...indexer.store.tabular import frame_of, only_columns
from .opened import Opened

if TYPE_CHECKING:
    import pandas as pd


class Exporting(Opened):
    """The methods that read and export documents.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
    """

    def rows(
        self, *, vectors: bool = False, start: int = 0, count: int | None = None, where: str | None = None,
        indicators: str | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Yield documents as dictionaries: id, title, text, metadata, run results and, optionally, the embedding.

        Args:
            vectors: Whether to include each document's embedding, under "vector".
            start: Position of the first document, 0 for the oldest.
            count: Number of documents to yield; all from `start` on if None.
            where: A filter; `start` and `count` then count the documents that match it.
            indicators: A label run that gets one more column for each of its labels, "RUN: LABEL": 1 if the document
                has it, else 0, and None if the document is not in the run. "RUN: none of these" is 1 if it has none.

        Raises:
            UsageError: `start` or `count` is below 0, or the filter is not valid.
            SondeError: There is no such label run.

        Example:
            >>> [row["text"] for row in fruit.rows()][:1]
            ['Apples are red.']
        """
        chosen = _passing(where) or exporting.document_numbers
        some = exporting.part_of(start, count, chosen)
        return exporting.rows(self.stored, vectors=vectors, choose=some, indicators=indicators)

    def texts(self, ids: Ids, length: int | None = None) -> dict[str, DocumentText]:
        """Return the titles and texts of documents by id; unknown ids are left out.

        Args:
            ids: Document ids.
            length: Number of characters to return from the beginning of each text; all if None.

        Example:
            >>> apple = next(fruit.rows())["id"]
            >>> fruit.texts([apple], length=6)[apple].text
            'Apples'
        """
        with self.stored.view() as view:
            return texts_by_id(view.catalog, as_texts(ids, "id"), length)

    def export(
        self, to: str | Path, *, vectors: bool = False, where: str | None = None, without: Container[str] = (),
        columns: Sequence[str] | None = None, raw_formulas: bool = False, indicators: str | None = None,
        mask: bool = False, region: str | None = None, progress: Notify = silent,
    ) -> int:  # fmt: skip
        """Export documents with their metadata and run results; return how many were written. See `export_notes`.

        Args:
            to: An .xlsx, .csv, .parquet, .jsonl or .ris file. The file appears only once it is complete.
            vectors: Whether to write each document's embedding.
            where: A filter on metadata and runs; all documents if None.
            without: Ids of documents to leave out.
            columns: The columns to write, in this order; all if None. Embeddings are written beside them.
            raw_formulas: Whether to leave cells of a CSV file unchanged that a spreadsheet would run as formulas.
                Otherwise they get an apostrophe in front; numbers stay as they are.
            indicators: A label run that gets a column of 1 and 0 for each label; see `rows`.
            mask: Whether to replace personal data that patterns find, in all columns but `id`: "[email]", "[phone]" …
            region: With `mask`: country code by whose rules phone numbers without a country code are read.
            progress: Receives a message if cells were changed or texts masked.

        Raises:
            UsageError: The file has another suffix, or is the file that the collection was made from. Or the filter is
                not valid, or a column does not exist.
            SondeError: The file cannot be written, or it exists and no document would be written.

        Example:
            >>> fruit.export(folder / "fruit.csv", where="length > 15")
            1
        """
        with _masking(mask, region, progress) as change:
            return exporting.write_export(
                self.stored, Path(to), vectors=vectors, without=without, choose=_passing(where),
                columns=self._known(columns), raw_formulas=raw_formulas, indicators=indicators, change=change,
                progress=progress,
            )  # fmt: skip

    def _known(self, columns: Sequence[str] | None) -> Sequence[str] | None:
        """Return columns with "id" in the place of the column that the ids came from, which filters take too."""
        if not columns or self.id_column in exporting.all_columns(self.stored):
            return columns
        return ["id" if name == self.id_column else name for name in columns]

    def export_lines(
        self, stream: TextIO, *, vectors: bool = False, where: str | None = None, columns: Sequence[str] | None = None,
        indicators: str | None = None, mask: bool = False, region: str | None = None, progress: Notify = silent,
    ) -> int:  # fmt: skip
        """Export documents as JSON lines to an open text stream, such as standard output; return how many were written.

        Raises:
            UsageError: The filter is not valid, or a column does not exist.

        Example:
            >>> import io
            >>> fruit.export_lines(io.StringIO())
            3
        """
        known, chosen = self._known(columns), _passing(where)
        with _masking(mask, region, progress) as change:
            return exporting.write_jsonl(
                self.stored, stream, vectors=vectors, choose=chosen, columns=known, indicators=indicators,
                change=change,
            )  # fmt: skip

    def export_notes(self) -> list[str]:
        """Return a note for each run that an export renames to avoid a name clash.

        Example:
            >>> fruit.export_notes()
            []
        """
        with self.stored.view() as view:
            return RunColumns(view.catalog).notes

    def to_pandas(
        self, *, vectors: bool = False, where: str | None = None, columns: Sequence[str] | None = None,
        indicators: str | None = None,
    ) -> "pd.DataFrame":  # fmt: skip
        """Return documents with their metadata as a DataFrame.

        Args:
            vectors: Whether to include each document's embedding, under "vector".
            where: A filter on metadata and runs; all documents if None.
            columns: The columns to return; all if None.
            indicators: A label run that gets a column of 1 and 0 for each label; see `rows`.

        Raises:
            UsageError: The filter is not valid, or a column does not exist.
            MissingExtraError: pandas is not installed.

        Example:
            >>> fruit.to_pandas().columns.tolist()[:3]
            ['id', 'title', 'text']
        """
        found = self.rows(vectors=vectors, where=where, indicators=indicators)
        return only_columns(frame_of(found), columns)


@contextmanager
def _masking(mask: bool, region: str | None, progress: Notify) -> Iterator[exporting.Change | None]:
    """Give what masks the rows of an export, if that is wanted, and tell at the end what it replaced."""
    if region is not None and not mask:
        raise UsageError(f"{arg('region')} needs {arg('mask')}", code="missing-option", field="region")
    if not mask:
        yield None
        return
    from ...pipelines.check import Masker

    masker = Masker(region)
    yield masker.row
    masker.say(progress)


def _passing(where: str | None) -> Callable[[Any], Any] | None:
    """Return a function that selects the documents that match a filter; None, for all documents, without a filter."""
    from ...pipelines.search.filters import documents_where

    return None if where is None else lambda catalog: documents_where(catalog, where)

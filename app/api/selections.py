"""Linked views: all documents as columns, selections over them, and what is done with selected documents by number."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.errors import Ids, as_texts
from ...indexer.progress import Notify, silent
from ...indexer.store.documents import DocumentText, document_texts, numbers_by_id
from ...indexer.store.runs import Run, assignments_of
from ...indexer.store.view import StoredDocument
from .opened import Opened

if TYPE_CHECKING:
    from ...pipelines.analysis.selections import Change, Tagged
    from ...pipelines.facets import Facets
    from ...pipelines.plots.colors import Coloring

NUMBERS = range(1 << 63)
"""The numbers that a document may have: SQLite has no larger integers."""


class Selecting(Opened):
    """The methods for views that filter each other, such as a map, a table and charts, and for documents by number.

    A document keeps its number until it changes.

    Example:
        >>> rows = [{"id": n, "text": f"{word} {n}", "stars": n} for n, word in enumerate(["parcel", "battery"] * 4)]
        >>> shop = sonde.index(rows, to=folder / "shop.sonde", id="id")
    """

    def table(self, map: str | None = None) -> "Facets":
        """Return all documents as columns: places on a map, groups, labels, tags and metadata.

        Each part is computed at the first call, and again only after it has changed.

        Args:
            map: The name of a map run; the newest if None. A collection without a map has no places.

        Raises:
            SondeError: There is no map of this name.

        Example:
            >>> [(column.name, column.kind, column.ends) for column in shop.table().columns]
            [('stars', 'number', (0.0, 7.0))]
        """
        from ...pipelines.facets import table_of

        with self.stored.view() as view:
            return table_of(view, map)

    def select(self, selection: str | Mapping[str, Any]) -> np.ndarray:
        """Return the numbers of the documents that a selection holds, int64, ascending; `numbered` reads them.

        Args:
            selection: As JSON text, as in the address of the Explore page, or as the object that the text stands for.
                docs/selections.md describes its parts.

        Raises:
            UsageError: The selection is not valid, or names a column that does not exist.
            SondeError: It names a map that does not exist, or the model of a query is not available.

        Example:
            >>> few = {"kind": "range", "column": "stars", "low": 0, "high": 1}
            >>> [document.text for document in shop.numbered(shop.select({"mode": "all", "parts": [few]}).tolist())]
            ['parcel 0', 'battery 1']
        """
        from ...pipelines.facets import select

        return select(self.stored, selection)

    def write_page(
        self,
        path: str | Path,
        *,
        map: str | None = None,
        selection: str | Mapping[str, Any] | None = None,
        title: str | None = None,
        length: int | None = None,
        progress: Notify = silent,
    ) -> int:
        """Write one HTML file with the map, a search by words, the table and charts; return its number of documents.

        The file holds the texts, works without a network and opens in any current browser. Anyone who has the file can
        read all of its documents.

        Args:
            path: The file, whose name ends in .html.
            map: The name of a map run; the newest if None. A collection without a map gets a page without one.
            selection: Write only these documents; see `select`. If None, all, which may be 200,000 at most.
            title: What the page is called; the collection's name if None.
            length: Write at most this many characters of each text; all if None.
            progress: Receives messages.

        Raises:
            UsageError: The file's name, the selection or the length is not valid, or there are too many documents.
            SondeError: There is no map of this name, or the file cannot be written.

        Example:
            >>> shop.write_page(folder / "shop.html")
            8
        """
        from .workbench import write_page

        return write_page(self.stored, Path(path), map, selection, title, length, progress)

    def widget(
        self, *, map: str | None = None, height: int = 620, selection: str | Mapping[str, Any] | None = None
    ) -> Any:
        """Return a notebook widget: map, search, table and charts; `widget.selected` is the selection as a DataFrame.

        It works in Jupyter, VS Code, Colab and marimo. `widget.selection` is the selection, as `select` takes it.
        `widget.refresh()` shows what has changed in the collection since.

        Args:
            map: The name of a map run; the newest if None.
            height: Height in pixels, 300 or more.
            selection: What is selected at first; see `select`.

        Raises:
            MissingExtraError: anywidget is not installed (`pip install 'sonde[notebook]'`).
            UsageError: The height or the selection is not valid.
            SondeError: There is no map of this name.

        Example:
            >>> from sonde import MissingExtraError
            >>> try:
            ...     shown = shop.widget()
            ... except MissingExtraError:
            ...     shown = None
        """
        from .workbench import make_widget

        return make_widget(self, map, height, selection)  # type: ignore[arg-type]

    def numbers(self, ids: Ids) -> dict[str, int]:
        """Return the numbers of documents by id; unknown ids are left out.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> sorted(shop.numbers(["3", "0", "nobody"]))
            ['0', '3']
        """
        with self.stored.view() as view:
            return numbers_by_id(view.catalog, as_texts(ids, "id"))

    def numbered(self, docs: Sequence[int]) -> list[StoredDocument]:
        """Return the documents with these numbers, in ascending order; unknown numbers are left out.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> docs = sorted(shop.numbers(["0", "2", "4", "6"]).values())
            >>> [document.text for document in shop.numbered(docs[:2])]
            ['parcel 0', 'parcel 2']
        """
        with self.stored.view() as view:
            return list(view.documents([doc for doc in docs if doc in NUMBERS]).values())

    def beginnings(self, docs: Sequence[int], length: int) -> dict[int, DocumentText]:
        """Return documents by number with the first `length` characters of their texts, reading all texts in one pass.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> [found.text for found in shop.beginnings(docs[:2], 3).values()]
            ['par', 'par']
        """
        wanted = set(docs)
        with self.stored.view() as view:
            return {each.doc: each for each in document_texts(view.catalog, length) if each.doc in wanted}

    def documents_of(self, run: Run) -> np.ndarray:
        """Return the numbers of a run's documents, int64, ascending; a document with two labels appears twice.

        Example:
            >>> shop.tag("few", where="stars < 3").documents
            3
            >>> len(shop.documents_of(shop.run("few").run))
            3
        """
        with self.stored.view() as view:
            return assignments_of(view.catalog, run)[0]

    def colorings(self) -> list[str]:
        """Return the available map colourings: runs as KIND:NAME, newest first, then metadata fields.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> shop.colorings()
            ['tag:few', 'stars']
        """
        from ...pipelines.map.stored import choices

        with self.stored.view() as view:
            return choices(view.catalog)

    def coloring(self, docs: np.ndarray, color: str) -> "tuple[Coloring, bool]":
        """Return the colours of documents, and whether the colour values are days since the year 1.

        Args:
            docs: int64 [n] document numbers, ascending.
            color: One of `colorings`.

        Raises:
            UsageError: The colouring does not exist.

        Example:
            >>> shop.coloring(np.array(docs), "stars")[0].names
            ('0', '2', '4', '6')
        """
        from ...pipelines.map.stored import coloring

        with self.stored.view() as view:
            return coloring(view.catalog, docs, color)

    def contrast_with_rest(self, docs: np.ndarray, sample: int | None = None) -> tuple[tuple[str, float], ...]:
        """Return the terms that distinguish these documents from all others, with their z-scores, best first.

        Args:
            docs: int64, document numbers; numbers that no longer exist are ignored.
            sample: Maximum number of documents on each side in which terms are counted.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> [term for term, _ in shop.contrast_with_rest(np.array(docs))]
            ['parcel']
        """
        from ...pipelines.compare import SAMPLE, against_rest

        with self.stored.view() as view:
            return against_rest(view, docs, SAMPLE if sample is None else sample)

    def tag_numbered(self, name: str, docs: np.ndarray, change: "Change" = "new") -> "Tagged":
        """Tag documents by number; `tag` does this by id or by filter.

        Args:
            name: The tag's name.
            docs: int64, document numbers; numbers that no longer exist are ignored.
            change: How to treat an existing tag of this name: "new" raises an error, "add" and "remove" change the tag,
                "replace" overwrites it.

        Raises:
            UsageError: The name is not valid, the tag already exists, or the tag would have no documents.
            SondeError: Another process is writing.

        Example:
            >>> shop.tag_numbered("few", np.array(docs), "add").documents
            5
        """
        from ...pipelines.analysis.selections import tag

        return tag(self.stored, name, docs=docs, change=change)

    def export_columns(self) -> list[str]:
        """Return the columns that an export has, in their order.

        Example:
            >>> shop.export_columns()[:3]
            ['id', 'title', 'text']
        """
        from ...indexer.store.export import all_columns

        return all_columns(self.stored)

    def export_numbered(
        self, docs: np.ndarray, path: str | Path, *, vectors: bool = False, columns: Sequence[str] | None = None,
        filled: bool = False,
    ) -> int:  # fmt: skip
        """Export documents to an XLSX, Parquet, CSV or JSONL file, chosen by suffix; return how many were written.

        Args:
            docs: int64, document numbers; numbers that no longer exist are ignored.
            path: The file to write.
            vectors: Whether to write each document's embedding too.
            columns: The columns to write, in this order; all if None.
            filled: Whether a workbook of all columns leaves out those without a value; a second sheet names them.

        Raises:
            UsageError: The suffix is not one of these, or a column does not exist.
            SondeError: The file cannot be written.

        Example:
            >>> shop.export_numbered(np.array(docs), folder / "parcels.csv")
            4
        """
        from ...indexer.store.export import only, write_export

        return write_export(self.stored, Path(path), vectors=vectors, choose=only(docs), columns=columns, filled=filled)

"""Linked views: all documents as columns, and selections over them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.progress import Notify, silent
from .opened import Opened

if TYPE_CHECKING:
    from ...pipelines.facets import Facets


class Viewing(Opened):
    """The methods for views that filter each other: a map, a table and charts.

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
        from .pages import write_page

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
        from .widget import make_widget

        return make_widget(self, map, height, selection)  # type: ignore[arg-type]

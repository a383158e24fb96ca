"""The workbench outside the web UI: a notebook widget that returns selections, and one HTML file that works offline."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.errors import MissingExtraError, SondeError, UsageError, arg, out_of_range
from ...indexer.files import check_target, write_output
from ...indexer.progress import Notify
from ...indexer.store.collection import StoredCollection
from ...indexer.store.export import only, refuse_source, rows
from ...indexer.store.tabular import frame_of
from ...indexer.wording import counted
from ...pipelines.facets import Facets, select, table_of
from ...pipelines.facets.table import text_blocks
from ...pipelines.search.search import best_documents
from ..workbench import notebook, style, write_html

if TYPE_CHECKING:
    import pandas as pd

    from .collection import Collection

NAMES = ("s", "color", "names", "view", "sort")
"""What the state of a workbench consists of; all are strings."""
SHOWN = 2_000
"""Characters of a text that the widget shows."""
MOST = 200_000
"""Documents of a page, at most: a browser holds all texts in memory while it searches them."""


def make_widget(
    collection: "Collection", map: str | None, height: int, selection: str | Mapping[str, Any] | None
) -> Any:
    """Return the widget; see `Collection.widget`."""
    try:
        anywidget, traitlets = import_module("anywidget"), import_module("traitlets")
    except ImportError as error:
        raise MissingExtraError("anywidget", "notebook", "a widget") from error
    if height < 300:
        raise UsageError(f"height is {height}: give 300 or more pixels", code="out-of-range", field="height")

    class Workbench(anywidget.AnyWidget):
        """A collection as map, search, table and charts that narrow each other.

        Attributes:
            state: What is selected, and how the map is shown; assign to it to change both.
            selected: The selected documents as a DataFrame; all documents if nothing is selected.
        """

        _esm = notebook()
        _css = style()
        table = traitlets.Bytes().tag(sync=True)
        state = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Enum(NAMES)).tag(sync=True)
        height = traitlets.Int(620).tag(sync=True)

        @property
        def selection(self) -> dict[str, Any]:
            """The selection, as `Collection.select` takes it."""
            return json.loads(self.state.get("s") or '{"mode": "all", "parts": []}')

        @property
        def selected(self) -> "pd.DataFrame":
            return desk.selected(self.state.get("s", ""))

        def refresh(self) -> None:
            """Show what the collection holds now."""
            desk.table = collection.table(map)
            self.table = desk.table.pack()

        def _answer(self, _: object, asked: Any, buffers: object) -> None:
            del buffers
            if isinstance(asked, Mapping):
                self.send(desk.answer(asked))

    desk = Desk(collection, map)
    given = {} if selection is None else selection
    text = given if isinstance(given, str) else json.dumps(given) if given else ""
    if text:
        select(collection.stored, text)  # says now what is wrong with it
    state = {**dict.fromkeys(NAMES, ""), "s": text}
    made = Workbench(table=desk.table.pack(), state=state, height=height)
    made.on_msg(made._answer)
    return made


class Desk:
    """What a widget asks its kernel for; a widget has one, so it can be tested without a browser."""

    def __init__(self, collection: "Collection", map: str | None) -> None:
        """Take the table as it is now; rows keep their meaning when documents are added or deleted."""
        self.collection = collection
        self.table = collection.table(map)

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a message: {"id", "what", …} with {"id", "found"}, or with {"id", "error"}, one line."""
        try:
            found = self._found(asked)
        except SondeError as error:
            return {"id": asked.get("id"), "error": str(error)}
        except (KeyError, TypeError, ValueError):
            return {"id": asked.get("id"), "error": "this version of Sonde does not know the request"}
        return {"id": asked.get("id"), "found": found}

    def _found(self, asked: Mapping[str, Any]) -> Any:
        match asked.get("what"):
            case "rows":
                return documents_in(self.collection, self.table, [int(row) for row in asked["rows"]], SHOWN)
            case "search":
                return best_rows(self.collection, self.table, str(asked["query"]), int(asked["k"]))
            case "part":
                return rows_of_part(self.collection, self.table, {**asked["part"], "not": False})
        raise KeyError("what")

    def selected(self, selection: str) -> "pd.DataFrame":
        """Return the documents of a selection with the columns of `to_pandas`; all of them if it is empty."""
        docs = select(self.collection.stored, selection or "{}")
        return frame_of(rows(self.collection.stored, choose=only(docs)))


def documents_in(collection: "Collection", table: Facets, rows: Sequence[int], length: int) -> list[dict[str, Any]]:
    """Return the documents in some rows of a table, each once, with the first `length` characters of their texts."""
    known = {column.name for column in table.columns}
    row_of = {int(table.docs[row]): row for row in rows if 0 <= row < len(table)}
    return [
        {
            "row": row_of[each.doc], "id": each.id, "title": each.title, "text": each.text[:length],
            "metadata": {name: str(value) for name, value in each.metadata.items() if name not in known},
        }
        for each in collection.numbered(sorted(row_of))
    ]  # fmt: skip


def best_rows(collection: "Collection", table: Facets, query: str, k: int) -> dict[str, Any]:
    """Return the rows of the best k documents of a search, as the part "query" of a selection has them, and scores."""
    docs, relevance = best_documents(collection.stored, query, k)
    known = np.isin(docs, table.docs)
    return {"rows": table.rows(docs).tolist(), "scores": np.round(relevance[known], 6).tolist()}


def rows_of_part(collection: "Collection", table: Facets, part: Any) -> dict[str, Any]:
    """Return the rows that a part of a selection accepts."""
    return {"rows": table.rows(collection.select({"parts": [part]})).tolist()}


def write_page(
    collection: StoredCollection,
    path: Path,
    map: str | None,
    selection: str | Mapping[str, Any] | None,
    title: str | None,
    length: int | None,
    notify: Notify,
) -> int:
    """Write the page and return the number of its documents; see `Collection.write_page`."""
    check_target(path, (".html",), "write")
    refuse_source(collection, path)
    if length is not None and length < 1:
        raise out_of_range("length", length, "give a whole number from 1")
    chosen = None if selection is None else select(collection, selection)
    with collection.view() as view:
        table = table_of(view, map)
        if chosen is not None:
            table = table.subset(np.isin(table.docs, chosen))
        _check_size(table)
        known = {column.name for column in table.columns}
        notify(f"writing {counted(len(table), 'document')}")
        blocks = text_blocks(view, table.docs, known, length)
        name = title if title is not None else table.collection
        write_output(path, lambda stream: write_html(stream, name, table.pack(), blocks))
    return len(table)


def _check_size(table: Facets) -> None:
    if not len(table):
        raise UsageError("the selection holds no documents: nothing to write")
    if len(table) > MOST:
        said = f"a page holds at most {MOST:,} documents, and these are {len(table):,}"
        raise UsageError(f"{said}: choose some with {arg('selection')}", code="too-many", value=len(table))

"""A collection as one HTML file that works offline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.errors import UsageError, arg, out_of_range
from ...indexer.files import check_target, write_output
from ...indexer.progress import Notify
from ...indexer.store.collection import StoredCollection
from ...indexer.store.export import refuse_source
from ...indexer.wording import counted
from ...pipelines.facets import Facets, select, table_of
from ...pipelines.facets.table import text_blocks
from ..workbench.page import write_html

MOST = 200_000
"""Documents of a page, at most: a browser holds all texts in memory while it searches them."""


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

"""Which documents a selection holds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import numbers_by_id
from ...indexer.store.view import View
from ..map.regions import inside
from ..search.search import best_documents
from .selection import Area, Condition, Documents, Part, Query, Range, Selection, Values
from .stored import Parts
from .table import Column

Found = Mapping[Query, np.ndarray]
"""Numbers of the documents that each query finds."""


def select(collection: StoredCollection, given: str | Mapping[str, Any]) -> np.ndarray:
    """Return the numbers of the documents that a selection holds, int64 [m], ascending.

    Args:
        collection: The collection.
        given: The selection, as JSON text or as the object that it stands for; see `selection`.

    Raises:
        UsageError: The selection is not valid, or names a column that the collection does not have.
        SondeError: It names a map that the collection does not have, or the model of a query is not available.
    """
    selection = Selection.parse(given)
    queries = [part.condition for part in selection.parts if isinstance(part.condition, Query)]
    found = {each: best_documents(collection, each.query, each.k)[0] for each in queries}
    with collection.view() as view:
        parts = Parts(view)
        return parts.docs[mask(selection, parts, view, found)]


def mask(selection: Selection, parts: Parts, view: View, found: Found) -> np.ndarray:
    """Return bool [n]: which rows of the table a selection holds."""
    masks = [_mask(part, parts, view, found) for part in selection.parts]
    if not masks:
        return np.ones(len(parts.docs), bool)
    return np.logical_and.reduce(masks) if selection.mode == "all" else np.logical_or.reduce(masks)


def _mask(part: Part, parts: Parts, view: View, found: Found) -> np.ndarray:
    accepted = _accepted(part.condition, parts, view, found)
    return ~accepted if part.negated else accepted


def _accepted(condition: Condition, parts: Parts, view: View, found: Found) -> np.ndarray:
    match condition:
        case Area():
            run = parts.map_run(condition.map)
            return inside(parts.places(run).astype(np.float64), condition.outlines)
        case Values():
            return _of_values(_column(parts, condition.column, ("class",)), condition)
        case Range():
            numbers = _column(parts, condition.column, ("number", "date")).values
            return (numbers >= condition.low) & (numbers <= condition.high)
        case Query():
            return np.isin(parts.docs, found[condition])
        case Documents():
            numbers = numbers_by_id(view.catalog, condition.ids).values()
            return np.isin(parts.docs, np.array(list(numbers), np.int64))


def _column(parts: Parts, name: str, kinds: tuple[str, ...]) -> Column:
    column = parts.column(name)
    if column is None:
        raise UsageError(
            f"{name} has a different value in nearly every document: select by another column", code="selection"
        )
    if column.kind not in kinds:
        advice = "'values'" if column.kind == "class" else "'range'"
        raise UsageError(f"{name} is a {column.kind} column: select in it with the kind {advice}", code="selection")
    return column


def _of_values(column: Column, wanted: Values) -> np.ndarray:
    last = len(column.names) - 1 if column.cut else None
    accepts = [name in wanted.values if code != last else wanted.other for code, name in enumerate(column.names)]
    for code, above in enumerate(column.above):  # a group above comes first
        accepts[code] = accepts[code] or (above >= 0 and accepts[above])
    return np.array([*accepts, None in wanted.values], bool)[column.values]  # the code -1 is the last entry

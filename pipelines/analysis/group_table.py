"""The groups of a run as a table for a report: sizes, terms, and typical texts of each group."""

from typing import Any

import numpy as np

from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import texts_by_id
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.members import sizes_inside
from ...indexer.store.runs import assignments_of, columns_of_runs
from ..search.filters import documents_where
from .runs import Member, RunDetails, members

TERMS, QUOTES, LONGEST = 8, 3, 300
"""Terms and texts of a group, and the characters of a text."""
WIDTHS = {"name": 40, "path": 50, "description": 50, "terms": 60, **{f"quote {n + 1}": 80 for n in range(QUOTES)}}
"""Widths of columns in a workbook, in characters."""


def group_table(
    collection: StoredCollection, found: RunDetails, where: str | None = None
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each group of a run, the largest first, and outliers last.

    With a filter, only the documents that pass it are counted and quoted.
    """
    sizes = {item.number: item.data.get("size", 0) for item in found.items}
    documents = found.run.documents
    if where is not None:
        sizes, documents = sizes_where(collection, found, where)
    ranked = sorted(found.items, key=lambda item: (item.number < 0, -sizes.get(item.number, 0), item.number))
    return tidied([
        group_row(
            item.number, item.name, sizes.get(item.number, 0), documents,
            _named(collection, item.data, where) or quotes(collection, found, item.number, where),
            description=item.data.get("description", ""),
            terms=", ".join(str(term) for term, _ in item.data.get("terms", [])[:TERMS]),
        )
        for item in ranked
    ])  # fmt: skip


def sizes_where(collection: StoredCollection, found: RunDetails, where: str) -> tuple[dict[int, int], int]:
    """Return how many documents that pass a filter each group of a run has, and how many the run has of them.

    Raises:
        UsageError: The filter is not valid.
    """
    with collection.view() as view:
        among = documents_where(view.catalog, where)
        docs = np.unique(assignments_of(view.catalog, found.run)[0])
        return sizes_inside(view.catalog, found.run, among), len(np.intersect1d(docs, among))


def quotes(
    collection: StoredCollection, found: RunDetails, number: int, where: str | None, corrected: str | None = None
) -> list[str]:
    """Return typical texts of a group, among the documents that pass a filter.

    Documents that were coded by hand come last: their score of 1 says who decided, not how typical they are.

    Args:
        collection: Where the run is.
        found: The run.
        number: Of the group.
        where: The filter, or None.
        corrected: The column with the corrections of the run, if it is not that of its own name.
    """
    run = found.run
    with collection.view() as view:
        column = corrected or CORRECTION.column(run.name)
        by_hand = column in columns_of_runs(view.catalog, view.fields) and (corrected or run.kind is LABEL)
    chosen: list[Member] = []
    filters = [f'"{column}" IS NULL', f'"{column}" IS NOT NULL'] if by_hand else [None]
    for one in filters:
        given = " AND ".join(f"({part})" for part in (where, one) if part is not None) or None
        chosen += members(collection, run.name, number, str(run.kind), where=given, k=QUOTES)
    return [_quote(each.title, each.text) for each in chosen[:QUOTES]]


def group_row(
    number: int, name: str, documents: int, whole: int, quotes: list[str], **more: str
) -> dict[str, Any]:  # fmt: skip
    """Return the row of a group: its share is a percentage of the `whole` documents of the run."""
    share = round(100 * documents / max(whole, 1), 1)
    texts = {f"quote {place + 1}": quotes[place] if place < len(quotes) else "" for place in range(QUOTES)}
    return {"number": number, "name": name, **more, "documents": documents, "share in %": share, **texts}


def tidied(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without the columns that are empty in all of them."""
    used = [name for name in (rows[0] if rows else ()) if any(row[name] != "" for row in rows)]
    return [{name: row[name] for name in used} for row in rows]


def shortened(text: str) -> str:
    """Return a text on one line, or its beginning and an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST].rsplit(' ', 1)[0]} …"


def _quote(title: str, text: str) -> str:
    return shortened(f"{title} · {text}" if title.strip() else text)


def _named(collection: StoredCollection, data: Any, where: str | None) -> list[str]:
    """Return the texts that a run names as typical of a group, if they still exist; none with a filter."""
    named = data.get("representatives", [])[:QUOTES]
    if where is not None or not named:
        return []
    with collection.view() as view:
        known = texts_by_id(view.catalog, named, LONGEST * 2)
    return [_quote(known[id].title, known[id].text) for id in named if id in known]

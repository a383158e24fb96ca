"""The groups of a run as a table for a report: sizes, terms, and typical texts of each group."""

from typing import Any

from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import texts_by_id
from .runs import RunDetails, members

TERMS, QUOTES, LONGEST = 8, 3, 300
"""Terms and texts of a group, and the characters of a text."""
WIDTHS = {"name": 40, "path": 50, "description": 50, "terms": 60, **{f"quote {n + 1}": 80 for n in range(QUOTES)}}
"""Widths of columns in a workbook, in characters."""


def group_table(collection: StoredCollection, found: RunDetails) -> list[dict[str, Any]]:
    """Return a row for each group of a run, the largest first, and outliers last."""
    ranked = sorted(found.items, key=lambda item: (item.number < 0, -item.data.get("size", 0), item.number))
    return tidied([
        group_row(
            item.number, item.name, item.data.get("size", 0), found.run.documents,
            [_quote(title, text) for title, text in _texts(collection, found, item.number, item.data)],
            description=item.data.get("description", ""),
            terms=", ".join(str(term) for term, _ in item.data.get("terms", [])[:TERMS]),
        )
        for item in ranked
    ])  # fmt: skip


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


def _texts(collection: StoredCollection, found: RunDetails, number: int, data: Any) -> list[tuple[str, str]]:
    """Return title and text of the typical documents of a group: those that the run names and that still exist."""
    if named := data.get("representatives", [])[:QUOTES]:
        with collection.view() as view:
            known = texts_by_id(view.catalog, named, LONGEST * 2)
        if known:
            return [(known[id].title, known[id].text) for id in named if id in known]
    surest = members(collection, found.run.name, number, str(found.run.kind), k=QUOTES)
    return [(each.title, each.text) for each in surest]

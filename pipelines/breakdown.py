"""How many documents each cluster, topic or label has in each period or class of a metadata column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..indexer.catalog import Catalog
from ..indexer.collection import Collection
from ..indexer.errors import UsageError
from ..indexer.fields import Field
from ..indexer.runs import Item, Kind, items_of
from ..indexer.wording import existing
from .runs import named

CLASSES = 30
"""Classes that are told apart; the rarer ones are counted together."""
OTHERS = "others"
PERIODS = {"year": 4, "month": 7, "day": 10}
"""How many characters of a date name its period."""
MOST = 120
"""Periods beyond which longer ones are taken."""


@dataclass(frozen=True, slots=True)
class RunBreakdown:
    """Counts of documents.

    Attributes:
        column: The metadata column.
        period: "year", "month" or "day" for dates, else None: the parts are classes.
        parts: Names of periods, in order, or of classes, the largest first; numbers by size.
        items: Clusters, topics or labels, by number.
        counts: int64 [items, parts]; a document with several values counts in each.
    """

    column: str
    period: str | None
    parts: tuple[str, ...]
    items: tuple[Item, ...]
    counts: np.ndarray

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each item and part that has documents, as JSON values."""
        return [
            {"number": item.number, "name": item.name, self.period or "class": self.parts[part],
             "documents": int(self.counts[place, part])}
            for place, item in enumerate(self.items) for part in np.flatnonzero(self.counts[place]).tolist()
        ]  # fmt: skip


def breakdown(collection: Collection, run: str, column: str, kind: Kind | None = None) -> RunBreakdown:
    """Count a run's documents by a metadata column: by year, month or day if it holds dates, else by class.

    Raises:
        SondeError: There is no such run.
        UsageError: There is no such column, it has no value, or it is not clear which run is meant.
    """
    with collection.view() as view:
        found = named(view.catalog, run, kind)
        if column not in view.fields:
            raise UsageError(f"there is no metadata column {column!r}: {existing(view.fields)}")
        field = view.fields[column]
        period = _period(view.catalog, field) if field.type == "date" else None
        value = f"substr(m.{field.column}, 1, {PERIODS[period]})" if period else f"m.{field.column}"
        join, value = ("", value) if field.type != "list" else (f", json_each(m.{field.column}) e", "e.value")
        sql = (
            f"SELECT r.item, {value} AS part, count(*) FROM run_documents r JOIN metadata m ON m.doc = r.doc{join} "
            f"WHERE r.run = ? AND {value} IS NOT NULL GROUP BY 1, 2"
        )
        cells = view.catalog.connection.execute(sql, (found.number,)).fetchall()
        items = tuple(items_of(view.catalog, found))
    if not cells:
        raise UsageError(f"the column {column!r} has no value for any document of the run {run!r}")
    ordered = period is not None or field.type in ("integer", "real")
    return _counted(column, period, items, cells, ordered, field.type == "boolean")


def _counted(
    column: str, period: str | None, items: tuple[Item, ...], cells: Sequence[Any], ordered: bool, boolean: bool
) -> RunBreakdown:
    totals: dict[Any, int] = {}
    for _, part, count in cells:
        totals[part] = totals.get(part, 0) + count
    ranked = sorted(totals, key=lambda part: (-totals[part], str(part)))
    kept = ranked if period or len(ranked) <= CLASSES else ranked[: CLASSES - 1]
    kept = sorted(kept) if ordered else kept
    names = [("true" if part else "false") if boolean else str(part) for part in kept]
    places = {part: place for place, part in enumerate(kept)}
    if len(kept) < len(ranked):
        names.append(f"{OTHERS} ({len(ranked) - len(kept):,})")
    rows = {item.number: place for place, item in enumerate(items)}
    counts = np.zeros((len(items), len(names)), np.int64)
    for number, part, count in cells:
        counts[rows[number], places.get(part, len(names) - 1)] += count
    return RunBreakdown(column, period, tuple(names), items, counts)


def _period(catalog: Catalog, field: Field) -> str:
    for name in ("day", "month"):
        sql = f"SELECT count(DISTINCT substr({field.column}, 1, {PERIODS[name]})) FROM metadata"
        if catalog.connection.execute(sql).fetchone()[0] <= (MOST if name == "month" else 62):
            return name
    return "year"

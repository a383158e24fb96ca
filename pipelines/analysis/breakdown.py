"""Documents of a run by the periods or the classes of a metadata column."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.errors import SondeError, UsageError, arg, unknown_option
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import distinct_beginnings, holds_months, summed
from ...indexer.store.export import refuse_source, write_table
from ...indexer.store.fields import (
    PERIODS,
    PRECISION,
    Field,
    Period,
    by_time,
    first_day,
    name_times,
    period_of,
    periods_between,
)
from ...indexer.store.members import counts_by_column, documents_by_column, documents_without, numbers_above
from ...indexer.store.runs import Item, items_of
from ...indexer.store.tabular import Shown
from ...indexer.wording import LISTED, existing
from ..search.filters import documents_where
from .runs import at_level, items_at

CLASSES = 30
"""Classes that are told apart; the rarer ones are counted together."""
OTHERS = "others"
OVER = "a document can have several, so shares can add up to more than 100 %"
MOST = 120
"""Periods beyond which longer ones are taken."""
MOST_PERIODS = 400
"""Periods that are counted, at most."""


@dataclass(frozen=True, slots=True, repr=False)
class RunBreakdown(Shown):
    """Counts of documents.

    Attributes:
        column: The metadata column.
        period: "year", "quarter", "month", "week" or "day" for dates, else None: the parts are classes.
        parts: Names of periods or classes in their order: numbers by size, months and days by time, others by name.
            The last one may be "others (17 values)": the rarer classes, counted together.
        items: Clusters, topics or labels, by number.
        counts: int64 [items, parts]; a document with several values counts in each, and one in a group of a taxonomy
            also in the groups above it, if these are among the items.
        totals: int64 [parts], the documents of the run, each once.
        several: Whether documents count for several items, such as labels: shares can then add up to more than 1.
        without: Documents of the run without a value in the column, which are not counted.
    """

    column: str
    period: Period | None
    parts: tuple[str, ...]
    items: tuple[Item, ...]
    counts: np.ndarray
    totals: np.ndarray
    several: bool = False
    without: int = 0
    _row = "count"

    @property
    def shares(self) -> np.ndarray:
        """Float64 [items, parts]: the part of a period's or class's documents that an item has, 0 to 1."""
        return self.counts / np.maximum(self.totals, 1)

    @property
    def base(self) -> str:
        """What `shares` are shares of, in words."""
        said = f"share of the {self.period or 'class'}'s documents"
        return f"{said} ({OVER})" if self.several else said

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each item and part that has documents, as JSON values."""
        shares = self.shares.round(6)
        return [
            {"number": item.number, "name": item.name, self.period or "class": self.parts[part],
             "documents": int(self.counts[place, part]), "share": float(shares[place, part])}
            for place, item in enumerate(self.items) for part in np.flatnonzero(self.counts[place]).tolist()
        ]  # fmt: skip

    def table(self) -> list[dict[str, Any]]:
        """Return one row for each item and part, also those without documents: the count, n and the share in %."""
        part, percent = self.period or "class", (100 * self.shares).round(1)
        return [
            {"number": item.number, "name": item.name, part: name, "documents": int(self.counts[row, column]),
             "n": int(self.totals[column]), "share in %": float(percent[row, column])}
            for row, item in enumerate(self.items) for column, name in enumerate(self.parts)
        ]  # fmt: skip

    def write(self, collection: StoredCollection, path: Path, progress: Notify = silent) -> int:
        """Write the table to an .xlsx, .csv or .jsonl file, and return its number of rows.

        Raises:
            UsageError: The file has another suffix, or is the one that the collection was made from.
            SondeError: It cannot be written.
        """
        refuse_source(collection, path)
        rows = self.table()
        write_table(rows, path, "counts", {"name": 40}, progress=progress)
        return len(rows)

    def only(self, number: int) -> "RunBreakdown":
        """Return the counts of one item; `without` is 0, because it counts documents of all items.

        Raises:
            SondeError: There is no item with this number.
        """
        place = row_of(number, self.items)
        return replace(self, items=(self.items[place],), counts=self.counts[[place]], without=0)


def row_of(number: int, items: Sequence[Any]) -> int:
    """Return the place of the item with this number.

    Raises:
        SondeError: There is none.
    """
    numbers = [item.number for item in items]
    if number not in numbers:
        low, high = (min(numbers), max(numbers)) if numbers else (0, -1)
        whole = len(numbers) > LISTED and high - low == len(numbers) - 1  # a list would end before the last one
        said = f"there is no group {number}: {f'there are {low} to {high}' if whole else existing(numbers)}"
        raise SondeError(said, code="not-found", field="item", value=number)
    return numbers.index(number)


def breakdown(
    collection: StoredCollection, run: str, column: str, kind: str | None = None, period: Period | None = None,
    where: str | None = None,
) -> RunBreakdown:  # fmt: skip
    """Count a run's documents by a metadata column: by period if it holds dates, else by class.

    Args:
        collection: The collection.
        run: The name of a run: of a taxonomy, the groups at the top are counted. "taxonomy:NAME" counts all its groups,
            and the column of a level, such as "taxonomy:NAME level 1", those of the level.
        column: A metadata column.
        kind: The kind of the run, if several kinds have the name.
        period: Counts by this period, also those without documents. If None, the dates decide: day, month or year.
        where: A filter; all documents of the run if None.

    Raises:
        SondeError: There is no such run.
        UsageError: There is no such column, it has no value, the filter is not valid, the run is a map, or it is not
            clear which run is meant. Or the period is not valid, the column has no dates, or there are more
            than 400 periods.
    """
    if period is not None and period not in PERIODS:
        raise unknown_option("period", period, PERIODS)
    with collection.view() as view:
        found, level = at_level(view.catalog, run, kind)
        level = 0 if level is None and found.kind.nested and run == found.name else level
        if found.kind.payload == "run_places":
            said = f"{run!r} is a {found.kind} run: no document belongs to its {found.kind.items}"
            raise UsageError(said, code="conflict", field="run", value=run)
        if column not in view.fields:
            raise UsageError(f"there is no metadata column {column!r}: {existing(view.fields)}")
        field = view.fields[column]
        name = period or (_period(view.catalog, field) if field.type == "date" else None)
        among = None if where is None else documents_where(view.catalog, where)
        length = PRECISION["day"] if name and field.type == "date" else None
        cells = counts_by_column(view.catalog, found, field, length, among)
        # A document of a run that groups belongs to one item: the counts of all items add up.
        without = documents_without(view.catalog, found, field, among)
        once = None if found.kind.groups else documents_by_column(view.catalog, found, field, length, among)
        dates = existing((each.name for each in view.fields.values() if each.type == "date"), "there are none")
        items = tuple(items_of(view.catalog, found))
        above = numbers_above(view.catalog, found) if found.kind.nested else {}
    if not cells:
        some = "" if where is None else " that passes the filter"
        raise UsageError(f"the column {column!r} has no value for any document of the run {run!r}{some}")
    parts = list[str]()
    if name:
        days = _days(column, cells, dates if field.type != "date" else None)
        cells = [(item, period_of(days[part], name), count) for item, part, count in cells]
        once = once and summed((period_of(days[part], name), count) for part, count in once.items())
        parts = _all_periods(days.values(), name) if period else []
    ordered = name is not None or field.type in ("integer", "real")
    counted = _counted(column, name, items, cells, above, ordered, field.type == "boolean", parts, once)
    kept = {item.number for item in items_at(items, level)}
    rows = [place for place, item in enumerate(items) if item.number in kept]
    return replace(counted, items=tuple(items[place] for place in rows), counts=counted.counts[rows], without=without)


def _days(column: str, cells: Sequence[Any], others: str | None) -> dict[Any, date]:
    """Return the (first) day that each value of a column names; all are days if there are no `others` to take.

    Raises:
        UsageError: A value names none; the message names the other columns that do.
    """
    if others is None:
        return {part: date.fromisoformat(part) for _, part, _ in cells}
    days: dict[Any, date] = {}
    for _, part, _ in cells:
        if (day := first_day(part)) is None:
            said = f"column {column!r} has no dates ({part!r} is not a date); columns of dates here: {others}"
            raise UsageError(said, code="conflict", field="period")
        days[part] = day
    return days


def _all_periods(days: Collection[date], period: Period) -> list[str]:
    """Return the periods from the first day to the last.

    Raises:
        UsageError: There are too many.
    """
    found = periods_between(min(days), max(days), period, MOST_PERIODS)
    if len(found) > MOST_PERIODS:
        said = f"there are more than {MOST_PERIODS} periods of a {period}: use a longer {arg('period')}"
        raise UsageError(said, code="out-of-range", field="period", value=period)
    return found


def _counted(
    column: str, period: Period | None, items: tuple[Item, ...], cells: Sequence[Any],
    above: Mapping[int, Sequence[int]], ordered: bool, boolean: bool, parts: Sequence[str],
    documents: Mapping[Any, int] | None,
) -> RunBreakdown:  # fmt: skip
    """Return the counts; `documents` has those of each part, each once, unless each belongs to one item."""
    sums: dict[Any, int] = dict.fromkeys(parts, 0)
    for _, part, count in cells:
        sums[part] = sums.get(part, 0) + count
    totals = sums if documents is None else dict.fromkeys(parts, 0) | dict(documents)
    ranked = sorted(totals, key=lambda part: (-totals[part], str(part)))
    kept = ranked if period or len(ranked) <= CLASSES else ranked[: CLASSES - 1]
    kept = sorted(kept) if ordered else sorted(kept, key=by_time if name_times(kept) else _natural)
    names = [("true" if part else "false") if boolean else str(part) for part in kept]
    places = {part: place for place, part in enumerate(kept)}
    if len(kept) < len(ranked):
        names.append(f"{OTHERS} ({len(ranked) - len(kept):,} values)")
    rows = {item.number: place for place, item in enumerate(items)}
    counts, once = np.zeros((len(items), len(names)), np.int64), np.zeros(len(names), np.int64)
    for part, count in totals.items():
        once[places.get(part, len(names) - 1)] += count
    for number, part, count in cells:
        place = places.get(part, len(names) - 1)
        counts[[rows[each] for each in above.get(number, (number,))], place] += count
    return RunBreakdown(column, period, tuple(names), items, counts, once, sums != totals)


_DIGITS = re.compile(r"(\d+)")


def _natural(name: Any) -> list[tuple[int, str]]:
    """Return the key by which people sort names: the numbers in them by size, and the case of letters ignored."""
    parts = _DIGITS.split(str(name).casefold())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _period(catalog: Catalog, field: Field) -> Period:
    names: tuple[Period, ...] = ("month",) if holds_months(catalog, field) else ("day", "month")
    for name in names:
        if distinct_beginnings(catalog, field, PRECISION[name]) <= (MOST if name == "month" else 62):
            return name
    return "year"

"""Documents counted by a metadata field or a run, over all documents or those that pass a filter."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from ...indexer.document import Value
from ...indexer.errors import UsageError, arg, did_you_mean, unknown_option
from ...indexer.store.catalog import CHUNK
from ...indexer.store.documents import document_numbers
from ...indexer.store.fields import PERIODS, PRECISION, Period, by_time, first_day, name_times, period_of
from ...indexer.store.kinds import NAME_SUFFIX
from ...indexer.store.members import SEPARATOR, lineages, names_above, numbers_above
from ...indexer.store.runs import RunColumns, items_of, list_runs
from ...indexer.store.view import View
from ...indexer.wording import existing
from .filters import documents_where
from .filters.sql import BUILT_IN
from .text_dates import why_no_dates

DATED = ("date", "text", "integer")
"""Types of columns that can hold dates, months ("2024-05") or years (2024)."""
MOST = 200
"""Values that are listed, at most: the most frequent ones."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How the values of a column are distributed.

    Attributes:
        column: A metadata field, or a run's column such as "topic:NAME name".
        documents: Number of documents that pass the filter.
        missing: Number of these without a value.
        distinct: Number of different values, or periods.
        values: (value, documents): dates, periods and texts that name months or days in their order, other values by
            frequency. A document with a list counts for each of its items. In a taxonomy's column of numbers or names,
            a document counts for its group and the groups above it; numbers are in the order of the tree.
        low: The smallest number or the earliest date, None for other types and for runs.
        high: The largest number or the latest date, None for other types and for runs.
        mean: The mean of numbers, None for other types and for runs.
        names: For a run's column of numbers, the name of each group in `values`; for a taxonomy, the path to it, also
            for its column of names, unless several groups have that name. Empty for other columns.
    """

    column: str
    documents: int
    missing: int
    distinct: int
    values: tuple[tuple[Value, int], ...]
    low: Value = None
    high: Value = None
    mean: float | None = None
    names: tuple[str, ...] = ()


def count_by(view: View, column: str, where: str | None = None, period: Period | None = None) -> Counts:
    """Return how often each value of a column occurs.

    Args:
        view: The view that is counted.
        column: A metadata field, a run's column, or the name of a run: its groups, of a taxonomy those at the top.
        where: A filter; all documents if None.
        period: "year", "quarter", "month", "week" or "day" counts dates by period. Months such as "2024-05" can be
            counted by month, quarter and year.

    Raises:
        UsageError: The column does not exist, the filter is not valid, or a period is given for a column without dates.
    """
    runs = RunColumns(view.catalog)
    column = _known(view, runs, column)
    if period is not None and period not in PERIODS:
        raise unknown_option("period", period, PERIODS)
    if period is not None and (column not in view.fields or view.fields[column].type not in DATED):
        raise _undated(view, column, period)
    docs = document_numbers(view.catalog) if where is None else documents_where(view.catalog, where)
    cells = _cells(view, runs, column, docs)
    if period is not None:
        cells = _periods(view, column, cells, period)
    found = _counted(column, len(docs), cells, in_order=period is not None)
    # The number of a group is a name: it has no mean.
    if column in view.fields:
        return found
    named = _names(view, runs, column)
    values = _in_tree(view, runs, column, found.values)
    names = tuple(named.get(value, str(value)) for value, _ in values) if named else ()
    return replace(found, values=values, low=None, high=None, mean=None, names=names)


def _known(view: View, runs: RunColumns, column: str) -> str:
    """Return a column by its name, or the main column of the only run with that name, or its top level if it has any.

    Raises:
        UsageError: There is none.
    """
    if column in view.fields or column in runs.types:
        return column
    named = [runs.names.get(run.number, "") for run in list_runs(view.catalog, count=False) if run.name == column]
    if len(found := [name for name in named if name in runs.types]) == 1:
        return next(iter(runs.levels(found[0])), found[0])
    known = [*view.fields, *runs.types]
    said = f"there is no column {column!r}{did_you_mean(column, known)}"
    if column in BUILT_IN:
        said = f"documents cannot be counted by {column}, only filtered"
    raise UsageError(f"{said}: {existing(known)}", code="unknown-option", field="column", value=column)


def _cells(view: View, runs: RunColumns, column: str, docs: np.ndarray) -> Iterator[Any]:
    """Yield the value of each document that has one; for a taxonomy, the groups that the document is in."""
    main, groups = ("", {}) if column in view.fields else _groups(view, runs, column)
    for start in range(0, len(docs), CHUNK):
        some = docs[start : start + CHUNK].tolist()
        rows = view.catalog.metadata(some) if column in view.fields else runs.of(some)
        having = (row for row in rows.values() if row.get(column) is not None)
        yield from (groups.get(row[main], row[column]) if groups else row[column] for row in having)


def _names(view: View, runs: RunColumns, column: str) -> Mapping[Any, str]:
    """Return what to call the values of a run's column: the names of numbers, and the paths in a taxonomy."""
    main = column.removesuffix(NAME_SUFFIX)
    run = next((run for run in list_runs(view.catalog, count=False) if runs.names.get(run.number) == main), None)
    if run is None or (column == main and f"{main}{NAME_SUFFIX}" not in runs.types):
        return {}
    if not run.kind.nested:
        return {item.number: item.name for item in items_of(view.catalog, run)} if column == main else {}
    chains = lineages(view.catalog, run)
    if column == main:
        return {number: SEPARATOR.join(chain) for number, chain in chains.items()}
    often = Counter(chain[-1] for chain in chains.values())
    return {chain[-1]: SEPARATOR.join(chain) for chain in chains.values() if often[chain[-1]] == 1}


def _groups(view: View, runs: RunColumns, column: str) -> tuple[str, Mapping[Any, Sequence[Value]]]:
    """Return where the column of a taxonomy has the group's number, and the values of that group and those above it."""
    for run in list_runs(view.catalog, count=False):
        main = runs.names.get(run.number)
        if run.kind.nested and main is not None and column in (main, f"{main}{NAME_SUFFIX}"):
            return main, (numbers_above if column == main else names_above)(view.catalog, run)
    return "", {}


def _in_tree(
    view: View, runs: RunColumns, column: str, values: tuple[tuple[Any, int], ...]
) -> tuple[tuple[Any, int], ...]:
    """Return the numbers of a taxonomy's groups in the order of the tree, other values as they are."""
    main, above = _groups(view, runs, column)
    if column != main:
        return values
    counts = dict(values)
    return tuple(sorted(values, key=lambda pair: [(-counts.get(each, 0), each) for each in reversed(above[pair[0]])]))


def _periods(view: View, column: str, cells: Iterable[Any], period: Period) -> Iterator[str]:
    """Yield the period of each value: a date, or a month or a year that lies in one such period."""
    for cell in cells:
        day = first_day(cell)
        named = cell.isoformat() if isinstance(cell, date) else str(cell).strip()
        if day is None or len(named) < PRECISION[period]:
            raise _undated(view, column, period, cell)
        yield period_of(day, period)


def _undated(view: View, column: str, period: Period, value: Any = None) -> UsageError:
    dated = ", ".join(field.name for field in view.fields.values() if field.type == "date") or "none"
    why = "has no dates" if value is None else f"has no dates ({value!r} names no {period})"
    if isinstance(value, str) and first_day(value) is None:
        cells = _cells(view, RunColumns(view.catalog), column, document_numbers(view.catalog))
        why = why_no_dates(column, cells, f"names no {period}")
    said = f"{arg('period')} is {period!r}, but {column!r} {why}; columns of dates here: {dated}"
    return UsageError(said, field="period", value=period)


def _counted(column: str, documents: int, cells: Iterable[Any], in_order: bool) -> Counts:
    counter, having = Counter[Any](), 0
    for cell in cells:
        having += 1
        items = cell if isinstance(cell, (list, tuple)) else (cell,)
        counter.update({str(item) if isinstance(item, (dict, list)) else item for item in items})
    ordered = sorted(counter.items(), key=lambda pair: (-pair[1], str(pair[0])))
    in_order = in_order or (bool(counter) and all(isinstance(value, date) for value in counter))
    values = sorted(ordered[:MOST], key=lambda pair: pair[0]) if in_order else ordered[:MOST]
    if not in_order and name_times(counter):
        values = sorted(values, key=lambda pair: by_time(pair[0]))
    ends: dict[str, Any] = {}
    if counter and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in counter):
        total = sum(value * count for value, count in counter.items())
        ends = {"low": min(counter), "high": max(counter), "mean": total / sum(counter.values())}
    elif counter and all(isinstance(value, date) for value in counter):
        ends = {"low": min(counter), "high": max(counter)}
    return Counts(column, documents, documents - having, len(counter), tuple(values), **ends)

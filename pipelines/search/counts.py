"""Documents counted by one or two metadata fields or runs, over all documents or those that pass a filter."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
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
from ...indexer.wording import either, existing
from .filters import documents_where
from .filters.sql import BUILT_IN
from .settings import check_page
from .text_dates import why_no_dates

DATED = ("date", "text", "integer")
"""Types of columns that can hold dates, months ("2024-05") or years (2024)."""
MOST = 200
"""Values that are listed, at most, unless another number is asked for."""
NUMBERS = ("integer", "real")
"""Types of columns that have a mean."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How the values of a column are distributed.

    Attributes:
        column: A metadata field, or a run's column such as "topic:NAME name".
        documents: Number of documents that pass the filter.
        missing: Number of these without a value.
        distinct: Number of different values, or periods.
        values: (value, documents): dates, periods and texts that name months or days in their order, other values by
            frequency; k of them from `offset` on. A document with a list counts for each of its items. In a taxonomy's
            column of numbers or names, a document counts for its group and the groups above it; numbers are in the
            order of the tree.
        low: The smallest number or the earliest date, None for other types and for runs.
        high: The largest number or the latest date, None for other types and for runs.
        mean: The mean of numbers, None for other types and for runs.
        names: For a run's column of numbers, the name of each group in `values`; for a taxonomy, the path to it, also
            for its column of names, unless several groups have that name. Empty for other columns.
        means: The mean of `mean_of` for each of `values`, None where no document has a number; empty if not asked for.
        numbers: How many documents each mean is of.
        deviations: The standard deviation (of a sample) beside each mean; None for fewer than two documents.
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
    means: tuple[float | None, ...] = ()
    numbers: tuple[int, ...] = ()
    deviations: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class CrossCounts:
    """How many documents have each pair of values of two columns.

    Attributes:
        columns: The two columns.
        documents: Number of documents that pass the filter.
        missing: Number of these without a value in one of the columns.
        distinct: Number of different values of each column.
        values: The values of each column that are counted, at most k, in the order of `Counts.values`.
        counts: For each value of the first column, the documents with each value of the second.
        means: Likewise, the mean of `mean_of`, None where no document has a number; empty if not asked for.
    """

    columns: tuple[str, str]
    documents: int
    missing: int
    distinct: tuple[int, int]
    values: tuple[tuple[Value, ...], tuple[Value, ...]]
    counts: tuple[tuple[int, ...], ...]
    means: tuple[tuple[float | None, ...], ...] = ()


def count_by(
    view: View, column: str, where: str | None = None, period: Period | None = None, *, mean_of: str | None = None,
    k: int | None = None, offset: int = 0,
) -> Counts:  # fmt: skip
    """Return how often each value of a column occurs.

    Args:
        view: The view that is counted.
        column: A metadata field, a run's column, or the name of a run: its groups, of a taxonomy those at the top.
        where: A filter; all documents if None.
        period: "year", "quarter", "month", "week" or "day" counts dates by period. Months such as "2024-05" can be
            counted by month, quarter and year.
        mean_of: A metadata field of numbers, whose mean is returned for each value.
        k: Number of values to list, 1 or more; None lists `MOST`.
        offset: Number of values to leave out before the first one that is listed.

    Raises:
        UsageError: A column does not exist, the filter is not valid, a period is given for a column without dates,
            `mean_of` has no numbers, k is below 1 or the offset below 0.
    """
    k = MOST if k is None else k
    check_page(k, offset)
    runs = RunColumns(view.catalog)
    column = _known(view, runs, column)
    _check(view, (column,), period, mean_of)
    docs = document_numbers(view.catalog) if where is None else documents_where(view.catalog, where)
    cells = ((values, number) for (values,), number in _cells(view, runs, (column,), docs, period, mean_of))
    found, sums = _counted(column, len(docs), cells, in_order=period is not None)
    # The number of a group is a name: it has no mean.
    if column not in view.fields:
        found = replace(found, values=_in_tree(view, runs, column, found.values), low=None, high=None, mean=None)
    named = {} if column in view.fields else _names(view, runs, column)
    values = found.values[offset : offset + k]
    names = tuple(named.get(value, str(value)) for value, _ in values) if named else ()
    beside = sums.beside([value for value, _ in values]) if mean_of is not None else {}
    return replace(found, values=values, names=names, **beside)


def cross_by(
    view: View, first: str, second: str, where: str | None = None, period: Period | None = None, *,
    mean_of: str | None = None, k: int = 20,
) -> CrossCounts:  # fmt: skip
    """Return how many documents have each pair of values of two columns.

    Args:
        view: The view that is counted.
        first: A metadata field, a run's column, or the name of a run.
        second: Another one.
        where: A filter; all documents if None.
        period: Counts dates of these columns by this period.
        mean_of: A metadata field of numbers, whose mean is returned for each pair.
        k: Number of values of each column that are counted, 1 or more: the first in the order of `Counts.values`.

    Raises:
        UsageError: A column does not exist, both are the same, the filter is not valid, a period is given and no column
            has dates, `mean_of` has no numbers, or k is below 1.
    """
    check_page(k, 0)
    runs = RunColumns(view.catalog)
    columns = _known(view, runs, first), _known(view, runs, second)
    if columns[0] == columns[1]:
        raise UsageError(f"both columns are {first!r}: give two different ones", field="second", value=second)
    dated = [each for each in columns if each in view.fields and view.fields[each].type == "date"]
    _check(view, dated or columns, period, mean_of)
    docs = document_numbers(view.catalog) if where is None else documents_where(view.catalog, where)
    sides, pairs, missing = (Counter[Any](), Counter[Any]()), Counter[tuple[Any, Any]](), 0
    sums = _Sums()
    for both, number in _cells(view, runs, columns, docs, period, mean_of, dated or columns):
        if both[0] is None or both[1] is None:
            missing += 1
            continue
        for pair in product(both[0], both[1]):
            pairs[pair] += 1
            sums.add(pair, number)
        sides[0].update(both[0])
        sides[1].update(both[1])
    by_time = [period is not None and each in (dated or columns) for each in columns]
    listed = [_in_order(*each) for each in zip(sides, by_time, strict=True)]
    rows, heads = (tuple(value for value, _ in values[:k]) for values in listed)
    counts = tuple(tuple(pairs[row, head] for head in heads) for row in rows)
    means = tuple(tuple(sums.mean((row, head)) for head in heads) for row in rows) if mean_of is not None else ()
    distinct = len(sides[0]), len(sides[1])
    return CrossCounts(columns, len(docs), missing, distinct, (rows, heads), counts, means)


class _Sums:
    """Means and deviations of a column of numbers, by the values of others (Welford, 1962)."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[int, float, float]] = {}

    def add(self, key: Any, number: float | None) -> None:
        """Add the number of a document, if it has one."""
        if number is not None:
            many, mean, squares = self._known.get(key, (0, 0.0, 0.0))
            after = mean + (number - mean) / (many + 1)
            self._known[key] = many + 1, after, squares + (number - mean) * (number - after)

    def mean(self, key: Any) -> float | None:
        """Return the mean of the numbers, None if there are none."""
        many, mean, _ = self._known.get(key, (0, 0.0, 0.0))
        return mean if many else None

    def beside(self, keys: Sequence[Any]) -> dict[str, Any]:
        """Return the means, how many numbers each is of, and their standard deviations, as fields of `Counts`."""
        found = [self._known.get(key, (0, 0.0, 0.0)) for key in keys]
        deviations = tuple((squares / (many - 1)) ** 0.5 if many > 1 else None for many, _, squares in found)
        return {
            "means": tuple(map(self.mean, keys)),
            "numbers": tuple(many for many, _, _ in found),
            "deviations": deviations,
        }


def _check(view: View, columns: Sequence[str], period: Period | None, mean_of: str | None) -> None:
    """Refuse a period of columns without dates, and the mean of a column without numbers.

    Raises:
        UsageError: It is such a column.
    """
    if period is not None and period not in PERIODS:
        raise unknown_option("period", period, PERIODS)
    for column in columns:
        if period is not None and (column not in view.fields or view.fields[column].type not in DATED):
            raise _undated(view, column, period)
    if mean_of is not None and (mean_of not in view.fields or view.fields[mean_of].type not in NUMBERS):
        known = existing((each.name for each in view.fields.values() if each.type in NUMBERS), "there are none")
        said = f"{arg('mean_of')} is {mean_of!r}, which is not a column of numbers: {known}"
        raise UsageError(said, field="mean_of", value=mean_of)


def _known(view: View, runs: RunColumns, column: str) -> str:
    """Return a column by its name, or the main column of the only run with that name, or its top level if it has any.

    Raises:
        UsageError: There is none.
    """
    if column in view.fields or column in runs.types:
        return column
    same = [run for run in list_runs(view.catalog, count=False) if run.name == column]
    kinds = {run.kind for run in same}
    # A run of corrections has the name of the label run that it belongs to, and gives way to it.
    named = [runs.names.get(run.number, "") for run in same if run.kind.follows not in kinds]
    if len(found := [name for name in named if name in runs.types]) == 1:
        return next(iter(runs.levels(found[0])), found[0])
    if found:
        said = f"several runs have the name {column!r}: use {either(found)}"
        raise UsageError(said, code="ambiguous", field="column", value=column, alternatives=found)
    known = [*view.fields, *runs.types]
    said = f"there is no column {column!r}{did_you_mean(column, known)}"
    if column in BUILT_IN:
        said = f"documents cannot be counted by {column}, only filtered"
    raise UsageError(f"{said}: {existing(known)}", code="unknown-option", field="column", value=column)


def _cells(
    view: View, runs: RunColumns, columns: Sequence[str], docs: np.ndarray, period: Period | None, mean_of: str | None,
    dated: Sequence[str] | None = None,
) -> Iterator[tuple[list[set[Any] | None], Any]]:  # fmt: skip
    """Yield for each document its values in each column, None where it has none, and its number in `mean_of`."""
    every = [*columns, mean_of] if mean_of is not None else columns
    named: list[Callable[[Any], Any]] = [
        _period_in(view, column, period) if period is not None and column in (dated or columns) else lambda cell: cell
        for column in columns
    ]
    for row in _rows(view, runs, every, docs):
        found = [
            None if cell is None else _items(name(cell)) for name, cell in zip(named, row[: len(columns)], strict=True)
        ]
        yield found, row[-1] if mean_of is not None else None


def _items(cell: Any) -> set[Any]:
    items = cell if isinstance(cell, (list, tuple)) else (cell,)
    return {str(item) if isinstance(item, (dict, list)) else item for item in items}


def _rows(view: View, runs: RunColumns, columns: Sequence[str], docs: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """Yield each document's values of columns, None where it has none; for a taxonomy, the groups that it is in."""
    places = [("", {}) if column in view.fields else _groups(view, runs, column) for column in columns]
    stored = any(column in view.fields for column in columns)
    of_runs = any(column not in view.fields for column in columns)
    for start in range(0, len(docs), CHUNK):
        some = docs[start : start + CHUNK].tolist()
        metadata = view.catalog.metadata(some) if stored else {}
        assigned = runs.of(some) if of_runs else {}
        for doc in some:
            row = (
                {**assigned.get(doc, {}), **metadata.get(doc, {})}
                if stored and of_runs
                else (metadata if stored else assigned).get(doc, {})
            )
            yield tuple(
                groups.get(row[main], row[column]) if groups and row.get(column) is not None else row.get(column)
                for column, (main, groups) in zip(columns, places, strict=True)
            )


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


def _period_in(view: View, column: str, period: Period) -> Callable[[Any], str]:
    """Return what names the period of a value: a date, or a month or a year that lies in one such period."""

    def named(cell: Any) -> str:
        day = first_day(cell)
        text = cell.isoformat() if isinstance(cell, date) else str(cell).strip()
        if day is None or len(text) < PRECISION[period]:
            raise _undated(view, column, period, cell)
        return period_of(day, period)

    return named


def _undated(view: View, column: str, period: Period, value: Any = None) -> UsageError:
    dated = ", ".join(field.name for field in view.fields.values() if field.type == "date") or "none"
    why = "has no dates" if value is None else f"has no dates ({value!r} names no {period})"
    if isinstance(value, str) and first_day(value) is None:
        rows = _rows(view, RunColumns(view.catalog), (column,), document_numbers(view.catalog))
        cells = (cell for (cell,) in rows if cell is not None)
        why = why_no_dates(column, cells, f"names no {period}")
    said = f"{arg('period')} is {period!r}, but {column!r} {why}; columns of dates here: {dated}"
    return UsageError(said, field="period", value=period)


def _counted(
    column: str, documents: int, cells: Iterable[tuple[set[Any] | None, Any]], in_order: bool
) -> tuple[Counts, _Sums]:
    """Return the counts of all values, in their order, and the sums of the numbers beside them."""
    counter, having, sums = Counter[Any](), 0, _Sums()
    for values, number in cells:
        having += values is not None
        counter.update(values or ())
        for value in values or ():
            sums.add(value, number)
    ends: dict[str, Any] = {}
    if counter and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in counter):
        total = sum(value * count for value, count in counter.items())
        ends = {"low": min(counter), "high": max(counter), "mean": total / sum(counter.values())}
    elif counter and all(isinstance(value, date) for value in counter):
        ends = {"low": min(counter), "high": max(counter)}
    values = _in_order(counter, in_order)
    return Counts(column, documents, documents - having, len(counter), values, **ends), sums


def _in_order(counter: Mapping[Any, int], in_order: bool) -> tuple[tuple[Any, int], ...]:
    """Return values with their counts: periods, dates and texts that name times in their order, others by frequency."""
    if in_order or (counter and all(isinstance(value, date) for value in counter)):
        return tuple(sorted(counter.items(), key=lambda pair: pair[0]))
    ordered = sorted(counter.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return tuple(sorted(ordered, key=lambda pair: by_time(pair[0])) if name_times(counter) else ordered)

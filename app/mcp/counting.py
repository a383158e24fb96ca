"""The tools of the MCP server that count: per value, over time, and between two parts of a collection; duplicates."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ...indexer.errors import UsageError, arg, out_of_range
from ...indexer.store.fields import Period, name_times
from ...indexer.wording import listed
from ...pipelines.analysis.breakdown import OTHERS, OVER, RunBreakdown
from ...pipelines.analysis.statistics import changed_beyond_chance
from ...pipelines.search.counts import Counts
from ..api import Collection
from .answers import (
    MOST_CELLS,
    MOST_HITS,
    MOST_VALUES,
    TERMS,
    checked,
    counts_of,
    cross_of,
    duplicates_of,
    filled,
    past,
    quantiles,
)
from .tools import Name, Tools, Where, told

if TYPE_CHECKING:
    from ...pipelines.duplicates import Duplicates

DAYS = 1_500
"""Dates with many different days are counted by month, and by year if the first and last are further apart."""
MOST_NUMBERS = 200
"""Numbers with more different values are shown as quantiles."""
LONG_VALUES = 100
"""Characters of a column's values, on average, from which they are texts to read, not values to count."""
FEW_VALUES = 20
"""Different values that are counted however long they are."""
PERIODS: tuple[Period | None, ...] = (None, "month", "quarter", "year")
"""How the dates of a table are counted: by day, or by the first of these that has few enough values."""


class CountTools(Tools):
    """Tools that read collections, and count their documents."""

    _duplicates: "tuple[Any, Duplicates] | None" = None
    """The last search for duplicates, and of what."""

    @property
    def every(self) -> list[Callable[..., dict[str, Any]]]:
        """The tools that only read."""
        return [*super().every, self.count, self.compare, self.trends, self.duplicates]

    @told
    def count(
        self,
        where: Where = None,
        by: Annotated[
            str | list[str] | None,
            "A metadata column, or a run's column such as: topic:topics name. A list of two columns makes a table.",
        ] = None,
        period: Annotated[Period | None, "Count dates by this period."] = None,
        mean_of: Annotated[str | None, "A column of numbers: show its mean for each value."] = None,
        offset: Annotated[int, "Values to skip: the next_offset of the list before."] = 0,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Count documents: all, those that pass a condition, or per value of one or two columns.

        At most 50 values are listed (20 by 20 for two columns): dates in order, others by frequency. `others`
        counts the rest. Without a period, dates with more values are counted by month or year. Columns of numbers also
        get their mean; with more than 200 different values, quantiles instead.
        """
        chosen = self._one(collection)
        if offset < 0:
            raise out_of_range("offset", offset, "give 0 or more")
        columns = [by] if isinstance(by, str) else by or []
        if len(columns) > 2:
            raise UsageError(f"by names {len(columns)} columns: give one or two", field="by", value=by)
        if offset and len(columns) != 1:
            said = f"offset is for the values of one column: give {arg('where')}, such as plan NOT IN ('a', 'b')"
            raise UsageError(said, field="offset", value=offset)
        if len(columns) == 2:
            return self._table(chosen, columns, where, period, mean_of)
        if columns:
            return self._values(chosen, columns[0], where, period, mean_of, offset)
        if mean_of is not None:
            found = counts_of(chosen.count_by(mean_of, where, mean_of=mean_of), 0, mean_of)
            return {name: value for name, value in found.items() if name not in ("values", "others", "next_offset")}
        passing = len(chosen) if where is None else chosen.matching(where, k=0)[0]
        return {"documents": passing} | filled(notes=_why_none(chosen, where, passing))

    def _values(
        self, chosen: Collection, by: str, where: str | None, period: Period | None, mean_of: str | None, offset: int
    ) -> dict[str, Any]:
        given: dict[str, Any] = {"mean_of": mean_of, "k": MOST_VALUES, "offset": offset}
        found = chosen.count_by(by, where, period=period, **given)
        _check_short(chosen, found)
        notes = [*_why_none(chosen, where, found.documents), *past(offset, found.distinct, "values")]
        if period is None and isinstance(found.low, date) and (found.distinct > MOST_VALUES or _months(found)):
            period = "month" if (_day(found.high) - _day(found.low)).days <= DAYS or _months(found) else "year"
            found = replace(chosen.count_by(by, where, period=period, **given), low=found.low, high=found.high)
        answer = counts_of(found, offset, mean_of) | filled(period=period, notes=notes)
        if found.mean is not None and found.distinct > MOST_NUMBERS and not offset and mean_of is None:
            every: Any = chosen.count_by(by, where, k=found.distinct).values
            left_out = ("values", "others", "next_offset")
            return {name: each for name, each in answer.items() if name not in left_out} | {
                "quantiles": quantiles(every)
            }
        return answer

    def _table(
        self, chosen: Collection, columns: list[str], where: str | None, period: Period | None, mean_of: str | None
    ) -> dict[str, Any]:
        fields = chosen.fields()
        dated = [each for each in columns if fields.get(each) == "date"]
        if dated and period is None:
            period = _fitting(chosen, dated[0], where)
        for column in [each for each in columns if fields.get(each) in ("text", "integer", "real")]:
            _check_few(chosen, chosen.count_by(column, where, k=MOST_VALUES))
        found = chosen.cross_by(columns[0], columns[1], where, period=period, mean_of=mean_of, k=MOST_CELLS)
        return cross_of(found) | filled(period=period, notes=_why_none(chosen, where, found.documents))

    @told
    def compare(
        self,
        first: Annotated[str, "SQL condition of the first part, such as: stars <= 2"],
        second: Annotated[str, "SQL condition of the second part."],
        collection: Name = None,
    ) -> dict[str, Any]:
        """Compare two parts of a collection: their sizes, and the words that are more frequent in each.

        Only words whose difference is beyond chance are listed (5 %, corrected for the number of words). `similarity`
        is the cosine of the parts' mean embeddings.
        """
        found = self._one(collection).contrast([first, second])
        sides = zip((first, second), found.sides, strict=True)
        return {
            "similarity": round(found.similarity, 4),
            **filled(documents_in_both=found.common or None),
            "parts": [
                {"where": where, "documents": side.documents,
                 "terms": list(side.beyond_chance)}
                for where, side in sides
            ],
        }  # fmt: skip

    @told
    def trends(
        self,
        run: Annotated[str, "A run of topics, clusters or labels, as `collections` lists it."],
        by: Annotated[str, "A metadata column with dates, or with few different numbers, such as a year."],
        where: Where = None,
        kind: Annotated[str | None, "cluster, topic or label, if runs of several kinds have this name."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Show which topics, clusters or labels grew or shrank: documents by period, and the change of their share.

        `change` is the item's share of the documents in the later half of the periods, minus its share in the earlier
        half. It is `certain` if it is beyond chance (two-proportion z-test, 5 %, with Bonferroni's correction). `total`
        has all documents of each period.
        """
        chosen = self._one(collection)
        if run in chosen.fields() and run not in {each.name for each in chosen.uncounted_runs()}:
            said = f"{run!r} is a metadata column, not a run: `count` with by {json.dumps([run, by])} counts its values"
            raise UsageError(f"{said} over time", field="run", value=run)
        found = chosen.breakdown(run, by, kind, where=where)
        _check_order(chosen, found, by)
        middle = len(found.parts) // 2
        early, late = found.counts[:, :middle].sum(axis=1), found.counts[:, middle:].sum(axis=1)
        before, after = int(found.totals[:middle].sum()), int(found.totals[middle:].sum())
        change = late / max(after, 1) - early / max(before, 1)
        certain = changed_beyond_chance(early, late, (before, after))
        rows = [
            {"number": item.number, "name": item.name, "change": round(float(share), 4), **filled(certain=sure or None),
             "documents": {part: int(n) for part, n in zip(found.parts, counts, strict=True) if n}}
            for item, share, sure, counts in zip(found.items, change, certain, found.counts, strict=True)
        ]  # fmt: skip
        rows.sort(key=lambda row: -row["change"])
        half = MOST_VALUES // 2
        shown = rows if len(rows) <= MOST_VALUES else [*rows[:half], *rows[-half:]]
        total = dict(zip(found.parts, map(int, found.totals), strict=True))
        notes = [OVER] if found.several else []
        left_out = filled(items_with_less_change=len(rows) - len(shown) or None, notes=notes)
        return {"later_half_from": found.parts[middle], "total": total, **left_out, "items": shown}

    @told
    def duplicates(
        self,
        kind: Annotated[
            Literal["exact", "near", "meaning"],
            "exact: the same text; near: nearly the same; meaning: also paraphrases.",
        ] = "near",
        k: Annotated[int, f"Groups to list, 1 to {MOST_HITS}."] = 10,
        offset: Annotated[int, "Groups to skip: the next_offset of the list before."] = 0,
        collection: Name = None,
    ) -> dict[str, Any]:
        """List groups of documents with the same or nearly the same text, the largest first.

        `redundant` is the number of documents that repeat another one. Only texts are compared: metadata, such as an
        answer, can differ, and near duplicates can differ in a number or a name.
        """
        chosen = self._one(collection)
        checked("k", k, MOST_HITS)
        if offset < 0:
            raise out_of_range("offset", offset, "give 0 or more")
        kinds = ("exact", "near", "meaning")[: ("exact", "near", "meaning").index(kind) + 1]
        key = chosen.path, chosen.documents_state(), kinds
        last = self._duplicates  # of one call, while others run
        if last is None or last[0] != key:  # the next page of a long search costs nothing
            last = self._duplicates = key, chosen.duplicates(kinds=kinds)
        found = last[1]
        shown = found.groups[offset : offset + k]
        every = [[group.representative, *(each.id for each in group.duplicates[:TERMS])] for group in shown]
        texts = chosen.documents([id for ids in every for id in ids])
        return duplicates_of(found, shown, texts, offset)


def _fitting(chosen: Collection, column: str, where: str | None) -> Period | None:
    for period in PERIODS:
        found = chosen.count_by(column, where, period=period, k=MOST_CELLS)
        if found.distinct <= MOST_CELLS:
            return "month" if _months(found) else period
    return PERIODS[-1]


def _months(found: Counts) -> bool:
    """Whether a column of dates has the first day of a month only: it is shown as months."""
    days = [value for value, _ in found.values]
    return found.distinct == len(days) > 1 and all(type(day) is date and day.day == 1 for day in days)


def _why_none(chosen: Collection, where: str | None, passing: int) -> list[str]:
    return [chosen.explain_filter(where)] if where is not None and not passing else []


def _check_short(chosen: Collection, found: Counts) -> None:
    """Refuse to count long texts.

    Raises:
        UsageError: The column holds such texts; the message names columns that do not.
    """
    lengths = [len(value) for value, _ in found.values if isinstance(value, str)]
    if found.distinct <= FEW_VALUES or sum(lengths) <= LONG_VALUES * len(found.values):
        return
    suits = [each.name for each in chosen.facets() if each.choices or each.low is not None]
    suited = listed(suits) or "none"
    said = f"{found.column!r} holds long texts: find them with `search`. Columns that you can count by: {suited}"
    raise UsageError(said, field="by", value=found.column)


def _check_few(chosen: Collection, found: Counts) -> None:
    """Refuse a column of long texts, or of many different numbers, as a side of a table.

    Raises:
        UsageError: It is such a column.
    """
    _check_short(chosen, found)
    if found.mean is not None and found.distinct > MOST_NUMBERS:
        said = f"{found.column!r} has {found.distinct:,} different numbers: use it as mean_of"
        raise UsageError(said, field="by", value=found.column)


def _check_order(chosen: Collection, found: RunBreakdown, by: str) -> None:
    """Refuse a column whose values have no order, or of which not all are counted apart.

    Raises:
        UsageError: It is such a column, or it has only one value.
    """
    kind = chosen.fields().get(by)
    if len(found.parts) < 2:
        raise UsageError(f"{by!r} has only one value, so there is no trend", field="by", value=by)
    if found.period is None and kind not in ("integer", "real") and not name_times(found.parts):
        said = f"{by!r} is not a column of dates or numbers, so its values have no order: use `count` instead"
        raise UsageError(said, field="by", value=by)
    if found.parts[-1].startswith(OTHERS):
        said = f"{by!r} has too many different numbers for a trend: `compare` two parts, such as {by} < 10"
        raise UsageError(said, field="by", value=by)


def _day(value: Any) -> date:
    return value if isinstance(value, date) and not isinstance(value, datetime) else value.date()

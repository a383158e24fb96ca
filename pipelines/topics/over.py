"""Topics over time, and topics by the classes of a metadata column: how many documents, and which words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.document import Value
from ...indexer.errors import UsageError, arg, unknown_option
from ...indexer.store.documents import document_numbers
from ...indexer.store.fields import PERIODS, Period, by_time, first_day, name_times, period_of, periods_between
from ...indexer.store.runs import assignments_of, find_run
from ...indexer.store.tabular import Shown
from ...indexer.store.view import View
from ...indexer.wording import counted, existing
from ..analysis.breakdown import MOST_PERIODS, row_of
from ..analysis.corpus import texts_of
from ..analysis.terms import Counts, Weighted, terms_of
from ..search.text_dates import why_no_dates
from .items import words_of

if TYPE_CHECKING:
    from .results import Topic
    from .stored import Topics

MOST_CLASSES = 50
CELL_TEXTS = 100
"""Texts of a topic in a period that its words are taken from, at most."""
CELL_TERMS = 5
AT_ONCE = 20_000
Cell = tuple[int, int]


@dataclass(frozen=True, repr=False)
class Breakdown(Shown):
    """Documents of each topic in each period or class.

    Attributes:
        column: The metadata column.
        kind: "period" or "class".
        parts: The periods in order, or the classes, the largest first; classes that name months or days in order.
        topics: The topics, by number.
        counts: int64 [topics, parts]; a document with several values counts in each.
        totals: int64 [parts]: documents in each, those without a topic included.
        terms: By topic and part, where there are documents: what tells these apart from the topic's others.
        without: Documents with a topic and without a value.
    """

    column: str
    kind: str
    parts: tuple[str, ...]
    topics: "tuple[Topic, ...]"
    counts: np.ndarray
    totals: np.ndarray
    terms: Mapping[Cell, Weighted]
    without: int
    _row = "count"

    @property
    def shares(self) -> np.ndarray:
        """Float64 [topics, parts]: the part of a period's or class's documents that a topic has, 0 to 1."""
        return self.counts / np.maximum(self.totals, 1)

    @property
    def timed(self) -> bool:
        """Whether the parts are in order of time: periods, or classes that name months or days."""
        return self.kind == "period" or name_times(self.parts)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each topic and part that has documents, as JSON values."""
        shares = self.shares.round(6)
        return [
            {"topic": topic.number, "name": topic.name, self.kind: self.parts[part],
             "documents": int(self.counts[place, part]),
             "share": float(shares[place, part]),
             "terms": [term for term, _ in self.terms.get((place, part), [])]}
            for place, topic in enumerate(self.topics)
            for part in range(len(self.parts)) if self.counts[place, part]
        ]  # fmt: skip

    def only(self, number: int) -> "Breakdown":
        """Return the counts of one topic; `without` is 0, because it counts documents of all topics.

        Raises:
            SondeError: There is no topic with this number.
        """
        place = row_of(number, self.topics)
        terms = {(0, part): words for (topic, part), words in self.terms.items() if topic == place}
        return replace(self, topics=(self.topics[place],), counts=self.counts[[place]], terms=terms, without=0)

    def draw(self, path: str | Path, title: str, *, shares: bool = False) -> None:
        """Draw lines over periods, or a bar for each class, to an .html, .png or .svg file.

        Args:
            path: The file.
            title: Above the plot.
            shares: Draw the topics' shares of each period's or class's documents, not their counts.

        Raises:
            UsageError: The suffix is neither.
            SondeError: The file cannot be written.
            MissingExtraError: What draws it is not installed.
        """
        from ..plots import BarsPlot, LinesPlot, write_plot

        order = np.argsort(-self.counts.sum(axis=1), kind="stable").tolist()
        names = [f"{self.topics[place].number} · {self.topics[place].name}" for place in order]
        hovers = [
            [", ".join(term for term, _ in self.terms.get((place, part), [])) for part in range(len(self.parts))]
            for place in order
        ]
        plot = LinesPlot if self.kind == "period" else BarsPlot
        values, unit = (self.shares, f"share of the {self.kind}'s documents") if shares else (self.counts, "documents")
        write_plot(plot(title, self.parts, names, values[order], hovers, unit), path)


def over_column(topics: "Topics", column: str, period: Period | None) -> Breakdown:
    """Break topics down by the periods of a date column; see `Topics.over`."""
    if period is not None and period not in PERIODS:
        raise unknown_option("period", period, PERIODS)
    with topics.collection.view() as view:
        docs, values = _values(view, column)
        parsed = [first_day(value) for value in values]
        pairs = zip(values, parsed, strict=True)
        wrong = next((value for value, day in pairs if value is not None and day is None), None)
        days = [day for day in parsed if day is not None]
        if wrong is not None or not days:
            dates = ", ".join(field.name for field in view.fields.values() if field.type == "date") or "none"
            why = f"has no dates ({'it is empty' if wrong is None else f'{wrong!r} is not a date'})"
            if isinstance(wrong, str):
                why = why_no_dates(column, (value for value in values if value is not None))
            raise UsageError(f"column {column!r} {why}; columns of dates here: {dates}")
        name = _period(period, days, values)
        parts = periods_between(min(days), max(days), name, MOST_PERIODS)
        if len(parts) > MOST_PERIODS:
            said = f"there are more than {MOST_PERIODS} periods of a {name}: use a longer {arg('period')}"
            raise UsageError(said, code="out-of-range", field="period", value=period)
        numbers = {part: number for number, part in enumerate(parts)}
        codes = [[numbers[period_of(day, name)]] if day else [] for day in parsed]
        return _breakdown(view, topics, column, "period", parts, docs, codes)


def by_column(topics: "Topics", column: str) -> Breakdown:
    """Break topics down by the classes of a column; see `Topics.by`."""
    with topics.collection.view() as view:
        docs, values = _values(view, column)
        several = [_classes(value) for value in values]
        sizes = Counter(name for names in several for name in names)
        if not sizes or len(sizes) > MOST_CLASSES:
            said = f"{counted(len(sizes), 'different value')}, more than {MOST_CLASSES}" if sizes else "no value"
            raise UsageError(f"column {column!r} has {said}: choose a column of classes")
        parts = sorted(sizes, key=by_time if name_times(sizes) else lambda name: (-sizes[name], name))
        numbers = {part: number for number, part in enumerate(parts)}
        codes = [[numbers[name] for name in names] for names in several]
        return _breakdown(view, topics, column, "class", parts, docs, codes)


def _values(view: View, column: str) -> tuple[np.ndarray, list[Value]]:
    """Return all document numbers, ascending, and a column's values."""
    if column not in view.fields:
        raise UsageError(f"there is no metadata column {column!r}: {existing(view.fields)}")
    docs = document_numbers(view.catalog)
    found: list[Value] = []
    for start in range(0, len(docs), AT_ONCE):
        some = docs[start : start + AT_ONCE].tolist()
        metadata = view.catalog.metadata(some)
        found += [metadata.get(doc, {}).get(column) for doc in some]
    return docs, found


def _classes(value: Value) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return list(dict.fromkeys(str(item) for item in value if item is not None))
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def _period(asked: Period | None, days: Sequence[date], values: Sequence[Value]) -> Period:
    if asked:
        return asked
    present = [value for value in values if value is not None]
    if all(isinstance(value, int) or len(str(value)) == 4 for value in present):
        return "year"
    span = (max(days) - min(days)).days
    texts = all(isinstance(value, str) and len(value) == 7 for value in present)
    if texts or (span and all(day.day == 1 for day in days)):
        return "month" if span < 366 * 12 else "year"
    return "year" if span > 366 * 6 else "month" if span > 150 else "week" if span > 35 else "day"


def _breakdown(
    view: View,
    topics: "Topics",
    column: str,
    kind: str,
    parts: Sequence[str],
    docs: np.ndarray,
    codes: list[list[int]],
) -> Breakdown:
    known, numbers, _ = assignments_of(view.catalog, find_run(view.catalog, topics.run.kind, topics.run.name))
    topic_of = dict(zip(known.tolist(), numbers.tolist(), strict=True))
    place_of = {topic.number: place for place, topic in enumerate(topics)}
    counts, totals = np.zeros((len(topics), len(parts)), np.int64), np.zeros(len(parts), np.int64)
    cells: dict[Cell, list[int]] = {}
    without = 0
    for doc, found in zip(docs.tolist(), codes, strict=True):
        if doc not in topic_of:
            continue
        without += not found
        place = place_of.get(topic_of[doc])
        for part in found:
            totals[part] += 1
            if place is not None:
                counts[place, part] += 1
                cells.setdefault((place, part), []).append(doc)
    terms = _cell_terms(view, topics, cells)
    return Breakdown(column, kind, tuple(parts), tuple(topics), counts, totals, terms, without)


def _cell_terms(view: View, topics: "Topics", cells: Mapping[Cell, list[int]]) -> dict[Cell, Weighted]:
    """Return what tells each part's documents of a topic from the topic's others."""
    words, places = words_of(view), {word: place for place, word in enumerate(topics.model.counts.terms.tolist())}
    found: dict[Cell, Weighted] = {}
    for topic in range(len(topics)):
        own = sorted(cell for cell in cells if cell[0] == topic)
        rows = [_counted(view, _spread(cells[cell]), words, places) for cell in own]
        if rows:
            terms = terms_of(Counts.of_rows(rows, places), np.arange(len(own)), len(own), CELL_TERMS)
            found |= dict(zip(own, terms, strict=True))
    return found


def _spread(docs: list[int]) -> np.ndarray:
    step = max(1, len(docs) // CELL_TEXTS)
    return np.array(docs[::step][:CELL_TEXTS], np.int64)


def _counted(view: View, docs: np.ndarray, words: Any, places: dict[str, int]) -> Counter[int]:
    return Counter(places[word] for text in texts_of(view, docs) for word in words(text) if word in places)

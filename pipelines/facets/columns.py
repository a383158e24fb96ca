"""Columns from what the catalog holds: a code, a number or a day for each document, or its group in a taxonomy."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from ...indexer.store.catalog import Catalog
from ...indexer.store.documents import column_values
from ...indexer.store.fields import Field, load_value, stored_text
from ...indexer.store.members import numbers_above
from ...indexer.store.runs import Run, assignments_of, items_of
from ..plots.colors import one_line
from .table import MOST_NAMES, OTHER, Column

EPOCH = datetime(1970, 1, 1)
DAY = 86_400.0
TITLE = 60
NOWHERE = -2
"""In place of the number of a group, for documents that a taxonomy does not know."""

Chains = Mapping[int, Sequence[int]]
"""By the number of each group: that number, then those of the groups above it, the nearest first."""


def field_column(catalog: Catalog, docs: np.ndarray, field: Field, name: str) -> Column | None:
    """Return the column of a metadata field; None for texts that nearly all differ, which group nothing.

    Args:
        catalog: The catalog.
        docs: int64 [n] numbers of all documents, ascending.
        field: The field. Of a list, the first item counts. Infinity counts as no number.
        name: The column's name.
    """
    stored = column_values(catalog, field)
    values = [stored.get(doc) for doc in docs.tolist()]
    title = one_line(name, TITLE)
    if field.type in ("integer", "real"):
        numbers = np.array([np.nan if value is None else float(value) for value in values], np.float64)
        return Column(name, title, "number", np.where(np.isfinite(numbers), numbers, np.nan))
    if field.type == "date":
        days = _each(values, lambda value: days_of(load_value(value, "date")), np.nan)
        return Column(name, title, "date", np.array(days, np.float64))
    texts = _each(values, lambda value: _text(load_value(value, field.type)), None)
    counts = Counter(text for text in texts if text is not None)
    if field.type == "text" and len(counts) > MOST_NAMES and len(counts) > counts.total() / 2:
        return None
    number = {text: code for code, text in enumerate(counts)}
    codes = np.array([-1 if text is None else number[text] for text in texts], np.int64)
    return class_column(name, title, codes, list(counts))


def run_column(catalog: Catalog, docs: np.ndarray, run: Run, name: str) -> Column:
    """Return the column of a run: the group, label or tag of each document; of several labels, the likeliest.

    Args:
        catalog: The catalog.
        docs: int64 [n] numbers of all documents, ascending.
        run: A complete run that assigns documents to items.
        name: The column's name.
    """
    title = f"{run.kind.heading}: {one_line(run.name, TITLE)}"
    known, items, _ = assignments_of(catalog, run)
    known, first = np.unique(known, return_index=True)
    inside = np.isin(known, docs, assume_unique=True)
    rows, own = np.searchsorted(docs, known[inside]), items[first][inside]
    named = {item.number: run.kind.color(item.name) for item in items_of(catalog, run)}
    if run.kind.nested:
        groups = np.full(len(docs), NOWHERE, np.int64)
        groups[rows] = own
        told = {
            number: name for number, name in zip(named, _distinct([*named.items()]), strict=True) if name is not None
        }
        return _nested_column(name, title, groups, told, numbers_above(catalog, run))
    numbers, which = np.unique(own, return_inverse=True)
    names = _distinct([(number, named.get(number)) for number in numbers.tolist()])
    codes = np.full(len(docs), -1, np.int64)
    codes[rows] = which
    number = {text: code for code, text in enumerate(dict.fromkeys(text for text in names if text is not None))}
    renamed = np.array([-1 if text is None else number[text] for text in names] + [-1], np.int64)
    return class_column(name, title, renamed[codes], list(number))


def class_column(name: str, title: str, codes: np.ndarray, names: Sequence[str]) -> Column:
    """Return a column of names in order of frequency; beyond the most that a column may have, they are cut.

    Args:
        name: The column's name.
        title: Its heading.
        codes: int64 [n], -1 for none.
        names: The name of each code, all different.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    order = sorted((code for code in range(len(names)) if counts[code]), key=lambda code: (-counts[code], names[code]))
    cut = len(order) > MOST_NAMES
    kept = order[: MOST_NAMES - 1] if cut else order
    place = np.full(len(names) + 1, MOST_NAMES - 1 if cut else -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    place[-1] = -1
    shown = (*(names[code] for code in kept), *([OTHER] if cut else []))
    return Column(name, title, "class", place[codes], shown, cut)


def _nested_column(name: str, title: str, own: np.ndarray, names: Mapping[int, str], chains: Chains) -> Column:
    """Return a column of groups, those with the most documents in and under them first.

    If there are more groups than a column may have names, the smallest have none: their documents have the nearest
    group above that has one, else `OTHER`.

    Args:
        name: The column's name.
        title: Its heading.
        own: int64 [n] the number of each document's group; any number that `names` lacks for none.
        names: The name of each group by its number, all different.
        chains: The groups above each group.
    """
    numbers, which = np.unique(own, return_inverse=True)
    sizes = dict(zip(numbers.tolist(), np.bincount(which, minlength=len(numbers)).tolist(), strict=True))
    ranked = _ranked(sizes, names, chains)
    cut = len(ranked) > MOST_NAMES
    kept = {group: code for code, group in enumerate(ranked[: MOST_NAMES - 1] if cut else ranked)}
    beyond = len(kept) if cut else -1

    def code_of(chain: Sequence[int], otherwise: int) -> int:
        return next((kept[group] for group in chain if group in kept), otherwise)

    codes = [code_of(chains[number], beyond) if number in names else -1 for number in numbers.tolist()]
    above = [code_of(chains[group][1:], -1) for group in kept]
    values = np.array([*codes, -1], np.int32)[which]
    shown = [names[group] for group in kept]
    if cut:
        shown, above = [*shown, OTHER], [*above, -1]
    return Column(name, title, "class", values, tuple(shown), cut, above=tuple(above))


def _ranked(sizes: Mapping[int, int], names: Mapping[int, str], chains: Chains) -> list[int]:
    """Return the groups that have documents in or under them, the largest first; none before one that is above it."""
    totals = dict.fromkeys(names, 0)
    for group in names:
        for each in chains[group]:
            totals[each] += sizes.get(group, 0)
    ranked = sorted((-total, len(chains[group]), names[group], group) for group, total in totals.items() if total)
    return [group for *_, group in ranked]


def _each(values: list[Any], convert: Callable[[Any], Any], absent: Any) -> list[Any]:
    """Return every value converted; equal ones are converted once."""
    found: dict[Hashable, Any] = {None: absent}
    for value in set(values):
        if value is not None:
            found[value] = convert(value)
    return [found[value] for value in values]


def days_of(value: Any) -> float:
    """Return a date or a time as days since 1970-01-01, with a fraction for the time of day; NaN for anything else."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return (moment - EPOCH).total_seconds() / DAY
    return float(value.toordinal() - EPOCH.toordinal()) if isinstance(value, date) else np.nan


def _text(value: Any) -> str | None:
    """Return a value as a name; of a list its first item."""
    if isinstance(value, (list, tuple)):
        value = value[0] if value else None
    return None if value is None else stored_text(value)


def _distinct(named: list[tuple[int, str | None]]) -> list[str | None]:
    """Return the names of items, with the number before those that several items share."""
    times = Counter(name for _, name in named)
    return [name if name is None or times[name] == 1 else f"{number} {name}" for number, name in named]

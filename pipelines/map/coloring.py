"""What the points of a map are coloured by: a run or a metadata column, for all documents at once."""

from datetime import date

import numpy as np

from ...indexer.catalog import Catalog
from ...indexer.errors import UsageError
from ...indexer.fields import load
from ...indexer.runs import Kind, Run, assignments_of, items_of, list_runs
from ...indexer.wording import existing
from ..plots.colors import Coloring

TAGGED = "tagged"
KINDS: tuple[Kind, ...] = ("cluster", "topic", "label", "tag")


def choices(catalog: Catalog) -> list[str]:
    """Return everything that a map can be coloured by: runs as KIND:NAME, the newest first, then metadata columns."""
    return [*(f"{run.kind}:{run.name}" for run in reversed(_runs(catalog))), *catalog.fields()]


def coloring(catalog: Catalog, docs: np.ndarray, color: str) -> tuple[Coloring, bool]:
    """Return the colours of documents, and whether their numbers are days since the year 1.

    Args:
        catalog: Of the collection.
        docs: int64 [n] document numbers, ascending.
        color: One of `choices`.

    Raises:
        UsageError: It is none of them.
    """
    fields = catalog.fields()
    for run in _runs(catalog):
        if color == f"{run.kind}:{run.name}":
            return _by_run(catalog, docs, run, color), False
    if color not in fields:
        raise UsageError(f"cannot colour by {color!r}: {existing(choices(catalog), 'there is nothing')}")
    field = fields[color]
    stored = dict(catalog.connection.execute(f"SELECT doc, {field.column} FROM metadata"))
    values = [load(stored.get(doc), field.type) for doc in docs.tolist()]
    if field.type == "date":
        days = [value.toordinal() if isinstance(value, date) else np.nan for value in values]
        return Coloring(color, (), np.zeros(0, np.int64), np.array(days, np.float64)), True
    return Coloring.of(color, [_single(value) for value in values]), False


def _runs(catalog: Catalog) -> list[Run]:
    return [run for run in list_runs(catalog, count=False) if run.complete and run.kind in KINDS]


def _by_run(catalog: Catalog, docs: np.ndarray, run: Run, title: str) -> Coloring:
    known, numbers, _ = assignments_of(catalog, run)
    known, first = np.unique(known, return_index=True)  # of several labels, the likeliest
    numbers = numbers[first]
    names = {item.number: TAGGED if run.kind == "tag" else item.name for item in items_of(catalog, run)}
    shown = _distinct(names)
    place = np.clip(np.searchsorted(known, docs), 0, max(len(known) - 1, 0))
    has = known[place] == docs if len(known) else np.zeros(len(docs), bool)
    found = [
        shown.get(number) if yes else None for number, yes in zip(numbers[place].tolist(), has.tolist(), strict=True)
    ]
    return Coloring.groups(title, found if len(known) else [None] * len(docs))


def _distinct(names: dict[int, str]) -> dict[int, str]:
    """Return the names of items, with the number before those that two of them share."""
    several = {name for name in names.values() if list(names.values()).count(name) > 1}
    return {number: f"{number} {name}" if name in several else name for number, name in names.items()}


def _single(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return value[0] if value else None
    return value

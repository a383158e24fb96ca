"""What runs say of each document, as columns of an export."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from .catalog import Catalog
from .runs import NAME_SUFFIX, NUMBERED, Run, items_by_document, items_of, list_runs, places_by_document

NAMED = ("label", "correction")
"""Kinds whose column holds the name of an item in place of its number."""


def run_columns(runs: Iterable[Run]) -> dict[int, str]:
    """Return the main column of each run by the run's number: `KIND:NAME`.

    New runs cannot be named so that two share a column. Older collections may hold a run "X name" beside a run "X",
    whose names have that column: the first then gets the next free `KIND:X name (2)`, `(3)` and so on.
    """
    runs = list(runs)
    found = {run.number: f"{run.kind}:{run.name}" for run in runs}
    names = {f"{found[run.number]}{NAME_SUFFIX}" for run in runs if run.kind in NUMBERED}
    taken = {*found.values(), *names}
    for run in runs:
        if run.kind in NUMBERED and (column := found[run.number]) in names:
            places = (f"{column} ({number})" for number in itertools.count(2))
            free = next(place for place in places if not {place, f"{place}{NAME_SUFFIX}"} & taken)
            taken |= {free, f"{free}{NAME_SUFFIX}"}
            found[run.number] = free
    return found


class RunColumns:
    """The columns `cluster:RUN`, `topic:RUN` (numbers, their names beside them), `label:RUN`, `tag:NAME`, `x` and `y`.

    A label is its name; with several labels per text, a list of names; likewise the labels that a person gave,
    `correction:RUN`. A tag is true or false. `x` and `y` are those of the newest map.

    Attributes:
        types: "integer", "text", "texts" (a list), "boolean" or "real" by column name, in order.
        names: The main column of each run by the run's number; see `run_columns`.
        notes: Which runs are exported under another name than their own.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Read which runs are complete."""
        self._catalog = catalog
        runs = [run for run in list_runs(catalog) if run.complete]
        self._assigned = [run for run in runs if run.kind != "map"]
        self._map = next((run for run in reversed(runs) if run.kind == "map"), None)
        self.names = run_columns(self._assigned)
        self.notes = [
            f"the {run.kind} run {run.name!r} has the column {self.names[run.number]!r}: rename the run to change that"
            for run in self._assigned
            if self.names[run.number] != f"{run.kind}:{run.name}"
        ]
        self._names = {
            run.number: {item.number: item.name for item in items_of(catalog, run)} for run in self._assigned
        }
        self.types: dict[str, str] = {}
        for run in self._assigned:
            self.types |= _columns(run, self.names[run.number])
        if self._map:
            self.types |= {"x": "real", "y": "real"}

    def of(self, docs: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return every column's value by document; None where a run says nothing of it."""
        absent = {name: False if kind == "boolean" else None for name, kind in self.types.items()}
        found: dict[int, dict[str, Any]] = {doc: dict(absent) for doc in docs}
        for run in self._assigned:
            for doc, values in items_by_document(self._catalog, run, docs).items():
                found[doc] |= self._cells(run, [number for number, _ in values])
        if self._map:
            for doc, (x, y) in places_by_document(self._catalog, self._map, docs).items():
                found[doc] |= {"x": x, "y": y}
        return found

    def _cells(self, run: Run, numbers: list[int]) -> dict[str, Any]:
        column = self.names[run.number]
        if run.kind == "tag":
            return {column: True}
        names = [self._names[run.number].get(number, "") for number in numbers]
        if _several(run):
            return {column: names}
        return {column: names[0]} if run.kind in NAMED else {column: numbers[0], f"{column}{NAME_SUFFIX}": names[0]}


def _columns(run: Run, column: str) -> dict[str, str]:
    if run.kind == "tag":
        return {column: "boolean"}
    if run.kind in NAMED:
        return {column: "texts" if _several(run) else "text"}
    return {column: "integer", f"{column}{NAME_SUFFIX}": "text"}


def _several(run: Run) -> bool:
    return bool(run.parameters.get("multi_label"))

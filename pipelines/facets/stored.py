"""The table of a stored collection. Each part is computed once, and again only after it has changed.

What is kept belongs to the open collection, not to a page or a request: places, and one array for each column.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.store.checksums import results_part, run_part, stored
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_numbers
from ...indexer.store.fields import Field, distinct_names
from ...indexer.store.kinds import MAP
from ...indexer.store.runs import Run, find_run, items_of, list_runs, places_of, run_columns
from ...indexer.store.view import View
from ...indexer.wording import existing
from .columns import field_column, run_column
from .table import Column, Facets, Region

Stamp = tuple[Any, ...]


class Kept:
    """Values by name, each with a stamp that changes when the value does."""

    def __init__(self) -> None:
        self._values: dict[Any, tuple[Stamp, Any]] = {}
        self._lock = RLock()

    def get(self, name: Any, stamp: Stamp, make: Callable[[], Any]) -> Any:
        """Return the value of this name and stamp, made at the first call; threads wait for the one that makes it."""
        with self._lock:
            known = self._values.get(name)
            if known is None or known[0] != stamp:
                known = self._values[name] = (stamp, make())
            return known[1]

    def forget_others(self, names: set[Any]) -> None:
        """Forget values of other names."""
        with self._lock:
            self._values = {name: value for name, value in self._values.items() if name in names}


def newest_first(runs: Sequence[Run]) -> list[Run]:
    """Return runs, the newest first; the parts of a run stay together, in the order in which they were written."""
    wholes = {(run.kind, run.name): run.number for run in runs}

    def place(run: Run) -> tuple[int, int]:
        whole = wholes.get((run.kind.follows, run.name)) if run.kind.part and run.kind.follows else None
        return -(run.number if whole is None else whole), run.number

    return sorted(runs, key=place)


_KEPT: WeakKeyDictionary[StoredCollection, Kept] = WeakKeyDictionary()
_LOCK = RLock()


class Parts:
    """The parts of a collection's table, as one view has them.

    Attributes:
        stamp: Changes when documents change.
        fields: Metadata fields by column name.
        runs: Runs by column name, the newest first; the levels of a topic run follow it, the coarsest first.
    """

    def __init__(self, view: View) -> None:
        """Read which columns there are; no column itself is read."""
        self._view = view
        catalog = view.catalog
        with _LOCK:
            self._kept = _KEPT.setdefault(view.collection, Kept())
        made = view.collection.lasting_path.stat()
        self.stamp: Stamp = (made.st_dev, made.st_ino, view.generation.number, view.generation.epoch)
        self._sums = stored(catalog.runs.connection)
        complete = [run for run in list_runs(catalog, count=False) if run.complete]
        names = run_columns(run for run in complete if run.kind.payload == "run_documents")
        colored = [run for run in newest_first(complete) if run.kind.colors]
        self.runs: dict[str, Run] = {names[run.number]: run for run in colored}
        self._maps = [run for run in complete if run.kind is MAP]
        named = distinct_names(view.fields, self.runs)
        self.fields: dict[str, Field] = {named[name]: field for name, field in view.fields.items()}

    @property
    def docs(self) -> np.ndarray:
        """int64 [n] numbers of all documents, ascending."""
        return self._kept.get("docs", self.stamp, lambda: document_numbers(self._view.catalog))

    def column(self, name: str) -> Column | None:
        """Return a column; None for a field whose texts nearly all differ.

        Raises:
            UsageError: The collection has no such column; the message lists those that it has.
        """
        if name not in self.runs and name not in self.fields:
            known = [*self.runs, *self.fields]
            said = f"there is no column {name!r}: {existing(known, 'the collection has none')}"
            raise UsageError(said, code="unknown-field", field="column", value=name, alternatives=known)
        stamp = self.stamp_of(name)
        return self._kept.get(("column", name), stamp, lambda: self._read(name))

    def stamp_of(self, name: str) -> Stamp:
        """Return a value that changes when a column does."""
        return (*self.stamp, *self._run_stamp(self.runs[name])) if name in self.runs else self.stamp

    def map_run(self, name: str | None) -> Run | None:
        """Return the map of this name, or the newest; None where the collection has no map and none is named.

        Raises:
            SondeError: There is no map of this name.
        """
        if name is None:
            return self._maps[-1] if self._maps else None
        found = next((run for run in self._maps if run.name == name), None)
        return found or find_run(self._view.catalog, MAP, name)

    def places(self, run: Run | None) -> np.ndarray:
        """Return float32 [n, 2], where a map puts each document; NaN for those that are not on it."""
        if run is None:
            return np.full((len(self.docs), 2), np.nan, np.float32)
        return self._kept.get(("map", run.name), self.map_stamp(run), lambda: self._placed(run))

    def map_stamp(self, run: Run | None) -> Stamp:
        """Return a value that changes when the places of a map do."""
        return (*self.stamp, *self._run_stamp(run)) if run else ()

    def regions(self, run: Run | None) -> tuple[Region, ...]:
        """Return the names of a map's regions, the coarsest level first, the largest of a level first."""
        items = items_of(self._view.catalog, run) if run else []
        found = [
            Region(item.data["x"], item.data["y"], item.name, item.data["level"], item.data["size"]) for item in items
        ]
        return tuple(sorted(found, key=lambda region: (region.level, -region.size)))

    def forget_others(self) -> None:
        """Forget columns and maps that no longer exist."""
        columns = {("column", name) for name in (*self.runs, *self.fields)}
        self._kept.forget_others({"docs", *columns, *(("map", run.name) for run in self._maps)})

    def _run_stamp(self, run: Run) -> Stamp:
        return run.number, self._sums.get(run_part(run.number)), self._sums.get(results_part(run.number))

    def _read(self, name: str) -> Column | None:
        catalog = self._view.catalog
        if name in self.runs:
            return run_column(catalog, self.docs, self.runs[name], name)
        return field_column(catalog, self.docs, self.fields[name], name)

    def _placed(self, run: Run) -> np.ndarray:
        docs, places = places_of(self._view.catalog, run)
        found = np.full((len(self.docs), 2), np.nan, np.float32)
        inside = np.isin(docs, self.docs, assume_unique=True)
        found[np.searchsorted(self.docs, docs[inside])] = places[inside]
        return found


def table_of(view: View, map: str | None = None) -> Facets:
    """Return the table of a collection.

    Args:
        view: The view to read.
        map: The name of a map run; the newest if None.

    Raises:
        SondeError: There is no map of this name.
    """
    parts = Parts(view)
    parts.forget_others()
    run = parts.map_run(map)
    names = [*parts.runs, *parts.fields]
    columns = _marked(parts, {name: column for name in names if (column := parts.column(name)) is not None})
    stamp = (str(view.collection.path), *parts.stamp, parts.map_stamp(run), *_stamps(parts, names))
    title = view.collection.path.name.removesuffix(".sonde")
    return Facets(title, run and run.name, parts.docs, parts.places(run), columns, parts.regions(run), stamp)


def _marked(parts: Parts, columns: dict[str, Column]) -> list[Column]:
    """Return the columns; one whose run is a part of another names that run's column if both have the same groups."""
    column_of = {(run.kind, run.name): name for name, run in parts.runs.items()}
    found: list[Column] = []
    for name, column in columns.items():
        run = parts.runs.get(name)
        if run is None or not run.kind.part or run.kind.follows is None:
            found.append(column)
            continue
        whole = column_of.get((run.kind.follows, run.name), "")
        other = columns.get(whole)
        same = other is not None and other.names == column.names and np.array_equal(other.values, column.values)
        found.append(replace(column, part=True, same=whole if same else ""))
    return found


def _stamps(parts: Parts, names: list[str]) -> list[tuple[str, Stamp]]:
    """Return the stamp of each column by name."""
    return [(name, parts.stamp_of(name)[len(parts.stamp) :]) for name in names]

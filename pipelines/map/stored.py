"""A stored map: where each document lies, the names of regions, its colours, and how it is drawn."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.argument_types import typed_methods
from ...indexer.errors import UsageError, out_of_range
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import chosen_texts, column_values, ids_by_number
from ...indexer.store.fields import load_value
from ...indexer.store.kinds import MAP
from ...indexer.store.runs import Item, Run, RunColumns, assignments_of, find_run, items_of, list_runs, places_of
from ...indexer.store.tabular import Tabular
from ...indexer.store.view import View
from ...indexer.wording import counted, existing
from ..analysis.neighbours import sample_rows
from ..plots import PlotLabel, PointsPlot, check_plot_target, write_plot
from ..plots.colors import PALETTE, Coloring, hover
from .mapping import update_map
from .regions import LARGE, stored_regions

HOVERED = 600
"""Characters of a text that what is shown at a point is made of."""


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
    stored = column_values(catalog, field)
    values = [load_value(stored.get(doc), field.type) for doc in docs.tolist()]
    if field.type == "date":
        days = [value.toordinal() if isinstance(value, date) else np.nan for value in values]
        return Coloring(color, (), np.zeros(0, np.int64), np.array(days, np.float64)), True
    return Coloring.of(color, [_single(value) for value in values]), False


def _runs(catalog: Catalog) -> list[Run]:
    return [run for run in list_runs(catalog, count=False) if run.complete and run.kind.colors]


def _by_run(catalog: Catalog, docs: np.ndarray, run: Run, title: str) -> Coloring:
    known, numbers, _ = assignments_of(catalog, run)
    known, first = np.unique(known, return_index=True)  # of several labels, the likeliest
    numbers = numbers[first]
    names = {item.number: run.kind.color(item.name) for item in items_of(catalog, run)}
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


DRAWN = 50_000
"""Points of a drawing, at most: more make a page of hundreds of megabytes, and hide each other."""
AT_ONCE = 20_000


@typed_methods
class Map(Tabular):
    """A map of a collection.

    Attributes:
        collection: What is mapped.
        run: How the map was made.
        docs: int64 [n] document numbers, ascending.
        places: float64 [n, 2].
        regions: Their names, at two levels.
        newer: Documents that are not on it: `update` places them.
    """

    def __init__(self, collection: StoredCollection, name: str | None = None) -> None:
        """Open a map, the newest if no name is given.

        Raises:
            SondeError: There is none.
        """
        self.collection = collection
        with collection.view() as view:
            self.run = find_run(view.catalog, MAP, name)
            self.docs, self.places = places_of(view.catalog, self.run)
            self.regions: list[Item] = items_of(view.catalog, self.run)
            self.newer = view.catalog.counts()[0] - len(self.docs)

    @property
    def name(self) -> str:
        """The run's name."""
        return self.run.name

    def __len__(self) -> int:
        return len(self.docs)

    def __repr__(self) -> str:
        return f"Map({self.name!r}, {counted(len(self), 'document')})"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each document: its id and its place, x and y."""
        with self.collection.view() as view:
            ids = ids_by_number(view.catalog, self.docs.tolist())
        pairs = zip(self.docs.tolist(), self.places.tolist(), strict=True)
        return [{"id": ids[doc], "x": x, "y": y} for doc, (x, y) in pairs if doc in ids]

    def update(self, notify: Notify = silent) -> "Map":
        """Place new and changed documents; the others stay where they are. Return the map as it then is.

        Raises:
            SondeError: Another process is writing.
        """
        update_map(self.collection, self.name, notify)
        return Map(self.collection, self.name)

    def draw(self, path: str | Path, color: str | None = None, *, points: int = DRAWN, notify: Notify = silent) -> None:
        """Draw the map: a page that works offline (.html), or an image (.png, .svg).

        Args:
            path: The file.
            color: "cluster:RUN", "topic:RUN", "label:RUN" or another column of a run, such as that of a level of a
                taxonomy; or a metadata column; the map's large regions if left out. A taxonomy with more groups than
                there are colours is coloured by its top level.
            points: Maximum number of documents to draw; if there are more, that many are sampled at random.
            notify: Receives sentences.

        Raises:
            UsageError: The suffix is neither, or there is nothing of the name `color`.
            SondeError: The file cannot be written.
            MissingExtraError: What draws it is not installed.
        """
        check_plot_target(path)
        if points < 1:
            raise out_of_range("points", points, "give a whole number from 1")
        rows = sample_rows(len(self), points, self.run.parameters.get("seed", 0))
        if len(self) > points:
            notify(f"drawing {points:,} of {counted(len(self), 'document')}, sampled at random")
        docs = self.docs[rows]
        with self.collection.view() as view:
            coloring = self._coloring(view, docs, self.places[rows], color, notify)
            hovers = _hovers(view, docs)
        shown = f"{self.collection.path.name} · {counted(len(self), 'document')}"
        shown += f" ({self.name})" if self.name != "map" else ""
        labels = [PlotLabel(item.data["level"], item.data["x"], item.data["y"], item.name) for item in self.regions]
        write_plot(PointsPlot(shown, self.places[rows], hovers, coloring, labels), path)

    def _coloring(
        self, view: View, docs: np.ndarray, places: np.ndarray, color: str | None, notify: Notify
    ) -> Coloring:
        if color is None:
            return self._by_region(places)
        columns = RunColumns(view.catalog)
        runs = columns.types
        if color in view.fields and color not in runs:
            return Coloring.of(color, _column(view, docs, color))
        name = f"{color} name" if f"{color} name" in runs else color
        if name not in runs or ":" not in name:
            known = [*(key for key in runs if ":" in key and not key.endswith(" name")), *view.fields]
            raise UsageError(f"cannot colour by {color!r}: {existing(known, 'leave it out')}")
        values, levels = _run_column(view, docs, name), columns.levels(color)
        if runs[name] == "real":
            return Coloring.of(color, values)
        groups = len({*values} - {None})
        if levels and groups > len(PALETTE):
            notify(f"{color} has {groups:,} groups, more than there are colours: coloured by its level {levels[0]!r}")
            color, values = levels[0], _run_column(view, docs, levels[0])
        return Coloring.groups(color, values)

    def _by_region(self, places: np.ndarray) -> Coloring:
        regions = stored_regions(self.regions)
        if not len(regions.centres):
            return Coloring.groups("", [None] * len(places))
        names = {item.number: item.name for item in self.regions if item.data["level"] == LARGE}
        found = regions.large_of[regions.of(places)]
        return Coloring.groups("region", [names[number] for number in found.tolist()])


def _column(view: View, docs: np.ndarray, name: str) -> list[Any]:
    values: list[Any] = []
    for start in range(0, len(docs), AT_ONCE):
        some = docs[start : start + AT_ONCE].tolist()
        metadata = view.catalog.metadata(some)
        values += [_stored_single(metadata.get(doc, {}).get(name)) for doc in some]
    return values


def _run_column(view: View, docs: np.ndarray, name: str) -> list[str | None]:
    columns, values = RunColumns(view.catalog), []
    for start in range(0, len(docs), AT_ONCE):
        some = docs[start : start + AT_ONCE].tolist()
        found = columns.of(some)
        values += [None if (value := _stored_single(found[doc][name])) is None else str(value) for doc in some]
    return values


def _stored_single(value: Any) -> Any:
    """Return a value that a point can be coloured by: of a list the first, of a date the year and month."""
    if isinstance(value, (list, tuple)):
        return value[0] if value else None
    return value.isoformat()[:7] if hasattr(value, "isoformat") else value


def _hovers(view: View, docs: np.ndarray) -> list[str]:
    chosen = chosen_texts(view.catalog, docs.tolist(), HOVERED)
    found = {each.doc: hover(each.title, each.text, each.id) for each in chosen}
    return [found.get(doc, "") for doc in docs.tolist()]

"""Runs in the catalog: read them, and read what they found as columns of an export."""

import io
import itertools
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..encoder import ModelSpec
from ..errors import SondeError, UsageError
from ..small_files import reading_array
from ..wording import counted, existing, on_one_line
from .catalog import Catalog
from .kinds import LABEL, NAME_SUFFIX, NO_LABEL, Column, RunKind, kind_of
from .models import History


@dataclass(frozen=True, slots=True)
class Item:
    """One cluster, topic or label of a run.

    Attributes:
        number: 0 and up; -1 stands for what belongs to none (outliers, "none of these").
        name: What it is called.
        data: What else is known of it, as JSON values: size, terms, representative documents and so on.
    """

    number: int
    name: str
    data: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        return {"number": self.number, "name": self.name, **self.data}


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A run as the catalog describes it, without its results.

    Attributes:
        number: Identifies it in the catalog.
        kind: What it found, which also equals its name: `run.kind == "cluster"`.
        name: Unique among the runs of its kind.
        complete: False for a run that was stopped and can go on.
        created: When it was written, ISO 8601 in UTC.
        seconds: How long it took.
        generation: The generation of the collection that it read.
        parameters: What it was asked to do, the seed included.
        versions: The libraries that did it.
        report: What it measured.
        documents: How many documents it says something of now.
        model: Name of the bi-encoder whose embeddings it read; None if it read none (a person's or a judge's labels).
        fingerprint: Of that model, with its settings; "" for none.
        other_model: Whether the collection has another model now.
    """

    number: int
    kind: RunKind
    name: str
    complete: bool
    created: str
    seconds: float
    generation: int
    parameters: dict[str, Any]
    versions: dict[str, str]
    report: dict[str, Any]
    documents: int
    model: str | None = None
    fingerprint: str = ""
    other_model: bool = False

    def __repr__(self) -> str:
        return f"Run({str(self.kind)!r}, {self.name!r}, {counted(self.documents, 'document')})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        hidden = ("number", "complete", "documents", "fingerprint")
        values = {name: getattr(self, name) for name in self.__slots__ if name not in hidden}
        first = {"kind": self.kind, "name": self.name, "documents": self.documents, "complete": self.complete}
        return first | values | {"kind": str(self.kind)}


_COLUMNS = "run, kind, name, complete, created, seconds, generation, parameters, versions, report"


def list_runs(catalog: Catalog, kind: RunKind | None = None, *, count: bool = True) -> list[Run]:
    """Return the runs of one kind, or of all, oldest first; without `count`, as many documents as each began with."""
    condition, values = ("WHERE kind = ?", (kind,)) if kind else ("", ())
    rows = catalog.runs.connection.execute(f"SELECT {_COLUMNS} FROM runs {condition} ORDER BY run", values).fetchall()
    history = History(catalog)
    return [_of_its_model(_run(catalog, row, count), history) for row in rows]


def counted_run(catalog: Catalog, run: Run) -> Run:
    """Return a run with the documents that it says something of now."""
    return replace(run, documents=_documents(catalog, run.number, run.kind))


def find_run(catalog: Catalog, kind: RunKind, name: str | None = None) -> Run:
    """Return the run of this name, or the newest complete one of its kind.

    Raises:
        SondeError: There is none; the message names those that exist.
    """
    runs = list_runs(catalog, kind, count=False)
    chosen = [run for run in runs if (run.name == name if name is not None else run.complete)]
    if chosen:
        return counted_run(catalog, chosen[-1])
    wanted = f"no {kind} run" + (
        f" {on_one_line(name)!r}" if isinstance(name, str) else f" {name!r}" if name is not None else ""
    )
    known = existing((run.name for run in runs), f"create one first, with `sonde {kind.command}`")
    said = f"there is {wanted} in this collection: {known}"
    raise SondeError(said, code="not-found", field="run", value=name, alternatives=(run.name for run in runs))


def _run(catalog: Catalog, row: tuple[Any, ...], count: bool) -> Run:
    number, stored_kind, name, complete, created, seconds, generation, *stored = row
    kind = _stored_kind(stored_kind)
    parameters, versions, report = (json.loads(text) for text in stored)
    documents = _documents(catalog, number, kind) if count else int(report.get("documents") or 0)
    return Run(
        number, kind, name, bool(complete), created, seconds, generation, parameters, versions, report, documents
    )  # fmt: skip


def _of_its_model(run: Run, history: History) -> Run:
    """Return a run with the model that the collection had when it was made."""
    made = history.at(run.generation) if run.kind.embedded and run.parameters.get("engine") != "nli" else None
    if made is None:
        return run
    other = made.fingerprint != history.fingerprint
    return replace(run, model=made.name, fingerprint=made.fingerprint, other_model=other)


def check_model(run: Run, spec: ModelSpec) -> None:
    """Check that a run was made with a model: its embeddings cannot be compared with those of another one.

    Raises:
        SondeError: It was made with another model, which the message names.
    """
    if run.fingerprint != spec.fingerprint:
        settings = " with other settings" if run.model == spec.name else ""
        raise SondeError(
            f"the {run.kind} run {run.name!r} was made with the model {run.model}{settings}, whose embeddings cannot "
            f"be compared with those of {spec.name}: make the run again, or switch back with `sonde model --undo`",
            code="other-model",
        )


def _stored_kind(name: str) -> RunKind:
    try:
        return kind_of(name)
    except UsageError:
        raise SondeError(f"this collection has a {name!r} run, which this version of Sonde cannot read") from None


def _documents(catalog: Catalog, number: int, kind: RunKind) -> int:
    sql = f"SELECT count(DISTINCT doc) FROM {kind.payload} WHERE run = ?"
    return catalog.runs.connection.execute(sql, (number,)).fetchone()[0]


def items_of(catalog: Catalog, run: Run) -> list[Item]:
    """Return the run's clusters, topics or labels by number."""
    sql = "SELECT item, name, data FROM run_items WHERE run = ? ORDER BY item"
    return [Item(n, name, json.loads(data)) for n, name, data in catalog.runs.connection.execute(sql, (run.number,))]


DEEPEST = 100
"""Levels of a tree of items, at most."""


def lineages_of(items: Iterable[Item]) -> dict[int, tuple[str, ...]]:
    """Return the names from the top of the tree down to each item, by its number; an item without parent is a top."""
    by_number: dict[Any, Item] = {item.number: item for item in items}
    found: dict[int, tuple[str, ...]] = {}
    for item in by_number.values():
        names, above = [item.name], by_number.get(item.data.get("parent"))
        while above is not None and len(names) < DEEPEST:
            names, above = [above.name, *names], by_number.get(above.data.get("parent"))
        found[item.number] = tuple(names)
    return found


def depth_of(lineages: Mapping[int, Sequence[str]]) -> int:
    """Return how many levels a tree has, by the names down to each item."""
    return max(map(len, lineages.values()), default=0)


def assignments_of(catalog: Catalog, run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return int64 document numbers, int64 item numbers and float64 scores (NaN: none), by document, best first."""
    sql = "SELECT doc, item, score FROM run_documents WHERE run = ? ORDER BY doc, score DESC, item"
    found = catalog.runs.connection.execute(sql, (run.number,)).fetchall()
    docs, items, scores = zip(*found, strict=True) if found else ((), (), ())
    return np.array(docs, np.int64), np.array(items, np.int64), np.array(scores, np.float64)


def places_of(catalog: Catalog, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 [n] document numbers, ascending, and float64 [n, 2] places on the map."""
    sql = "SELECT doc, x, y FROM run_places WHERE run = ? ORDER BY doc"
    found = np.array(catalog.runs.connection.execute(sql, (run.number,)).fetchall(), np.float64).reshape(-1, 3)
    return found[:, 0].astype(np.int64), found[:, 1:]


def array_of(catalog: Catalog, run: Run, name: str) -> np.ndarray:
    """Return an array that the run kept.

    Raises:
        SondeError: It kept none of this name, or a damaged one.
    """
    sql = "SELECT data FROM run_arrays WHERE run = ? AND name = ?"
    found = catalog.runs.connection.execute(sql, (run.number, name)).fetchone()
    if found is None:
        raise SondeError(f"the {run.kind} run {run.name!r} has no stored {name}: create the run again")
    try:
        with reading_array():
            return np.load(io.BytesIO(found[0]), allow_pickle=False)
    except (OSError, ValueError) as error:
        said = f"the stored {name} of the {run.kind} run {run.name!r} are damaged ({error})"
        raise SondeError(f"{said}: create the run again", code="damaged") from None


def items_by_document(catalog: Catalog, run: Run, docs: Sequence[int]) -> dict[int, list[tuple[int, float | None]]]:
    """Return the numbers and scores of the items that each of these documents belongs to, best first."""
    found: dict[int, list[tuple[int, float | None]]] = {}
    sql = (
        f"SELECT doc, item, score FROM run_documents WHERE run = {run.number} AND doc IN (?) ORDER BY score DESC, item"
    )
    for doc, item, score in catalog.runs.select_in(sql, list(docs)):
        found.setdefault(doc, []).append((item, score))
    return found


def places_by_document(catalog: Catalog, run: Run, docs: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Return where the map puts each of these documents."""
    sql = f"SELECT doc, x, y FROM run_places WHERE run = {run.number} AND doc IN (?)"
    return {doc: (x, y) for doc, x, y in catalog.runs.select_in(sql, list(docs))}


def run_columns(runs: Iterable[Run]) -> dict[int, str]:
    """Return the main column of each run by the run's number: `KIND:NAME`.

    New runs cannot be named so that two share a column. Older collections may hold a run "X name" beside a run "X",
    whose names have that column: the first then gets the next free `KIND:X name (2)`, `(3)` and so on.
    """
    runs = list(runs)
    found = {run.number: run.kind.column(run.name) for run in runs}
    names = {f"{found[run.number]}{NAME_SUFFIX}" for run in runs if run.kind.numbered}
    taken = {*found.values(), *names}
    for run in runs:
        if run.kind.numbered and (column := found[run.number]) in names:
            places = (f"{column} ({number})" for number in itertools.count(2))
            free = next(place for place in places if not {place, f"{place}{NAME_SUFFIX}"} & taken)
            taken |= {free, f"{free}{NAME_SUFFIX}"}
            found[run.number] = free
    return found


def columns_by_run(runs: Iterable[Run], mains: Mapping[int, str], depths: Mapping[int, int]) -> dict[int, list[Column]]:
    """Return the columns of each run by the run's number; a further one gives way to another column of its name.

    Args:
        runs: The runs.
        mains: Their main columns; see `run_columns`.
        depths: How many levels each run has whose items lie under others, by its number.
    """
    runs = list(runs)
    found = {run.number: [*run.kind.columns(_main(run, mains), run.parameters)] for run in runs}
    taken = {column.name for columns in found.values() for column in columns}
    for run in runs:
        for column in run.kind.further_columns(_main(run, mains), run.parameters, depths.get(run.number, 0)):
            places = (column.name if number == 1 else f"{column.name} ({number})" for number in itertools.count(1))
            free = next(place for place in places if place not in taken)
            taken.add(free)
            found[run.number].append(replace(column, name=free))
    return found


def _main(run: Run, mains: Mapping[int, str]) -> str:
    return mains.get(run.number, run.kind.column(run.name))


def columns_of_runs(catalog: Catalog, fields: Container[str]) -> tuple[str, ...]:
    """Return the columns that runs add to an export and that are not metadata `fields` of the collection, too."""
    return tuple(name for name in RunColumns(catalog).types if name not in fields)


class RunColumns:
    """The columns that complete runs add to an export, as their kinds describe them.

    A run that places documents names no run in its columns, so the newest one of its kind has them.

    Attributes:
        types: "integer", "text", "texts" (a list), "boolean" or "real" by column name, in order.
        names: The main column of each run by the run's number, those with places apart; see `run_columns`.
        notes: Which runs are exported under another name than their own.
    """

    def __init__(self, catalog: Catalog, indicators: str | None = None) -> None:
        """Read which runs are complete.

        Args:
            catalog: Of the collection.
            indicators: A label run that also gets a column of 1 and 0 for each of its labels, and for none of them.

        Raises:
            SondeError: There is no such label run.
        """
        self._catalog = catalog
        runs = [run for run in list_runs(catalog, count=False) if run.complete]
        self._assigned = [run for run in runs if run.kind.payload == "run_documents"]
        self._placed = list({run.kind: run for run in runs if run.kind.payload == "run_places"}.values())
        self.names = run_columns(self._assigned)
        self.notes = [
            f"the {run.kind} run {run.name!r} has the column {self.names[run.number]!r}: rename the run to change that"
            for run in self._assigned
            if self.names[run.number] != run.kind.column(run.name)
        ]
        items = {run.number: items_of(catalog, run) for run in self._assigned}
        self._names = {run: {item.number: item.name for item in found} for run, found in items.items()}
        self._paths = {run.number: lineages_of(items[run.number]) for run in self._assigned if run.kind.nested}
        depths = {run: depth_of(paths) for run, paths in self._paths.items()}
        self._columns = columns_by_run((*self._assigned, *self._placed), self.names, depths)
        every = [column for columns in self._columns.values() for column in columns]
        self.types = {column.name: column.type for column in every}
        self._absent = {column.name: column.absent for column in every}
        self._codes: dict[str, int] = {}
        if indicators is not None:
            self._coded = find_run(catalog, LABEL, indicators)
            self._codes = {f"{indicators}: {item.name}": item.number for item in items_of(catalog, self._coded)}
            none = f"{indicators}: {NO_LABEL}"
            self._codes = {name: number for name, number in self._codes.items() if number >= 0} | {none: -1}
            self.types |= dict.fromkeys(self._codes, "integer")
            self._absent |= dict.fromkeys(self._codes)

    def levels(self, main: str) -> list[str]:
        """Return the columns of the levels of a run by its main column, the top one first; none if it has no levels."""
        run = next((run for run in self._assigned if self.names[run.number] == main), None)
        return [column.name for column in self._columns[run.number] if column.value == "level"] if run else []

    def level_of(self, column: str) -> tuple[Run, int] | None:
        """Return the run and the level that a column holds, 0 at the top; None if it holds no level of a run."""
        for run in self._assigned:
            if column in (levels := self.levels(self.names[run.number])):
                return run, levels.index(column)
        return None

    def of(self, docs: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return every column's value by document; None where a run says nothing of it."""
        found: dict[int, dict[str, Any]] = {doc: dict(self._absent) for doc in docs}
        for run in self._assigned:
            for doc, values in items_by_document(self._catalog, run, docs).items():
                found[doc] |= self._cells(run, values)
        for run in self._placed:
            names = [column.name for column in self._columns[run.number]]
            for doc, place in places_by_document(self._catalog, run, docs).items():
                found[doc] |= dict(zip(names, place, strict=True))
        for doc, values in items_by_document(self._catalog, self._coded, docs).items() if self._codes else ():
            given = {number for number, _ in values}
            found[doc] |= {name: int(number in given) for name, number in self._codes.items()}
        return found

    def _cells(self, run: Run, items: list[tuple[int, float | None]]) -> dict[str, Any]:
        numbers = [number for number, _ in items]
        names = [self._names[run.number].get(number, "") for number in numbers]
        path = self._paths.get(run.number, {}).get(numbers[0], ())
        return {column.name: column.cell(numbers, names, path, items[0][1]) for column in self._columns[run.number]}

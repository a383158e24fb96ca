"""Writing runs: one transaction each, and nothing about documents that changed while it was computed."""

import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np

from ..errors import SondeError, UsageError, arg
from .catalog import Catalog
from .checksums import assignment_sum, forget_run, place_sum, results_part, run_checksum, run_part, store
from .collection import StoredCollection
from .documents import document_contents
from .kinds import KINDS, NAME_SUFFIX, RunKind, followers
from .runs import Item, Run, find_run, items_of, list_runs
from .view import View

RESULTS = ("run_items", "run_documents", "run_places", "run_arrays")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The documents that a run reads, and what they were when it did.

    Attributes:
        generation: The collection's generation.
        docs: int64 [n], document numbers, ascending.
        contents: Digests of title, text and language, in the same order.
    """

    generation: int
    docs: np.ndarray
    contents: list[bytes]

    @classmethod
    def of(cls, view: View) -> "Snapshot":
        """Return all documents of a view."""
        found = list(document_contents(view.catalog))
        docs = np.fromiter((doc for doc, _ in found), np.int64, len(found))
        return cls(view.generation.number, docs, [content for _, content in found])

    def still(self, catalog: Catalog) -> np.ndarray:
        """Return bool [n]: whether each document still exists with the same content."""
        if catalog.get("generation", 0) == self.generation:
            return np.ones(len(self.docs), bool)
        now = dict(document_contents(catalog))
        pairs = zip(self.docs.tolist(), self.contents, strict=True)
        return np.fromiter((now.get(doc) == content for doc, content in pairs), bool, len(self.docs))


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be written.

    Attributes:
        kind: Its kind.
        name: Unique among the runs of its kind.
        parameters: JSON values: all that is needed to make the same run again, with the seed.
        libraries: Distributions whose versions are kept with it.
        report: JSON values: what it measured.
        seconds: How long it took.
        items: Its clusters, topics or labels.
        assignments: Document numbers int64 [n], item numbers int64 [n] and scores float [n] (NaN: none).
        places: Document numbers int64 [n] and float [n, 2] places on a map.
        arrays: Other arrays that are read later, such as centroids; never of objects.
        complete: False for one that was stopped and can go on.
    """

    kind: RunKind
    name: str
    parameters: Mapping[str, Any]
    libraries: Sequence[str] = ()
    report: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    items: Sequence[Item] = ()
    assignments: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    places: tuple[np.ndarray, np.ndarray] | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    complete: bool = True


ADVICE = f"choose another {arg('name')}, or {arg('replace')} it"


def check_run_name(
    catalog: Catalog, kind: RunKind, name: str, replace: bool, advice: str = ADVICE, leaving: str | None = None
) -> None:
    """Check a new run's name before the work is done.

    Args:
        catalog: Of the collection.
        kind: Of the run.
        name: Its name.
        replace: Whether a run of this name may be replaced.
        advice: For the user who finds the name taken.
        leaving: The name that a run gives up for this one.

    Raises:
        UsageError: It is empty, a complete run has it already and is not to be replaced, or another run has a column
            of the same name.
    """
    if not name.strip() or name != name.strip() or not name.isprintable():
        said = f"{name!r} is not a valid run name: use printable characters, without spaces at the ends"
        raise UsageError(said, code="bad-name", field="name", value=name)
    runs = list_runs(catalog, kind, count=False)
    known = {run.name for run in runs} - {leaving}
    if name.removeprefix("-").isdecimal() and name not in known:
        said = f"the name {name!r} would be read as the number of a group: add a word, such as '{kind} {name}'"
        raise UsageError(said, code="bad-name", field="name", value=name)
    prefix, colon, _ = name.partition(":")
    if colon and prefix in KINDS and name not in known:
        said = f"{name!r} is not a valid run name: {prefix + colon!r} before a name means the run of that kind or level"
        raise UsageError(said, code="bad-name", field="name", value=name)
    if not replace and any(run.name == name and run.complete for run in runs):
        said = f"the {kind} run {name!r} already exists: {advice}"
        raise UsageError(said, code="name-taken", field="name", value=name)
    _check_columns(known, kind, name)


def _check_columns(known: set[str], kind: RunKind, name: str) -> None:
    """Refuse a new name whose columns in an export are also another run's."""
    if not kind.numbered or name in known:
        return
    base = name.removesuffix(NAME_SUFFIX)
    other = base if base != name and base in known else f"{name}{NAME_SUFFIX}"
    if other in known:
        column = kind.column(max(name, other, key=len))
        free = next(f"{base} {n}" for n in itertools.count(2) if f"{base} {n}" not in known)
        said = f"a {kind} run {name!r} would share the column {column!r} with the run {other!r}: name it {free!r}"
        raise UsageError(said, code="name-taken", field="name", value=name, alternatives=(free,))


def write_run(
    collection: StoredCollection,
    new: NewRun,
    snapshot: Snapshot,
    *,
    replace: bool = False,
    parts: Sequence[NewRun] = (),
) -> int:
    """Write a run in one transaction; return of how many documents it says nothing, as they changed meanwhile.

    An incomplete run of the same name is always replaced. `parts` are runs of the kinds that are parts of the run's
    kind, under the same name; those of the replaced run are removed.

    Raises:
        UsageError: A complete run of the same kind has this name, and is not to be replaced.
        SondeError: Another process is writing, or the disk is full; nothing is then written.
    """
    with collection.writing() as catalog:
        check_run_name(catalog, new.kind, new.name, replace)
        for old in list_runs(catalog, new.kind, count=False):
            if old.name == new.name:
                _remove_whole(catalog, old)
        left_out = [
            _insert_results(catalog, _insert(catalog, run, snapshot.generation), run, snapshot) for run in (new, *parts)
        ]
    return left_out[0]


def change_run(
    collection: StoredCollection, kind: RunKind, name: str, change: Callable[[Catalog, Run | None], NewRun]
) -> NewRun:
    """Write a run as `change` makes it of what it was, None where there was none; nobody writes in between.

    What `change` raises leaves everything as it was. The documents that it names must exist.

    Raises:
        UsageError: A new run's name cannot be one.
        SondeError: Another process is writing, or the disk is full.
    """
    with collection.writing() as catalog:
        old = next((run for run in list_runs(catalog, kind, count=False) if run.name == name), None)
        if old is None:
            check_run_name(catalog, kind, name, replace=True)
        new = change(catalog, old)
        if old is not None:
            remove_run(catalog, old.number)
        _insert_results(catalog, _insert(catalog, new, catalog.get("generation", 0)), new, None)
    return new


def rename_run(
    collection: StoredCollection, kind: RunKind, name: str, to: str, following: Sequence[RunKind] = ()
) -> None:
    """Rename a run, and in the same transaction the runs of its name and of the kinds that follow it.

    Raises:
        SondeError: There is no such run, or another process is writing.
        UsageError: The new name is taken, or cannot be one.
    """
    advice = "choose another name, or delete it first"
    with collection.writing() as catalog:
        runs = [find_run(catalog, kind, name)]
        runs += [run for other in following for run in list_runs(catalog, other, count=False) if run.name == name]
        for run in runs:
            check_run_name(catalog, run.kind, to, replace=False, advice=advice, leaving=name)
            catalog.runs.connection.execute("UPDATE runs SET name = ? WHERE run = ?", (to, run.number))
            _seal(catalog, run.number)


RENAMED = "renamed"
"""In the data of an item: whether a person gave it its name."""
NAME_ACCURACY = "name_accuracy"
"""In the data of a group and in the report of a run: how well readers who know only the names put texts, 0 to 1."""


def rename_item(collection: StoredCollection, run: Run, number: int, to: str) -> None:
    """Rename a cluster, a topic or a label of a run.

    Raises:
        UsageError: Another item of the run has this name.
        SondeError: The run has no such item, or another process is writing.
    """
    with collection.writing() as catalog:
        same = next((each for each in items_of(catalog, run) if each.number != number and each.name == to), None)
        if same is not None:
            said = f"the {run.kind} run {run.name!r} already has a {run.kind.item} named {to!r}, number {same.number}"
            raise UsageError(f"{said}: choose another name", code="name-taken", field="to", value=to)
        given = f"json_remove(json_set(data, '$.{RENAMED}', json('true')), '$.{NAME_ACCURACY}')"  # of the old name
        sql = f"UPDATE run_items SET name = ?, data = {given} WHERE run = ? AND item = ?"
        if not catalog.runs.connection.execute(sql, (to, run.number, number)).rowcount:
            raise SondeError(f"the {run.kind} run {run.name!r} has no {run.kind.item} {number}")
        _seal(catalog, run.number)


def delete_run(collection: StoredCollection, kind: RunKind, name: str) -> None:
    """Delete a run with its results.

    Raises:
        SondeError: There is no such run, or another process is writing.
    """
    with collection.writing() as catalog:
        _remove_whole(catalog, find_run(catalog, kind, name))


def _remove_whole(catalog: Catalog, run: Run) -> None:
    """Remove a run and the runs that are parts of it."""
    for kind in (part for part in followers(run.kind) if part.part):
        for part in (each for each in list_runs(catalog, kind, count=False) if each.name == run.name):
            remove_run(catalog, part.number)
    remove_run(catalog, run.number)


def remove_run(catalog: Catalog, number: int) -> None:
    """Remove a run with its results, inside a write transaction."""
    for table in ("runs", *RESULTS):
        catalog.runs.connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
    forget_run(catalog.runs.connection, number)


def _seal(catalog: Catalog, number: int) -> None:
    store(catalog.runs.connection, run_part(number), run_checksum(catalog.runs.connection, number))


def _versions(libraries: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each library that is installed with its version; the light installation lacks some."""
    for name in libraries:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _insert(catalog: Catalog, new: NewRun, generation: int) -> int:
    versions = dict(_versions(("sonde", *new.libraries)))
    texts = (json.dumps(dict(part), ensure_ascii=False) for part in (new.parameters, versions, new.report))
    created = datetime.now(UTC).isoformat(timespec="seconds")
    values = (new.kind, new.name, int(new.complete), created, new.seconds, generation, *texts)
    sql = (
        "INSERT INTO runs(kind, name, complete, created, seconds, generation, parameters, versions, report) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING run"
    )
    return catalog.runs.connection.execute(sql, values).fetchone()[0]


def _insert_results(catalog: Catalog, number: int, new: NewRun, snapshot: Snapshot | None) -> int:
    insert = catalog.runs.connection.executemany
    items = [(number, item.number, item.name, json.dumps(dict(item.data), ensure_ascii=False)) for item in new.items]
    insert("INSERT INTO run_items VALUES (?, ?, ?, ?)", items)
    arrays = [(number, name, npy(array)) for name, array in new.arrays.items()]
    insert("INSERT INTO run_arrays VALUES (?, ?, ?)", arrays)
    _seal(catalog, number)
    still = snapshot.still(catalog) if snapshot else np.zeros(0, bool)
    kept = snapshot.docs[still] if snapshot else None
    total = 0
    if new.assignments is not None:
        columns = _among(kept, *new.assignments)
        insert("INSERT INTO run_documents VALUES (?, ?, ?, ?)", _rows(number, *columns))
        total += assignment_sum(*columns)
    if new.places is not None:
        docs, places = new.places
        columns = _among(kept, docs, places[:, 0], places[:, 1])
        insert("INSERT INTO run_places VALUES (?, ?, ?, ?)", _rows(number, *columns))
        total += place_sum(*columns)
    store(catalog.runs.connection, results_part(number), total)
    return int((~still).sum())


def _among(kept: np.ndarray | None, docs: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the columns for the documents that are still as they were."""
    inside = np.ones(len(docs), bool) if kept is None else np.isin(docs, kept)
    return docs[inside], *(column[inside] for column in columns)


def _rows(number: int, *columns: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """Yield table rows; SQLite stores NaN as NULL."""
    for values in zip(*(column.tolist() for column in columns), strict=True):
        yield (number, *values)


def npy(array: np.ndarray) -> bytes:
    """Return an array as the content of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()

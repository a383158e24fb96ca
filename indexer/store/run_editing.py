"""Changing a part of a run in place, inside a write transaction: the rest of the run is not written again."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .catalog import Catalog
from .checksums import assignment_sum, change, results_part, run_checksum, run_part, store
from .run_writing import npy
from .runs import Item, Run, items_of, list_runs

BY_ID = ("representatives", "why")
"""What items hold of single documents, at any depth: a list of ids, and what a check wrote by id."""


def _no_docs() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class RunEdit:
    """What becomes different in a run.

    Attributes:
        items: Items that are new or replace those of the same number.
        gone: Numbers of items that are removed.
        docs: int64, documents whose assignments are replaced by the ones below.
        assignments: Document numbers int64 [n], item numbers int64 [n] and scores float64 [n] (NaN: none).
        arrays: Arrays that are new or replace those of the same name.
        parameters: The run's parameters; None if they stay.
    """

    items: Sequence[Item] = ()
    gone: Sequence[int] = ()
    docs: np.ndarray = field(default_factory=_no_docs)
    assignments: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    parameters: Mapping[str, Any] | None = None


def edit_run(catalog: Catalog, run: Run, edit: RunEdit) -> None:
    """Change a run, inside a write transaction. A document has at most one assignment before and after."""
    execute, many = catalog.runs.connection.execute, catalog.runs.connection.executemany
    many("DELETE FROM run_items WHERE run = ? AND item = ?", [(run.number, number) for number in edit.gone])
    rows = [(run.number, one.number, one.name, json.dumps(dict(one.data), ensure_ascii=False)) for one in edit.items]
    many("INSERT OR REPLACE INTO run_items VALUES (?, ?, ?, ?)", rows)
    arrays = [(run.number, name, npy(array)) for name, array in edit.arrays.items()]
    many("INSERT OR REPLACE INTO run_arrays VALUES (?, ?, ?)", arrays)
    if edit.parameters is not None:
        text = json.dumps(dict(edit.parameters), ensure_ascii=False)
        execute("UPDATE runs SET parameters = ? WHERE run = ?", (text, run.number))
    store(catalog.runs.connection, run_part(run.number), run_checksum(catalog.runs.connection, run.number))
    _replace_assignments(catalog, run, edit)


def _replace_assignments(catalog: Catalog, run: Run, edit: RunEdit) -> None:
    """Replace the rows of the edit's documents, and add the difference to the stored sum."""
    sql = f"SELECT doc, item, score FROM run_documents WHERE run = {run.number} AND doc IN (?)"
    old = list(catalog.runs.select_in(sql, edit.docs.tolist()))
    removed = assignment_sum(*zip(*old, strict=True)) if old else 0
    many = catalog.runs.connection.executemany
    many("DELETE FROM run_documents WHERE run = ? AND doc = ?", [(run.number, doc) for doc, *_ in old])
    added = 0
    if edit.assignments is not None:
        columns = edit.assignments
        values = zip(*(column.tolist() for column in columns), strict=True)
        many("INSERT INTO run_documents VALUES (?, ?, ?, ?)", ((run.number, *row) for row in values))
        added = assignment_sum(*columns)
    change(catalog.runs.connection, results_part(run.number), added=added, removed=removed)


def forget_ids(catalog: Catalog, known: Callable[[Sequence[str]], Collection[str]]) -> bool:
    """Remove what items of runs hold of documents that are gone, inside a write transaction; return whether it did.

    Args:
        catalog: That of the runs.
        known: Returns those of the given ids that documents have.
    """
    removed = False
    for run in list_runs(catalog, count=False):
        items = items_of(catalog, run)
        ids = {item.number: set(_ids(item.data)) for item in items}
        every = sorted(set().union(*ids.values()))
        if gone := set(every).difference(known(every)):
            changed = [item for item in items if ids[item.number] & gone]
            edit_run(catalog, run, RunEdit([Item(one.number, one.name, _without(one.data, gone)) for one in changed]))
            removed = True
    return removed


def _ids(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from (one for one in value if isinstance(one, str)) if _is_by_id(name, value) else _ids(value)
    elif isinstance(data, list):
        for value in data:
            yield from _ids(value)


def _without(data: Any, gone: Collection[str]) -> Any:
    if isinstance(data, Mapping):
        return {
            name: _left(value, gone) if _is_by_id(name, value) else _without(value, gone)
            for name, value in data.items()
        }
    return [_without(value, gone) for value in data] if isinstance(data, list) else data


def _is_by_id(name: str, value: Any) -> bool:
    return name in BY_ID and isinstance(value, (dict, list))


def _left(value: dict[str, Any] | list[Any], gone: Collection[str]) -> dict[str, Any] | list[Any]:
    if isinstance(value, dict):
        return {id: one for id, one in value.items() if id not in gone}
    return [id for id in value if id not in gone]

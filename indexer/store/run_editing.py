"""Changing a part of a run in place, inside a write transaction: the rest of the run is not written again."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .catalog import Catalog
from .checksums import assignment_sum, change, results_part, run_checksum, run_part, store
from .runs import Item, Run


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
    arrays = [(run.number, name, _npy(array)) for name, array in edit.arrays.items()]
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


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()

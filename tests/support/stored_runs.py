"""Everything that a collection stores of its runs, under the ids of documents, for tests that two collections agree."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from sonde.app.api import Collection
from sonde.indexer.store.documents import document_ids
from sonde.indexer.store.runs import Run, array_of, assignments_of, items_of, list_runs, places_of
from sonde.indexer.store.view import View

Stored = dict[str, dict[str, Any]]
BY_NUMBER = ("documents", "fitted")
"""Arrays that hold numbers of documents."""


def stored_runs(collection: Collection) -> Stored:
    """Return the runs by kind and name."""
    with collection.stored.view() as view:
        ids = dict(document_ids(view.catalog))
        return {f"{run.kind}:{run.name}": _stored(view, run, ids) for run in list_runs(view.catalog)}


def _stored(view: View, run: Run, ids: dict[int, str]) -> dict[str, Any]:
    sql = "SELECT name FROM run_arrays WHERE run = ? ORDER BY name"
    names = [name for (name,) in view.catalog.runs.connection.execute(sql, (run.number,))]
    docs, items, scores = (column.tolist() for column in assignments_of(view.catalog, run))
    placed, places = (column.tolist() for column in places_of(view.catalog, run))
    found = items_of(view.catalog, run)
    return {
        "documents": run.documents,
        "complete": run.complete,
        "parameters": run.parameters,
        "report": run.report,
        "items": [(item.number, item.name, json.dumps(dict(item.data), sort_keys=True)) for item in found],
        "assignments": list(zip(map(ids.get, docs), items, map(str, scores), strict=True)),  # NaN equals no NaN
        "places": list(zip(map(ids.get, placed), places, strict=True)),
        "arrays": {name: _array(array_of(view.catalog, run, name), name in BY_NUMBER, ids) for name in names},
    }


def _array(array: np.ndarray, numbers: bool, ids: dict[int, str]) -> list[Any]:
    """Return the values of an array, to the last bit; numbers of deleted documents as None."""
    return [ids.get(doc) for doc in array.tolist()] if numbers else [str(array.dtype), array.shape, array.tobytes()]


def disagreeing(one: Collection, other: Collection) -> list[str]:
    """Return what two collections store differently of their runs; nothing if they agree."""
    first, second = stored_runs(one), stored_runs(other)
    found = sorted(set(first) ^ set(second))
    for run in set(first) & set(second):
        found += [f"{run}: {part}" for part, value in first[run].items() if value != second[run][part]]
    return found


def both_say(one: Collection, other: Collection, ask: Callable[[Collection], Any]) -> Any:
    """Ask two collections the same; check that they say the same, and return it."""
    said = ask(one)
    assert ask(other) == said
    return said

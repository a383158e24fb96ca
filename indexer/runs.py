"""Runs in the catalog: a clustering, a topic model, a map, a labelling or a tag, with its parameters and results.

A run is written in one transaction: one that was killed does not exist. Only a run that asks for it is kept while it
is incomplete, so that it can go on. What it says of a document is forgotten with the document, or with its text.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from .catalog import Catalog
from .errors import SondeError
from .wording import existing

Kind = Literal["cluster", "topic", "map", "label", "tag", "correction"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NUMBERED: tuple[Kind, ...] = ("cluster", "topic")
"""Kinds that an export gives two columns: `KIND:NAME`, the item's number, and beside it the item's name."""
NAME_SUFFIX = " name"
"""What the second column's name ends in."""


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


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the catalog describes it, without its results.

    Attributes:
        number: Identifies it in the catalog.
        kind: "cluster", "topic", "map", "label", "tag" (documents that a person put together) or "correction" (labels
            that a person gave, for the label run of the same name).
        name: Unique among the runs of its kind.
        complete: False for a run that was stopped and can go on.
        created: When it was written, ISO 8601 in UTC.
        seconds: How long it took.
        generation: The generation of the collection that it read.
        parameters: What it was asked to do, the seed included.
        versions: The libraries that did it.
        report: What it measured.
        documents: How many documents it says something of now.
    """

    number: int
    kind: Kind
    name: str
    complete: bool
    created: str
    seconds: float
    generation: int
    parameters: dict[str, Any]
    versions: dict[str, str]
    report: dict[str, Any]
    documents: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        hidden = ("number", "complete", "documents")
        values = {name: getattr(self, name) for name in self.__slots__ if name not in hidden}
        return {"kind": self.kind, "name": self.name, "documents": self.documents, "complete": self.complete} | values


_COLUMNS = "run, kind, name, complete, created, seconds, generation, parameters, versions, report"


def list_runs(catalog: Catalog, kind: Kind | None = None, *, count: bool = True) -> list[Run]:
    """Return the runs of one kind, or of all, oldest first; without `count`, as many documents as each began with."""
    condition, values = ("WHERE kind = ?", (kind,)) if kind else ("", ())
    rows = catalog.connection.execute(f"SELECT {_COLUMNS} FROM runs {condition} ORDER BY run", values).fetchall()
    return [_run(catalog, row, count) for row in rows]


def counted_run(catalog: Catalog, run: Run) -> Run:
    """Return a run with the documents that it says something of now."""
    return replace(run, documents=_documents(catalog, run.number, run.kind))


def find_run(catalog: Catalog, kind: Kind, name: str | None = None) -> Run:
    """Return the run of this name, or the newest complete one of its kind.

    Raises:
        SondeError: There is none; the message names those that exist.
    """
    runs = list_runs(catalog, kind)
    chosen = [run for run in runs if (run.name == name if name is not None else run.complete)]
    if chosen:
        return chosen[-1]
    wanted = f"no {kind} run" + (f" {name!r}" if name is not None else "")
    known = existing((run.name for run in runs), "make one first")
    raise SondeError(f"there is {wanted} in this collection: {known}")


def _run(catalog: Catalog, row: tuple[Any, ...], count: bool) -> Run:
    number, kind, name, complete, created, seconds, generation, *stored = row
    parameters, versions, report = (json.loads(text) for text in stored)
    documents = _documents(catalog, number, kind) if count else int(report.get("documents") or 0)
    return Run(
        number, kind, name, bool(complete), created, seconds, generation, parameters, versions, report, documents
    )  # fmt: skip


def _documents(catalog: Catalog, number: int, kind: Kind) -> int:
    table = "run_places" if kind == "map" else "run_documents"
    sql = f"SELECT count(DISTINCT doc) FROM {table} WHERE run = ?"
    return catalog.connection.execute(sql, (number,)).fetchone()[0]


def items_of(catalog: Catalog, run: Run) -> list[Item]:
    """Return the run's clusters, topics or labels by number."""
    sql = "SELECT item, name, data FROM run_items WHERE run = ? ORDER BY item"
    return [Item(n, name, json.loads(data)) for n, name, data in catalog.connection.execute(sql, (run.number,))]


def assignments_of(catalog: Catalog, run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return int64 document numbers, int64 item numbers and float64 scores (NaN: none), by document, best first."""
    sql = "SELECT doc, item, score FROM run_documents WHERE run = ? ORDER BY doc, score DESC, item"
    found = catalog.connection.execute(sql, (run.number,)).fetchall()
    docs, items, scores = zip(*found, strict=True) if found else ((), (), ())
    return np.array(docs, np.int64), np.array(items, np.int64), np.array(scores, np.float64)


def places_of(catalog: Catalog, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 [n] document numbers, ascending, and float64 [n, 2] places on the map."""
    sql = "SELECT doc, x, y FROM run_places WHERE run = ? ORDER BY doc"
    found = np.array(catalog.connection.execute(sql, (run.number,)).fetchall(), np.float64).reshape(-1, 3)
    return found[:, 0].astype(np.int64), found[:, 1:]


def array_of(catalog: Catalog, run: Run, name: str) -> np.ndarray:
    """Return an array that the run kept.

    Raises:
        SondeError: It kept none of this name.
    """
    sql = "SELECT data FROM run_arrays WHERE run = ? AND name = ?"
    found = catalog.connection.execute(sql, (run.number, name)).fetchone()
    if found is None:
        raise SondeError(f"the {run.kind} run {run.name!r} keeps no {name}: make it anew")
    return np.load(io.BytesIO(found[0]), allow_pickle=False)


def items_by_document(catalog: Catalog, run: Run, docs: Sequence[int]) -> dict[int, list[tuple[int, float | None]]]:
    """Return the numbers and scores of the items that each of these documents belongs to, best first."""
    found: dict[int, list[tuple[int, float | None]]] = {}
    sql = (
        f"SELECT doc, item, score FROM run_documents WHERE run = {run.number} AND doc IN (?) ORDER BY score DESC, item"
    )
    for doc, item, score in catalog.select_in(sql, list(docs)):
        found.setdefault(doc, []).append((item, score))
    return found


def places_by_document(catalog: Catalog, run: Run, docs: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Return where the map puts each of these documents."""
    sql = f"SELECT doc, x, y FROM run_places WHERE run = {run.number} AND doc IN (?)"
    return {doc: (x, y) for doc, x, y in catalog.select_in(sql, list(docs))}

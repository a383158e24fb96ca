"""The members of a run: documents of its clusters, topics or labels; and the ids that one index run has met."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .catalog import Catalog
from .documents import summed
from .fields import Field
from .kinds import CORRECTION, SEPARATOR, TAG, RunKind, kind_of
from .runs import DEEPEST, Run, items_of, lineages_of

LARGEST = 2**31
"""Greatest number of members, and greatest offset, that a query is given; SQLite counts in 64 bits."""

_OF = "FROM run_documents r WHERE r.run = {0} AND r.doc = d.doc"
_NAMES = (
    "FROM run_documents r JOIN run_items i ON i.run = r.run AND i.item = r.item WHERE r.run = {0} AND r.doc = d.doc"
)
NUMBER = f"(SELECT r.item {_OF} LIMIT 1)"
"""SQL of the number of the item that document `d` belongs to; `format` takes the run's number, here and below."""
NAME = f"(SELECT i.name {_NAMES} ORDER BY r.score DESC, r.item LIMIT 1)"
"""SQL of the name of the item that document `d` belongs to most."""
ALL_NAMES = f"(SELECT json_group_array(i.name) {_NAMES})"
"""SQL of a JSON list of the names of all items that document `d` belongs to; empty if the run has none of it."""
SCORE = f"(SELECT r.score {_OF} ORDER BY r.score DESC, r.item LIMIT 1)"
"""SQL of the score of document `d` in the item that it belongs to most."""
TAGGED = f"EXISTS (SELECT 1 {_OF})"
"""SQL of whether the run names document `d`."""

_TREE = (
    "WITH RECURSIVE up(item, above, next, name, depth) AS ("
    "SELECT item, item, json_extract(data, '$.parent'), name, 1 FROM run_items WHERE run = {0} "
    "UNION ALL SELECT up.item, p.item, json_extract(p.data, '$.parent'), "
    f"p.name || '{SEPARATOR}' || up.name, depth + 1 "
    f"FROM up JOIN run_items p ON p.run = {{0}} AND p.item = up.next WHERE depth < {DEEPEST}) "
)
"""SQL of a table with a row for each item and each item above it, itself included: `name` is the path between them."""
INSIDE = (
    f"{NUMBER} IN ({_TREE}SELECT -2 UNION ALL SELECT item FROM up WHERE above IN "
    "(SELECT item FROM up WHERE (above = item OR next IS NULL) AND ({1})))"
)
"""SQL of whether document `d` is in an item that meets a condition, or under one; NULL where it is in none.

`format` takes the run's number, and the condition over `up.item`, the item's number, or `up.name`: its name in one row
and its path in another. SQLite reads the tree once for all documents. No item is -2: without it, NULL would not be in
an empty set, and NOT would turn that into yes.
"""
OWN = {"number": "up.item", "name": "up.name", "path": "up.name"}
"""What a condition in `INSIDE` compares, by the value of the run's column."""
TEST_OF = {"number": "{1}", "name": "{1}", "path": "next IS NULL AND ({1})"}
"""What stands for the condition in `INSIDE`, by the value of the run's column; only whole paths reach the top."""
LEVEL = (
    "(WITH RECURSIVE over(name, next, depth) AS (SELECT i.name, json_extract(i.data, '$.parent'), 1 FROM run_items i "
    f"WHERE i.run = {{0}} AND i.item = {NUMBER} UNION ALL SELECT p.name, json_extract(p.data, '$.parent'), depth + 1 "
    f"FROM over JOIN run_items p ON p.run = {{0}} AND p.item = over.next WHERE depth < {DEEPEST}) "
    "SELECT name FROM over ORDER BY depth DESC LIMIT 1 OFFSET {1})"
)
"""SQL of the name of the item at a level that document `d` is in or under; `format` takes the level too, 0 at top."""


def items_inside(catalog: Catalog, run: Run, item: int) -> list[int]:
    """Return the number of an item and, where items lie under others, of all items under it, ascending."""
    if not run.kind.nested:
        return [item]
    sql = f"{_TREE.format(run.number)}SELECT DISTINCT item FROM up WHERE above = ? ORDER BY item"
    return [number for (number,) in catalog.runs.connection.execute(sql, (item,))]


def numbers_above(catalog: Catalog, run: Run) -> dict[int, list[int]]:
    """Return by the number of each item: that number, then those of the items above it, the nearest first."""
    found: dict[int, list[int]] = {}
    for item, above in catalog.runs.connection.execute(
        f"{_TREE.format(run.number)}SELECT item, above FROM up ORDER BY depth"
    ):
        found.setdefault(item, []).append(above)
    return found


def names_above(catalog: Catalog, run: Run) -> dict[int, list[str]]:
    """Return the names of each item and of all items above it, each once, by the item's number."""
    found: dict[int, list[str]] = {}
    sql = (
        f"{_TREE.format(run.number)}SELECT DISTINCT up.item, i.name FROM up "
        "JOIN run_items i ON i.run = ? AND i.item = up.above"
    )
    for item, name in catalog.runs.connection.execute(sql, (run.number,)):
        found.setdefault(item, []).append(name)
    return found


def lineages(catalog: Catalog, run: Run) -> dict[int, tuple[str, ...]]:
    """Return the names from the top of the tree down to each item, by its number."""
    return lineages_of(items_of(catalog, run))


def members_of(
    catalog: Catalog, run: Run, item: int, k: int, offset: int, among: np.ndarray | None = None
) -> list[tuple[int, float | None]]:
    """Return numbers and scores of an item's documents, those that belong to it most first, then by number.

    Where items lie under others, the documents of an item include those of the items under it.

    Args:
        catalog: Of the collection.
        run: The run.
        item: The number of one of its clusters, topics or labels; -1 for what belongs to none.
        k: How many to return, 1 or more.
        offset: How many to leave out at the top, 0 or more.
        among: int64 [n], the only documents that are returned; all if None.
    """
    listed = ", ".join(str(int(each)) for each in items_inside(catalog, run, item)) or "NULL"
    some, docs = _among(among)
    sql = (
        f"SELECT doc, score FROM run_documents WHERE run = ? AND item IN ({listed}){some} "
        "ORDER BY score DESC, doc LIMIT ? OFFSET ?"
    )
    return catalog.runs.connection.execute(sql, (run.number, *docs, min(k, LARGEST), min(offset, LARGEST))).fetchall()


def _among(docs: np.ndarray | None) -> tuple[str, tuple[str, ...]]:
    """Return SQL that keeps only these documents, with its parameters: a list in JSON, which may be of any length."""
    return ("", ()) if docs is None else (" AND doc IN (SELECT value FROM json_each(?))", (json.dumps(docs.tolist()),))


def documents_named_by(catalog: Catalog, kind: RunKind, name: str) -> list[int]:
    """Return the documents of the run of this kind and name; none where there is no such run."""
    sql = "SELECT d.doc FROM run_documents d JOIN runs r ON r.run = d.run WHERE r.kind = ? AND r.name = ?"
    return [doc for (doc,) in catalog.runs.connection.execute(sql, (kind, name))]


def documents_of_kind(catalog: Catalog, kind: RunKind) -> frozenset[int]:
    """Return the documents of all runs of this kind."""
    sql = "SELECT d.doc FROM run_documents d JOIN runs r ON r.run = d.run WHERE r.kind = ?"
    return frozenset(doc for (doc,) in catalog.runs.connection.execute(sql, (kind,)))


def marked_by_hand(catalog: Catalog, docs: Sequence[int]) -> list[tuple[RunKind, str, int]]:
    """Return how many of these documents each tag, and the corrections of each run, have: kind, name and number."""
    sql = (
        "SELECT r.kind, r.name, count(DISTINCT d.doc) FROM run_documents d JOIN runs r ON r.run = d.run "
        "WHERE r.kind IN (?, ?) AND d.doc IN (SELECT value FROM json_each(?)) GROUP BY r.run ORDER BY r.kind, r.name"
    )
    found = catalog.runs.connection.execute(sql, (TAG, CORRECTION, json.dumps([*docs])))
    return [(kind_of(kind), name, count) for kind, name, count in found]


def documents_in_runs(catalog: Catalog) -> np.ndarray:
    """Return int64 [n], the documents that any run says something of, ascending."""
    sql = "SELECT doc FROM run_documents UNION SELECT doc FROM run_places"
    return np.sort(np.fromiter((doc for (doc,) in catalog.runs.connection.execute(sql)), np.int64))


def item_sizes(catalog: Catalog, run: Run, among: np.ndarray | None = None) -> dict[int, int]:
    """Return how many documents each item of a run has, by its number; an item without documents is left out.

    `among`, int64 [n], are the only documents that count; all if None.
    """
    some, docs = _among(among)
    sql = f"SELECT item, count(*) FROM run_documents WHERE run = ?{some} GROUP BY item"
    return dict(catalog.runs.connection.execute(sql, (run.number, *docs)))


def sizes_inside(catalog: Catalog, run: Run, among: np.ndarray | None = None) -> dict[int, int]:
    """Return how many documents each item has, by its number: where items lie under others, in it and under it.

    An item without documents is left out. `among`, int64 [n], are the only documents that count; all if None.
    """
    sizes = item_sizes(catalog, run, among)
    if not run.kind.nested:
        return sizes
    found: dict[int, int] = {}
    for item, chain in numbers_above(catalog, run).items():
        if item in sizes:
            for number in chain:
                found[number] = found.get(number, 0) + sizes[item]
    return found


def item_name_counts(catalog: Catalog, run: Run) -> list[tuple[str, int]]:
    """Return the names of a run's items with their numbers of documents; items of one name count together.

    Where items lie under others, a document counts for its item and for all above it.
    """
    if run.kind.nested:
        totals: dict[str, int] = {}
        above = names_above(catalog, run)
        for item, count in item_sizes(catalog, run).items():
            for name in above.get(item, ()):
                totals[name] = totals.get(name, 0) + count
        return list(totals.items())
    sql = (
        "SELECT i.name, count(DISTINCT r.doc) FROM run_documents r "
        "JOIN run_items i ON i.run = r.run AND i.item = r.item WHERE r.run = ? GROUP BY 1"
    )
    return catalog.runs.connection.execute(sql, (run.number,)).fetchall()


def counts_by_column(
    catalog: Catalog, run: Run, field: Field, length: int | None = None, among: np.ndarray | None = None
) -> list[tuple[int, Any, int]]:
    """Return (item, part, number of documents) for each item of a run and each part of a metadata column.

    Args:
        catalog: Of the collection.
        run: The run.
        field: The column. Each item of a list is a part; a document then counts in several.
        length: How many first characters of a value make its part, such as 4 for the years of dates; None for all.
        among: int64 [n], the only documents that count; all if None.
    """
    value, join = _part(field, length)
    some = "" if among is None else "r.doc IN (?) AND "
    sql = (
        f"SELECT r.item, {value} AS part, count(*) FROM run_documents r JOIN metadata m ON m.doc = r.doc{join} "
        f"WHERE {some}r.run = {run.number} AND {value} IS NOT NULL GROUP BY 1, 2"
    )
    rows = catalog.select(sql) if among is None else catalog.select_in(sql, among.tolist())
    found = summed(((item, part), count) for item, part, count in rows)
    return [(item, part, count) for (item, part), count in found.items()]


def documents_by_column(
    catalog: Catalog, run: Run, field: Field, length: int | None = None, among: np.ndarray | None = None
) -> dict[Any, int]:
    """Return how many documents of a run each part of a metadata column has, each once; see `counts_by_column`."""
    value, join = _part(field, length)
    some = "" if among is None else "r.doc IN (?) AND "
    sql = (
        f"SELECT {value} AS part, count(DISTINCT r.doc) FROM run_documents r JOIN metadata m ON m.doc = r.doc{join} "
        f"WHERE {some}r.run = {run.number} AND {value} IS NOT NULL GROUP BY 1"
    )
    rows = catalog.select(sql) if among is None else catalog.select_in(sql, among.tolist())
    return summed((part, count) for part, count in rows)


def documents_without(catalog: Catalog, run: Run, field: Field, among: np.ndarray | None = None) -> int:
    """Return how many documents of a run have no value in a metadata column; see `counts_by_column`."""
    empty = (
        f"(m.{field.column} IS NULL OR m.{field.column} = '[]')"
        if field.type == "list"
        else f"m.{field.column} IS NULL"
    )
    some = "" if among is None else "r.doc IN (?) AND "
    sql = (
        "SELECT count(DISTINCT r.doc) FROM run_documents r JOIN metadata m ON m.doc = r.doc "
        f"WHERE {some}r.run = {run.number} AND {empty}"
    )
    return sum(n for (n,) in (catalog.select(sql) if among is None else catalog.select_in(sql, among.tolist())))


def _part(field: Field, length: int | None) -> tuple[str, str]:
    """Return the SQL of a part of a column, and of a join that it needs."""
    if field.type == "list":
        return "e.value", f", json_each(m.{field.column}) e"
    return f"m.{field.column}" if length is None else f"substr(m.{field.column}, 1, {int(length)})", ""


class Seen:
    """The keys that this run has met, in a temporary SQLite table: flat memory for any number of documents."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.connection.execute("CREATE TABLE seen(key TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID")
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("BEGIN")

    def count(self, key: str) -> int:
        """Note that a key was met and return how often it has been, this time included."""
        sql = "INSERT INTO seen VALUES (?, 1) ON CONFLICT(key) DO UPDATE SET times = times + 1 RETURNING times"
        return self.connection.execute(sql, (key,)).fetchone()[0]

    def missing(self, keys: Iterable[tuple[int, str]]) -> list[int]:
        """Return the numbers of those (number, key) pairs whose key was never met."""
        sql = "SELECT 1 FROM seen WHERE key = ?"
        return [number for number, key in keys if self.connection.execute(sql, (key,)).fetchone() is None]

    def sample(self, size: int) -> list[str]:
        """Return at most `size` keys, spread evenly over all that were met in their order."""
        (met,) = self.connection.execute("SELECT count(*) FROM seen").fetchone()
        every = max(1, -(-met // size))
        sql = "SELECT key FROM (SELECT key, row_number() OVER (ORDER BY key) AS place FROM seen) WHERE place % ? = 0"
        return [key for (key,) in self.connection.execute(sql, (every,))]

"""Checksums over what the catalog holds, so that `verify` notices every change that no writer made.

A document has a checksum of its own, beside its metadata. Each small table has one of all its rows. The passages, and
what each run says of documents, have the sum of a hash of every row, which changes with the rows that a writer adds or
takes away, without reading the others. Checksums find damage; they do not stop a person who computes new ones.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

PASSAGES, SEQUENCE = "passages", "sqlite_sequence"
SMALL = {
    "properties": "SELECT * FROM properties ORDER BY name",
    "fields": 'SELECT name, "column", type FROM fields ORDER BY rowid',
    "segments": "SELECT * FROM segments ORDER BY number",
    SEQUENCE: "SELECT name, seq FROM sqlite_sequence ORDER BY name",
}
"""Tables that have one checksum each, and how they are read."""

AT_ONCE = 10_000
_ALL = 2**64


def document_checksum(key: str, content: bytes, extra: bytes, values: Iterable[tuple[str, str, Any]]) -> bytes:
    """Return the 16-byte checksum of a document.

    Args:
        key: Its id.
        content: The digest of title, text and language.
        extra: The digest of the metadata as the source gave it.
        values: Name, type and stored value of each metadata field; missing values may be left out.
    """
    present = sorted(each for each in values if each[2] is not None)
    return blake2b(json.dumps([key, content.hex(), extra.hex(), present]).encode(), digest_size=16).digest()


def passage_sum(rows: Sequence[tuple[int, int | None, int, int, bytes]]) -> int:
    """Return the sum of hashes of rows (row, document or None, start, end, digest) of the table of passages."""
    if not rows:
        return 0
    numbers, docs, starts, ends, digests = zip(*rows, strict=True)
    owners = [-1 if doc is None else doc for doc in docs]
    halves = np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)
    return row_sum(*map(_whole, (numbers, owners, starts, ends)), halves[:, 0], halves[:, 1])


def assignment_sum(docs: Sequence[int] | np.ndarray, items: Sequence[int] | np.ndarray, scores: Any) -> int:
    """Return the sum of hashes of rows of `run_documents`; a score may be NaN or None."""
    return row_sum(_whole([1] * len(docs)), _whole(docs), _whole(items), _real(scores))


def place_sum(docs: Sequence[int] | np.ndarray, x: Any, y: Any) -> int:
    """Return the sum of hashes of rows of `run_places`."""
    return row_sum(_whole([2] * len(docs)), _whole(docs), _real(x), _real(y))


def row_sum(*columns: np.ndarray) -> int:
    """Return the sum, modulo 2^64, of a 64-bit hash of every row; 0 for no rows.

    Args:
        columns: uint64 [n] each.
    """
    state = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        state = _mixed(state + np.uint64(0x9E3779B97F4A7C15) ^ column)
    return int(state.sum(dtype=np.uint64))


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the output function of SplitMix64 (Steele, Lea and Flood 2014) of uint64 values."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _whole(values: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.asarray(values, np.int64).view(np.uint64)


def _real(values: Any) -> np.ndarray:
    numbers = np.array(values, np.float64) + 0.0  # SQLite stores -0.0 as 0.0, and NaN as NULL
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)


Fields = Sequence[tuple[str, str, str]]
"""Name, column and type of each metadata field."""


def documents(connection: sqlite3.Connection, fields: Fields, where: str = "1") -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the number of every document that a condition accepts, its stored checksum, and the one it has now."""
    columns = "".join(f", m.{column}" for _, column, _ in fields)
    sql = f"SELECT d.doc, m.checksum, d.key, d.content, d.extra{columns} FROM documents d JOIN metadata m USING (doc)"
    for doc, checksum, key, content, extra, *values in connection.execute(f"{sql} WHERE {where}"):
        named = [(name, kind, value) for (name, _, kind), value in zip(fields, values, strict=True)]
        yield doc, checksum, document_checksum(key, content, extra, named)


def fill_documents(connection: sqlite3.Connection, fields: Fields, where: str = "1") -> None:
    """Compute the checksum of every document that a condition accepts from what the catalog holds."""
    now = ((checksum, doc) for doc, _, checksum in documents(connection, fields, where))
    while some := list(islice(now, AT_ONCE)):
        connection.executemany("UPDATE metadata SET checksum = ? WHERE doc = ?", some)


def table_checksum(rows: Iterable[Sequence[Any]]) -> int:
    """Return the checksum of all rows of a small table, in 0 to 2^64 - 1."""
    hashed = blake2b(digest_size=8)
    for row in rows:
        hashed.update(json.dumps(list(row), default=repr).encode() + b"\n")
    return int.from_bytes(hashed.digest(), "little")


def run_checksum(connection: sqlite3.Connection, run: int) -> int:
    """Return the checksum of a run's description, items and arrays."""
    facts = connection.execute("SELECT * FROM runs WHERE run = ?", (run,))
    items = connection.execute("SELECT item, name, data FROM run_items WHERE run = ? ORDER BY item", (run,))
    arrays = connection.execute("SELECT name, data FROM run_arrays WHERE run = ? ORDER BY name", (run,))
    hashed = ((name, blake2b(data, digest_size=16).hexdigest()) for name, data in arrays)
    return table_checksum([*facts, *items, *hashed])


def results_part(run: int) -> str:
    """Return the name of the checksum of what a run says of documents."""
    return f"results {run}"


def run_part(run: int) -> str:
    """Return the name of the checksum of a run's description, items and arrays."""
    return f"run {run}"


def stored(connection: sqlite3.Connection) -> dict[str, int]:
    """Return all stored checksums, but for those of documents, by part."""
    return {part: value % _ALL for part, value in connection.execute("SELECT part, value FROM checksums")}


def store(connection: sqlite3.Connection, part: str, value: int) -> None:
    """Store a checksum; SQLite's integers have a sign."""
    signed = value % _ALL - (_ALL if value % _ALL >= _ALL // 2 else 0)
    connection.execute("INSERT OR REPLACE INTO checksums VALUES (?, ?)", (part, signed))


def change(connection: sqlite3.Connection, part: str, *, added: int = 0, removed: int = 0) -> None:
    """Add to a stored sum the rows that were added, and take away those that were removed."""
    if added != removed:
        found = connection.execute("SELECT value FROM checksums WHERE part = ?", (part,)).fetchone()
        store(connection, part, (found[0] if found else 0) + added - removed)


def forget_run(connection: sqlite3.Connection, run: int) -> None:
    """Forget the checksums of a run that is removed."""
    connection.execute("DELETE FROM checksums WHERE part IN (?, ?)", (results_part(run), run_part(run)))


def seal(connection: sqlite3.Connection) -> None:
    """Store the checksums of the small tables, as the last step of a write transaction."""
    known = stored(connection)
    for part, value in small(connection).items():
        if known.get(part) != value:
            store(connection, part, value)


def unsealed(connection: sqlite3.Connection) -> str | None:
    """Return a small table that has changed since a write transaction stored its checksum; None where none has."""
    known = stored(connection)
    return next((part for part, value in small(connection).items() if known.get(part, value) != value), None)


def small(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the checksums that the small tables have now."""
    return {part: table_checksum(connection.execute(sql)) for part, sql in SMALL.items()}


def reset_sequence(connection: sqlite3.Connection) -> bool:
    """Number the next run after the largest that is in use, if the last number given has changed; return whether.

    A write transaction of the catalog would refuse to begin, so this has one of its own.
    """
    if stored(connection).get(SEQUENCE) == small(connection)[SEQUENCE]:
        return False
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        connection.execute("DELETE FROM sqlite_sequence")
        connection.execute("INSERT INTO sqlite_sequence(name, seq) SELECT 'runs', max(run) FROM runs HAVING count(*)")
        store(connection, SEQUENCE, small(connection)[SEQUENCE])
    return True


def passages_now(connection: sqlite3.Connection, where: str = "", values: Sequence[int] = ()) -> int:
    """Return the sum that the table of passages, or the part of it that a condition accepts, has now."""
    rows = connection.execute(f'SELECT row, doc, start, "end", digest FROM passages {where}', values)
    return sum(passage_sum(some) for some in slices(rows)) % _ALL


def results_now(connection: sqlite3.Connection, run: int) -> int:
    """Return the sum that a run's rows about documents have now."""
    assigned = connection.execute("SELECT doc, item, score FROM run_documents WHERE run = ?", (run,))
    placed = connection.execute("SELECT doc, x, y FROM run_places WHERE run = ?", (run,))
    total = sum(assignment_sum(*zip(*some, strict=True)) for some in slices(assigned))
    return (total + sum(place_sum(*zip(*some, strict=True)) for some in slices(placed))) % _ALL


def slices(rows: sqlite3.Cursor) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a query in lists, which bounds the memory that they take."""
    while some := rows.fetchmany(AT_ONCE):
        yield some


def fill(connection: sqlite3.Connection) -> None:
    """Compute every checksum from what the catalog holds, but for those of documents."""
    store(connection, PASSAGES, passages_now(connection))
    for (run,) in connection.execute("SELECT run FROM runs").fetchall():
        store(connection, results_part(run), results_now(connection, run))
        store(connection, run_part(run), run_checksum(connection, run))
    seal(connection)

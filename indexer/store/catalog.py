"""The catalog: one SQLite file that says which documents, passages, vectors and fields exist."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..document import Value
from ..errors import SondeError
from ..files import CHECK_DISK
from . import schema
from .checksums import seal, unsealed
from .fields import Field, load_value
from .lock import no_collection
from .schema import check_small, damaged
from .segments import Segment

SHARED = ("run_items", "run_documents")
"""Tables of runs that statements about documents read as well, such as filters."""
PATIENCE = 30.0
"""Seconds to wait for another connection that holds a lock."""
ID_COLUMN = "id_column"
"""Property of a collection: the column that its ids come from; "" if they are hashes of the texts."""
CHUNK = 500
"""Values bound in one `IN (…)`, well below SQLite's limit on parameters."""


def connect_catalog(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open `catalog.db`, creating it when `write` and it is absent.

    A folder on a read-only disk is opened as immutable: SQLite then needs no files of its own beside it.

    Raises:
        SondeError: There is no catalog, or it is not one that this version reads.
    """
    if not write and not path.is_file():
        raise no_collection(path.parent)
    return _connected(path, "rwc" if write else "ro")


IMMUTABLE = "ro&immutable=1"


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    connection = _open(path, mode)
    try:
        _configure(connection, mode == "rwc")
    except sqlite3.OperationalError as error:
        connection.close()
        if mode == "ro" and not (path.parent / "catalog.db-wal").exists():
            return _connected(path, IMMUTABLE)
        raise SondeError(f"cannot {'write' if mode == 'rwc' else 'read'} {path} ({error}): {CHECK_DISK}") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        connection.close()
        said = f"{path.parent} is not a Sonde collection: its catalog.db is damaged ({error})"
        raise SondeError(said, code="damaged") from None
    return connection


def _open(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE)
    except sqlite3.OperationalError as error:
        advice = CHECK_DISK if os.access(path, os.R_OK) else "give yourself the right to read it"
        raise SondeError(f"cannot open {path} ({error}): {advice}") from None


def _configure(connection: sqlite3.Connection, write: bool) -> None:
    if write:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def is_unborn(path: Path) -> bool:
    """Whether an existing catalog is empty or names no model yet; False for a database of anything else.

    Raises:
        SondeError: It cannot be read.
    """
    with closing(connect_catalog(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "properties" not in tables or "segments" not in tables:
            return not tables
        return connection.execute("SELECT 1 FROM properties WHERE name = 'model'").fetchone() is None


Each = TypeVar("Each")


def in_slices(values: Sequence[Each], size: int = 10_000) -> Iterator[Sequence[Each]]:
    """Yield the values in slices of at most `size`."""
    return (values[offset : offset + size] for offset in range(0, len(values), size))


class Catalog:
    """Queries over an open catalog; every multi-statement read or write goes through `transaction`."""

    _runs_of: Path | None = None

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> "Catalog":
        """Open the catalog of a collection and bring an older format up to date when `write`.

        Raises:
            SondeError: It is no catalog, or its format is newer than this Sonde.
        """
        connection = connect_catalog(path, write=write)
        try:
            version = schema.check(connection, path.parent)
            check_small(connection, path.parent)
            if version < schema.FORMAT:
                if not write:
                    raise SondeError(f"{path.parent} has an older format: open it once with write access")
                schema.upgrade(connection, version)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            connection.close()
            raise damaged(path.parent, f"its catalog.db cannot be read ({error})") from None
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    @classmethod
    def create(cls, path: Path) -> "Catalog":
        """Make an empty catalog in an existing folder."""
        connection = connect_catalog(path, write=True)
        schema.create_schema(connection)
        return cls(connection)

    @classmethod
    def empty(cls) -> "Catalog":
        """Return an empty catalog in memory."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        schema.create_schema(connection)
        return cls(connection)

    @property
    def runs(self) -> "Catalog":
        """The catalog that holds the runs: itself, unless it is a `JoinedCatalog`."""
        return self

    @property
    def each(self) -> "Sequence[Catalog]":
        """The catalogs that hold the documents: itself, unless it is a `JoinedCatalog`."""
        return (self,)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def read_runs_of(self, path: Path | None) -> None:
        """Let statements see the runs of another catalog, in a file that never changes, as if they were in this one.

        None is for the runs of the catalog itself. A transaction must not be open.
        """
        if path == self._runs_of:
            return
        execute = self.connection.execute
        if self._runs_of:
            for table in SHARED:
                execute(f"DROP VIEW temp.{table}")
            execute("DETACH DATABASE whole")
        if path:
            execute("ATTACH DATABASE ? AS whole", (f"{path.absolute().as_uri()}?mode=ro&immutable=1",))
            for table in SHARED:  # SQLite looks for a name among temporary views first
                execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM whole.{table}")
        self._runs_of = path

    def checkpoint(self) -> None:
        """Move everything from the write-ahead log to the file itself, so that the file alone is the catalog.

        Raises:
            SondeError: Another connection is reading or writing.
        """
        if not self.empty_log():
            raise SondeError(f"{self._folder} is being read or written by another process: run the same command again")

    def empty_log(self, patience: float = PATIENCE) -> bool:
        """Move everything from the write-ahead log to the file, and empty the log; return whether that was possible.

        It is not while another connection reads an older state for longer than `patience` seconds. Nothing is lost
        then: a later commit moves what is left.
        """
        self.connection.execute(f"PRAGMA busy_timeout = {patience * 1000:.0f}")
        busy, _, _ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self.connection.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}")
        return not busy

    def free_share(self) -> float:
        """Return the share of the file's pages that hold nothing, 0 to 1."""
        free, pages = (self._pragma(name) for name in ("freelist_count", "page_count"))
        return free / max(pages, 1)

    def _pragma(self, name: str) -> int:
        return self.connection.execute(f"PRAGMA {name}").fetchone()[0]

    def vacuum(self) -> None:
        """Rewrite the file without the space of deleted rows, in one commit; readers go on with what they see.

        This takes about 0.5 s for 100,000 documents. Meanwhile, it needs disk space for two copies of what is left,
        one beside the catalog and one among the temporary files. A transaction must not be open.

        Raises:
            sqlite3.OperationalError: The disk is full; the catalog is as it was.
        """
        self.connection.execute("VACUUM")

    def version(self) -> int:
        """Return a number that changes with every commit of another connection."""
        (found,) = self.connection.execute("PRAGMA data_version").fetchone()
        return found

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[None]:
        """One consistent view of the catalog or, when `write`, one commit: all of it or nothing.

        Raises:
            SondeError: For a write: a table of the catalog is damaged.
        """
        self.connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            if write and (table := unsealed(self.connection)):
                raise damaged(self._folder, f"the table {table} has changed since it was written")
            yield
            if write:
                seal(self.connection)
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    @property
    def _folder(self) -> Path:
        return Path(self.connection.execute("PRAGMA database_list").fetchone()[2]).parent

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write in the open transaction, or in one of its own."""
        with nullcontext() if self.connection.in_transaction else self.transaction(write=True):
            yield

    def get(self, name: str, default: Any = None) -> Any:
        """Return a property (any JSON value)."""
        found = self.connection.execute("SELECT value FROM properties WHERE name = ?", (name,)).fetchone()
        return json.loads(found[0]) if found else default

    def set(self, name: str, value: Any) -> None:
        """Set a property (any JSON value)."""
        with self._writing():
            self.connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (name, json.dumps(value)))

    def remove(self, name: str) -> None:
        """Remove a property, if there is one."""
        with self._writing():
            self.connection.execute("DELETE FROM properties WHERE name = ?", (name,))

    def epoch(self) -> int:
        """Return the number that names the folders of the derived indexes."""
        return self.get("epoch", 1)

    def advance(self) -> int:
        """Count the generation up, so that readers see that something changed; return the new one."""
        with self._writing():
            generation = self.get("generation", 0) + 1
            self.set("generation", generation)
        return generation

    def segments(self) -> list[Segment]:
        """Return the segments that exist, in row order."""
        rows = self.connection.execute("SELECT number, start, count, sha256 FROM segments ORDER BY start")
        return [Segment(*row) for row in rows]

    def rows(self) -> int:
        """Return how many vector rows there are, tombstones included."""
        return self.connection.execute("SELECT coalesce(max(start + count), 0) FROM segments").fetchone()[0]

    def fields(self) -> dict[str, Field]:
        """Return the metadata fields by name, in the order in which they were first seen."""
        rows = self.connection.execute("SELECT name, column, type FROM fields ORDER BY rowid")
        return {name: Field(name, column, kind) for name, column, kind in rows}

    def document_of_row(self) -> np.ndarray:
        """Return int64 [rows]: the document of every passage row, -1 for tombstones.

        Raises:
            SondeError: Passages name rows that no segment has.
        """
        owners = np.full(self.rows(), -1, dtype=np.int64)
        live = self.connection.execute("SELECT row, doc FROM passages WHERE doc IS NOT NULL")
        while chunk := live.fetchmany(100_000):
            pairs = np.array(chunk, dtype=np.int64)
            if pairs[:, 0].min() < 0 or pairs[:, 0].max() >= len(owners):
                raise damaged(
                    self._folder, f"its passages refer to rows beyond the {len(owners):,} that its segments have"
                )
            owners[pairs[:, 0]] = pairs[:, 1]
        return owners

    def counts(self) -> tuple[int, int, int]:
        """Return how many documents, live passages and tombstones there are."""
        one = self.connection.execute
        documents = one("SELECT count(*) FROM documents").fetchone()[0]
        live = one("SELECT count(*) FROM passages WHERE doc IS NOT NULL").fetchone()[0]
        return documents, live, one("SELECT count(*) FROM passages WHERE doc IS NULL").fetchone()[0]

    def select(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Run `sql` and yield all rows."""
        yield from self.connection.execute(sql)

    def ordered(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Run `sql`, which orders its rows by the first column, and yield them in this order."""
        yield from self.connection.execute(sql)

    def select_in(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Run `sql`, in which `(?)` stands for the list of values, in slices of values; yield all rows."""
        for some in in_slices(values, CHUNK):
            marks = ",".join("?" * len(some))
            yield from self.connection.execute(sql.replace("(?)", f"({marks})"), some)

    def metadata(self, docs: Sequence[int]) -> dict[int, dict[str, Value]]:
        """Return the metadata of documents by document number; fields without a value are left out."""
        fields = list(self.fields().values())
        columns = "".join(f", {field.column}" for field in fields)
        found: dict[int, dict[str, Value]] = {}
        for doc, *stored in self.select_in(f"SELECT doc{columns} FROM metadata WHERE doc IN (?)", docs):
            pairs = zip(fields, stored, strict=True)
            found[doc] = {field.name: load_value(value, field.type) for field, value in pairs if value is not None}
        return found

    def documents_where(self, sql: str, parameters: Iterable[Any]) -> np.ndarray:
        """Return int64 numbers of the documents which a compiled filter accepts, ascending."""
        query = f"SELECT d.doc FROM documents d JOIN metadata m ON m.doc = d.doc WHERE {sql} ORDER BY d.doc"
        found = self.connection.execute(query, tuple(parameters)).fetchall()
        return np.array(found, dtype=np.int64).reshape(-1)

"""The catalog's layout in SQLite, its version, and the migrations between versions."""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path

from ..errors import SondeError
from .checksums import fill, fill_documents
from .lock import no_collection

FORMAT = 3
"""Version of the collection on disk. Version n is reached by running `MIGRATIONS[:n]` in order."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE properties(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE documents(
        doc INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        text TEXT NOT NULL,
        length INTEGER NOT NULL,
        language TEXT,
        content BLOB NOT NULL,  -- digest of title, text and language: decides whether vectors stay valid
        extra BLOB NOT NULL     -- digest of the metadata
    );
    CREATE TABLE passages(
        row INTEGER PRIMARY KEY,  -- the vector's row over all segments; never used twice
        doc INTEGER,              -- NULL: a tombstone, kept so that its vector can be reused until `compact`
        start INTEGER NOT NULL,
        end INTEGER NOT NULL,
        digest BLOB NOT NULL      -- of the embedded text: equal digests have equal vectors
    );
    CREATE INDEX passages_doc ON passages(doc);
    CREATE INDEX passages_digest ON passages(digest);
    CREATE TABLE segments(
        number INTEGER PRIMARY KEY,
        start INTEGER NOT NULL,
        count INTEGER NOT NULL,
        sha256 TEXT NOT NULL
    );
    CREATE TABLE fields(name TEXT PRIMARY KEY, column TEXT NOT NULL UNIQUE, type TEXT NOT NULL);
    CREATE TABLE metadata(doc INTEGER PRIMARY KEY);
    """,
    """
    CREATE TABLE runs(
        run INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,        -- cluster, topic, map, label …
        name TEXT NOT NULL,
        complete INTEGER NOT NULL, -- 0: stopped on its way, to be gone on with
        created TEXT NOT NULL,
        seconds REAL NOT NULL,
        generation INTEGER NOT NULL,
        parameters TEXT NOT NULL,  -- JSON, the seed included
        versions TEXT NOT NULL,    -- JSON: library to version
        report TEXT NOT NULL,      -- JSON: what the run measured
        UNIQUE(kind, name)
    );
    CREATE TABLE run_items(  -- a run's clusters, topics or labels
        run INTEGER NOT NULL, item INTEGER NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL,
        PRIMARY KEY(run, item)
    ) WITHOUT ROWID;
    CREATE TABLE run_documents(  -- which of them a document belongs to, and how much
        run INTEGER NOT NULL, doc INTEGER NOT NULL, item INTEGER NOT NULL, score REAL,
        PRIMARY KEY(run, doc, item)
    ) WITHOUT ROWID;
    CREATE INDEX run_documents_doc ON run_documents(doc);
    CREATE TABLE run_places(  -- where a map puts a document
        run INTEGER NOT NULL, doc INTEGER NOT NULL, x REAL NOT NULL, y REAL NOT NULL,
        PRIMARY KEY(run, doc)
    ) WITHOUT ROWID;
    CREATE INDEX run_places_doc ON run_places(doc);
    CREATE TABLE run_arrays(  -- centroids, topic vectors …, each a .npy file's bytes
        run INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY(run, name)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE metadata ADD COLUMN checksum BLOB;  -- of the whole document, its stored metadata included
    CREATE TABLE checksums(part TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    """,
)


_FIELD = re.compile(r", c\d+(?=[,)])")


def create_schema(connection: sqlite3.Connection) -> None:
    """Lay out an empty catalog of the current format inside one transaction."""
    upgrade(connection, 0)


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Run the migrations after `version`, and compute the checksums of what is there: all or nothing."""
    connection.executescript(f"BEGIN IMMEDIATE; {''.join(MIGRATIONS[version:])}")
    fill_documents(connection, connection.execute('SELECT name, "column", type FROM fields').fetchall())
    fill(connection)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


@cache
def layout(version: int) -> Mapping[str, str]:
    """Return the SQL of every table and index of a format by name, but for the columns of metadata fields."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("".join(MIGRATIONS[:version]))
        return _objects(connection)


def _objects(connection: sqlite3.Connection) -> dict[str, str]:
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'")
    return {name: _FIELD.sub("", sql or "") if name == "metadata" else sql for name, sql in found}


def _odd(objects: Mapping[str, str], expected: Mapping[str, str]) -> str | None:
    """Return what is wrong with the tables, indexes, views and triggers of a catalog; None where nothing is."""
    for name in sorted({*objects, *expected}):
        if name not in objects:
            return f"has no {name}"
        if name not in expected:
            return f"holds {name!r}"
        if objects[name] != expected[name]:
            return f"defines {name} in another way"
    return None


def check(connection: sqlite3.Connection, path: Path) -> int:
    """Return the format version of an open catalog.

    Raises:
        SondeError: The file is no catalog, was written by a newer Sonde, or holds tables that no Sonde made.
    """
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        objects = _objects(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        said = f"{path} is not a Sonde collection: its catalog.db is not a SQLite database ({error})"
        raise SondeError(said, code="damaged") from None
    if version == 0 or "properties" not in objects:
        raise no_collection(path, "its catalog.db has no catalog; index into another folder")
    if version > FORMAT:
        raise SondeError(
            f"{path} has collection format {version}, and this Sonde reads formats 1 to {FORMAT}: upgrade Sonde"
        )
    if odd := _odd(objects, layout(version)):
        said = f"{path} is not a Sonde collection: its catalog.db {odd}, which no version of Sonde makes"
        raise SondeError(said, code="damaged")
    return version

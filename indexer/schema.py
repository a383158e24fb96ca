"""The catalog's layout in SQLite, its version, and the migrations between versions."""

import sqlite3
from pathlib import Path

from .errors import SondeError

FORMAT = 1
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
)


def create(connection: sqlite3.Connection) -> None:
    """Lay out an empty catalog of the current format inside one transaction."""
    upgrade(connection, 0)


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Run the migrations after `version`, all or none."""
    script = "".join(MIGRATIONS[version:])
    connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {FORMAT}; COMMIT;")


def check(connection: sqlite3.Connection, path: Path) -> int:
    """Return the format version of an open catalog.

    Raises:
        SondeError: The file is no catalog, or was written by a newer Sonde.
    """
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise SondeError(f"{path} is no Sonde collection: its catalog.db is no SQLite database ({error})") from None
    if version == 0 or not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'properties'").fetchone():
        raise SondeError(f"{path} is no Sonde collection: its catalog.db holds no catalog; index into another folder")
    if version > FORMAT:
        raise SondeError(
            f"{path} has collection format {version}, and this Sonde reads formats 1 to {FORMAT}: upgrade Sonde"
        )
    return version

"""The catalog's layout in SQLite, the migrations between its versions, and what every value in it must be.

Nothing else is read: a catalog may come from a stranger, or be damaged.
"""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..document import TYPES
from ..encoder import ModelSpec
from ..errors import SondeError
from .checksums import fill, fill_documents
from .fields import load_value
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


LARGEST_NUMBER = 2**31
"""Segments and epochs are numbered below this."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be: in words, and as SQL in which `{}` stands for the column."""

    words: str
    sql: str

    def or_null(self) -> "Rule":
        """Return the rule for a column that may be empty."""
        return Rule(self.words, f"({{0}} IS NULL OR {self.sql})")


TEXT = Rule("text", "typeof({0}) = 'text'")
INTEGER = Rule("an integer", "typeof({0}) = 'integer'")
COUNT = Rule("an integer from 0", "typeof({0}) = 'integer' AND {0} >= 0")
NUMBER = Rule("an integer from 1", "typeof({0}) = 'integer' AND {0} >= 1")
REAL = Rule("a number", "typeof({0}) = 'real'")
FLAG = Rule("0 or 1", "typeof({0}) = 'integer' AND {0} IN (0, 1)")
BLOB = Rule("bytes", "typeof({0}) = 'blob'")
DIGEST = Rule("a digest of 16 bytes", "typeof({0}) = 'blob' AND length({0}) = 16")
SHA256 = Rule("a SHA-256 digest", "typeof({0}) = 'text' AND length({0}) = 64 AND {0} NOT GLOB '*[^0-9a-f]*'")
SMALL = Rule(f"an integer from 1 to {LARGEST_NUMBER:,}", f"{NUMBER.sql} AND {{0}} <= {LARGEST_NUMBER}")
JSON = Rule("JSON", "typeof({0}) = 'text' AND sonde_json({0}) IS NOT NULL")
JSON_OBJECT = Rule("a JSON object", "typeof({0}) = 'text' AND sonde_json({0}) = 'dict'")
JSON_LIST = Rule("a JSON list", "typeof({0}) = 'text' AND sonde_json({0}) = 'list'")
COLUMN = Rule("a column", "typeof({0}) = 'text' AND {0} GLOB 'c[0-9]*' AND substr({0}, 2) NOT GLOB '*[^0-9]*'")
TYPE = Rule("a type", f"typeof({{0}}) = 'text' AND {{0}} IN {TYPES}")
DATE = Rule("a date", "typeof({0}) = 'text' AND sonde_is_date({0})")

SMALL_TABLES: Mapping[str, Mapping[str, Rule]] = {
    "properties": {"name": TEXT, "value": JSON},
    "fields": {"name": TEXT, "column": COLUMN, "type": TYPE},
    "segments": {"number": SMALL, "start": COUNT, "count": NUMBER, "sha256": SHA256},
    "runs": {
        "run": NUMBER, "kind": TEXT, "name": TEXT, "complete": FLAG, "created": TEXT, "seconds": REAL,
        "generation": COUNT, "parameters": JSON_OBJECT, "versions": JSON_OBJECT, "report": JSON_OBJECT,
    },
    "checksums": {"part": TEXT, "value": INTEGER},
}  # fmt: skip
"""The rules of the tables that are checked whenever a catalog is opened."""

LARGE_TABLES: Mapping[str, Mapping[str, Rule]] = {
    "documents": {
        "doc": INTEGER, "key": TEXT, "title": TEXT, "text": TEXT, "length": COUNT, "language": TEXT.or_null(),
        "content": DIGEST, "extra": DIGEST,
    },
    "passages": {"row": COUNT, "doc": INTEGER.or_null(), "start": COUNT, "end": COUNT, "digest": DIGEST},
    "run_items": {"run": NUMBER, "item": INTEGER, "name": TEXT, "data": JSON_OBJECT},
    "run_documents": {"run": NUMBER, "doc": INTEGER, "item": INTEGER, "score": REAL.or_null()},
    "run_places": {"run": NUMBER, "doc": INTEGER, "x": REAL, "y": REAL},
    "run_arrays": {"run": NUMBER, "name": TEXT, "data": BLOB},
}  # fmt: skip
"""The rules of the tables that `verify` checks, and a reader once something in them cannot be read."""

METADATA = {"text": TEXT, "integer": INTEGER, "real": REAL, "boolean": FLAG, "date": DATE, "list": JSON_LIST}
"""The rules of metadata columns by type."""


def check_small(connection: sqlite3.Connection, where: object) -> None:
    """Check the small tables, which name files and columns.

    Raises:
        SondeError: A value cannot be right; the message names the table and the column.
    """
    problem = next(_broken(connection, SMALL_TABLES), None) or _property(connection)
    if problem:
        raise damaged(where, problem)


def damaged(where: object, problem: str) -> SondeError:
    """Return the error for a catalog that holds what no writer put there."""
    advice = "restore it from a backup, or index the source into a new collection"
    return SondeError(f"{where} is damaged: {problem}: {advice}", code="damaged")


def broken_rules(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield one sentence for every column of the catalog that holds what it cannot hold."""
    try:
        yield from _broken(connection, SMALL_TABLES)
        if problem := _property(connection):
            yield problem
        yield from _broken(connection, LARGE_TABLES)
        yield from _broken(connection, {"metadata": _metadata(connection)})
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        yield f"catalog.db cannot be read ({error})"


def _broken(connection: sqlite3.Connection, tables: Mapping[str, Mapping[str, Rule]]) -> Iterator[str]:
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.create_function("sonde_is_date", 1, _is_date, deterministic=True)
    connection.create_function("sonde_json", 1, _json_type, deterministic=True)
    for table, rules in tables.items():
        if table not in known or not rules:
            continue
        checks = (f"sum(NOT coalesce({rule.sql}, 0))".format(f'"{column}"') for column, rule in rules.items())
        counts = connection.execute(f"SELECT {', '.join(checks)} FROM {table}").fetchone()
        for (column, rule), count in zip(rules.items(), counts, strict=True):
            if count:
                yield f"in table {table}, {column} is not {rule.words} in {count:,} {'row' if count == 1 else 'rows'}"


def _metadata(connection: sqlite3.Connection) -> dict[str, Rule]:
    fields = connection.execute('SELECT "column", type FROM fields').fetchall()
    return {column: METADATA[kind].or_null() for column, kind in fields} | {"checksum": DIGEST.or_null()}


def _is_date(stored: object) -> bool:
    try:
        return isinstance(stored, str) and bool(load_value(stored, "date"))
    except ValueError:
        return False


def _json_type(stored: object) -> str | None:
    """Return the Python type of a JSON text; SQLite's own functions refuse NaN, which reports may hold."""
    try:
        return type(json.loads(stored)).__name__ if isinstance(stored, str) else None
    except (ValueError, RecursionError):
        return None


def _property(connection: sqlite3.Connection) -> str | None:
    """Return what is wrong with the properties that decide how the collection is read."""
    found = {name: json.loads(value) for name, value in connection.execute("SELECT name, value FROM properties")}
    for name in _PROPERTIES:
        if name in found and not is_property(name, found[name]):
            return f"its {name.replace('_', ' ')} is {str(found[name])[:80]!r}"
    return None


def is_property(name: str, value: object) -> bool:
    """Return whether a property may have this value."""
    return name not in _PROPERTIES or bool(_PROPERTIES[name](value))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _is_epoch(value: Any) -> bool:
    return type(value) is int and 1 <= value < LARGEST_NUMBER


def _is_model(value: Any) -> bool:
    try:
        ModelSpec.from_dict(value)
    except SondeError:
        return False
    return True


def _is_ann(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, (str, int, float)) for each in value.values())


def _is_search(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("found"), (dict, type(None))):
        return False
    return all(isinstance(each, (int, float, type(None))) for name, each in value.items() if name != "found")


FINGERPRINT = re.compile(r"[0-9a-f]{16}")


def _is_history(value: Any) -> bool:
    types = {"since": int, "name": str, "fingerprint": str}
    entries = value if isinstance(value, list) else [None]
    return all(isinstance(each, dict) and {name: type(of) for name, of in each.items()} == types for each in entries)


def _is_widened(value: Any) -> bool:
    found = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(each, list) and list(map(type, each)) == [str, int] and each[0] in TYPES for each in found)


def is_types(value: Any) -> bool:
    """Whether this is what was given as types of fields: by name, a type and maybe its format."""
    found = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(each, str) and each.partition(":")[0] in TYPES for each in found)


_PROPERTIES = {
    "generation": _is_count,
    "epoch": _is_epoch,
    "ann_epoch": lambda value: value is None or _is_epoch(value),
    "language": lambda value: value is None or isinstance(value, str),
    "model": _is_model,
    "ann": _is_ann,
    "late": lambda value: isinstance(value, bool),
    "late_epoch": lambda value: value is None or _is_epoch(value),
    "search_defaults": _is_search,
    "previous_model": lambda value: value is None or (isinstance(value, str) and bool(FINGERPRINT.fullmatch(value))),
    "model_history": _is_history,
    "last_document": _is_count,
    "widened": _is_widened,
    "types": is_types,
    "forms": is_types,
    "encoding": lambda value: isinstance(value, str),
    "sources": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
}

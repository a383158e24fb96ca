"""Every column of every table of the catalog is changed, and `verify` has to notice each change."""

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import TABLES, problems
from fake_encoder import FakeEncoder

from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.kinds import CLUSTER, LABEL, MAP, TAG
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item
from sonde.indexer.upkeep.delete import delete_chosen, numbers_of

OTHERS = ("sqlite_sequence", "checksums")
WORDS = ["apple", "river", "cloud", "winter", "letter", "music"]


def documents() -> list[Document]:
    return [
        Document(
            f"{word} {WORDS[number % 4]} number {number}",
            title=word.title(),
            key=f"{word}{number}",
            language="en" if number % 2 else None,
            metadata={
                "stars": number, "price": number / 4, "sold": number % 3 == 0, "day": date(2020, 1, 1 + number),
                "tags": [word, "all"], "note": None if number % 2 else f"note {number}",
            },
        )
        for number, word in enumerate(WORDS * 4)
    ]  # fmt: skip


def add_runs(folder: Path) -> None:
    with StoredCollection.open(folder).view() as view:
        snapshot = Snapshot.of(view)
    docs = snapshot.docs
    items, scores = np.arange(len(docs)) % 3, np.linspace(0, 1, len(docs), dtype=np.float32)
    named = [Item(number, f"item {number}", {"size": 8, "terms": [["apple", 0.5]]}) for number in range(3)]
    centroids = {"centroids": np.eye(3, 16, dtype=np.float32)}
    assigned = (docs, items, scores)
    write_run(folder, NewRun(CLUSTER, "k", {"seed": 1}, items=named, assignments=assigned, arrays=centroids), snapshot)
    write_run(folder, NewRun(LABEL, "l", {}, items=named, assignments=(docs, items, scores * np.nan)), snapshot)
    write_run(
        folder, NewRun(TAG, "t", {}, items=named[:1], assignments=(docs[:3], items[:3] * 0, scores[:3])), snapshot
    )
    write_run(folder, NewRun(MAP, "m", {}, places=(docs, np.stack([scores, -scores], axis=1))), snapshot)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with metadata of all types, tombstones and runs that lost a document."""
    folder = tmp_path_factory.mktemp("sound") / "c.sonde"
    index_documents(documents(), folder, settings=BuildSettings(batch=5), encoder=FakeEncoder())  # type: ignore[arg-type]
    add_runs(folder)
    delete_chosen(folder, lambda catalog: numbers_of(catalog, ["apple0", "river1"]))
    changed = [Document("another text", key="cloud2", metadata={"stars": "many", "new": 1.5})]
    index_documents(changed, folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert problems(folder) == []
    return folder


def tables(folder: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        return {table: names(connection, table) for table in (*TABLES, *OTHERS)}


def names(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def other(value: Any) -> Any:
    """A value of the same type that differs."""
    if isinstance(value, str):
        try:
            return json.dumps([json.loads(value)])
        except ValueError:
            return value[:-1] + chr(ord(value[-1]) ^ 1) if value else "x"
    if isinstance(value, bytes):
        return bytes([*value[:-1], value[-1] ^ 1])
    return 1 if value is None else value + 1000


def change(folder: Path, table: str, column: str, place: int, value: Any = other) -> tuple[Any, Any]:
    """Change one value; return it as it was and as it is."""
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        found = connection.execute(f"SELECT * FROM {table}").fetchall()
        row = found[place % len(found)]
        old = row[names(connection, table).index(column)]
        new = value(old) if callable(value) else value
        where = matching(connection, table)
        connection.execute(f'UPDATE OR REPLACE {table} SET "{column}" = ? WHERE {where}', (new, *row))
        return old, new


def copy(folder: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(folder, target))


def noticed(folder: Path) -> list[str]:
    try:
        return problems(folder)
    except SondeError as error:
        assert " is damaged: " in str(error) or "another way" in str(error)
        return [str(error)]


def test_every_column_of_every_table(sound: Path, tmp_path: Path) -> None:
    missed, tried = [], 0
    for table, columns in tables(sound).items():
        for column in columns:
            for value in (other, None, "text", b"bytes", -(2**62), 2.5):
                folder = copy(sound, tmp_path / "c.sonde")
                try:
                    old, new = change(folder, table, column, 3, value)
                except sqlite3.IntegrityError:
                    continue  # the schema itself forbids it
                stored = sqlite3.connect(folder / "catalog.db").execute("SELECT ?", (new,)).fetchone()[0]
                tried += repr(old) != repr(stored)
                if repr(old) != repr(stored) and noticed(folder) == []:
                    missed.append((table, column, old, new))
    assert missed == []
    assert tried > 200


@pytest.mark.parametrize("table", [*TABLES, *OTHERS])
def test_values_exchanged_between_two_rows(sound: Path, tmp_path: Path, table: str) -> None:
    for place, column in enumerate(tables(sound)[table]):
        folder = copy(sound, tmp_path / "c.sonde")
        with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
            first, *others = map(list, connection.execute(f"SELECT * FROM {table}").fetchall())
            second = next((row for row in others if row[place] != first[place]), None)
            if second is None:
                continue
            for row in (first, second):
                remove(connection, table, row)
            first[place], second[place] = second[place], first[place]
            marks = ", ".join("?" * len(first))
            connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", [first, second])
            same = sorted(map(repr, connection.execute(f"SELECT * FROM {table}"))) == before(sound, table)
        assert same or noticed(folder) != [], column


def before(folder: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        return sorted(map(repr, connection.execute(f"SELECT * FROM {table}")))


def remove(connection: sqlite3.Connection, table: str, row: Sequence[Any]) -> None:
    connection.execute(f"DELETE FROM {table} WHERE {matching(connection, table)}", row)


def matching(connection: sqlite3.Connection, table: str) -> str:
    return " AND ".join(f'"{name}" IS ?' for name in names(connection, table))


@pytest.mark.parametrize("table", [*TABLES, *OTHERS])
def test_a_row_that_vanishes(sound: Path, tmp_path: Path, table: str) -> None:
    folder = copy(sound, tmp_path / "c.sonde")
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        remove(connection, table, connection.execute(f"SELECT * FROM {table}").fetchall()[-1])
    assert noticed(folder) != []

"""Every column of every table of the catalog is changed, and `verify` has to notice each change."""

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import TABLES, problems
from damaged import MUTATIONS, mutated, opened, problem_of, seen, sound_collection
from thinned import thinned

from sonde.indexer.errors import SondeError
from sonde.indexer.files import remove_folder

OTHERS = ("checksums", "sqlite_sequence")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = sound_collection(tmp_path_factory.mktemp("sound") / "c.sonde")
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
    if target.exists():
        remove_folder(target)
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
                with closing(sqlite3.connect(":memory:")) as connection:
                    stored = connection.execute("SELECT ?", (new,)).fetchone()[0]
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


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM sqlite_sequence",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "INSERT INTO sqlite_sequence VALUES ('runs', 1)",
    ],
)
def test_a_changed_number_of_the_last_run_is_repaired(sound: Path, tmp_path: Path, damage: str) -> None:
    folder = copy(sound, tmp_path / "c.sonde")
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        ((last,),) = connection.execute("SELECT max(run) FROM runs").fetchall()
        connection.execute(damage)
    assert problems(folder) == ["catalog: the table sqlite_sequence has changed since it was written"]
    with closing(opened(folder)) as collection:
        with pytest.raises(SondeError, match="the table sqlite_sequence has changed"):
            collection.tag("new", where="id LIKE '%1'")
        assert collection.repair() == ["corrected the number of the next run"]
        collection.tag("new", where="id LIKE '%1'")
    assert problems(folder) == []
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        assert connection.execute("SELECT * FROM sqlite_sequence").fetchall() == [("runs", last + 1)]


@pytest.mark.parametrize("kind", [kind for kind in MUTATIONS if kind != "faiss-resealed"])
def test_damaged_collections_are_read_or_refused_in_one_line(sound: Path, tmp_path: Path, kind: str) -> None:
    """The first mutations of `benchmarks/fuzz_collections.py`, but for those that may end the process."""
    with closing(opened(sound)) as collection:
        expected = seen(collection)
    found = {}
    for number in thinned(range(15), 5):
        folder, what = mutated(sound, tmp_path, kind, 15, number)
        if problem := problem_of(folder, None if kind in ("sql", "json") else expected):
            found[number, what] = problem
    assert found == {}

"""`verify` notices every change of every column of the catalog, and nothing that a writer was just replacing."""

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
from fake_encoder import FakeEncoder
from thinned import thinned

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, WriterBusyError
from sonde.indexer.files import remove_folder
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.upkeep import verify as verifying

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


@pytest.mark.long
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


@pytest.mark.parametrize("kind", thinned([kind for kind in MUTATIONS if kind != "faiss-resealed"], 3))
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


ROWS = [{"id": str(number), "text": f"text number {number}"} for number in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    encoder: Any = FakeEncoder()
    index(ROWS, tmp_path / "c.sonde", encoder=encoder).close()
    return tmp_path / "c.sonde"


def opened_by_a_fake(folder: Path) -> Collection:
    return Collection.open(folder, loader=lambda *_, **__: FakeEncoder())  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [1, 3], ids=["once", "at-every-attempt"])
def test_what_a_writer_replaces_meanwhile_is_no_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It reported that the indexes were missing or held too few passages in about every second verification."""
    left, real = [times], verifying._lexical  # pyright: ignore[reportPrivateUsage]

    def overtaken(view: Any, loaded: Any) -> Any:
        if left[0]:
            left[0] -= 1
            beside = opened_by_a_fake(folder)
            beside.delete([str(left[0])])
            beside.compact()
            beside.close()
        return real(view, loaded)

    monkeypatch.setattr(verifying, "_lexical", overtaken)
    assert opened_by_a_fake(folder).verify() == []
    assert left == [0]


def test_damage_is_found_also_where_a_writer_was_killed(folder: Path) -> None:
    (folder / "writer.json").write_text("{}")
    next((folder / "vectors").glob("*.npy")).unlink()
    assert [finding.part for finding in opened_by_a_fake(folder).verify()] == ["vectors"]
    assert not (folder / "writer.json").exists()


def test_damage_beside_a_writer_that_goes_on_is_not_told_from_its_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer_lock(folder):
        assert opened_by_a_fake(folder).verify() == []
        next((folder / "vectors").glob("*.npy")).unlink()
        with pytest.raises(WriterBusyError, match=r"is being written to by .*: wait for it to end, then try again"):
            opened_by_a_fake(folder).verify()


def test_the_work_of_a_long_title_is_linear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of the title was tried, the longest first, for each passage."""
    title, text = " ".join(f"word{number}" for number in range(2_000)), "It was red. " * 100
    encoder: Any = FakeEncoder()
    rows = [{"title": title, "text": text}]
    index(rows, tmp_path / "c.sonde", title="title", text="text", encoder=encoder).close()
    read, real = [0], verifying.digest

    def digest(*parts: str) -> bytes:
        read[0] += sum(map(len, parts))
        return real(*parts)

    monkeypatch.setattr(verifying, "digest", digest)
    assert opened_by_a_fake(tmp_path / "c.sonde").verify() == []
    assert 0 < read[0] < 100 * len(title)

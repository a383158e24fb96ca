"""Folders that are no collection that can be read: one line that says so, and nothing touched."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, contents, problems
from small_reviews import ROWS, folder_of, lines

import sonde as package
from sonde.indexer.errors import SondeError
from sonde.indexer.small_files import LONGEST_LINE, sealed_line, sealed_lines
from sonde.indexer.store import catalog as catalogs
from sonde.indexer.store.catalog import Catalog, connect_catalog

COMMANDS = ("info", "verify", "repair", "compact", "export", ("search", "battery"), ("similar", "1"), ("delete", "1"))


def each_command(sonde: Command, folder: Path, source: Path | None, *words: str) -> None:
    for name in COMMANDS:
        name, *rest = (name,) if isinstance(name, str) else name
        sonde(name, folder, *rest).refused(*words)
    if source:
        sonde("index", source, "--to", folder).failed(*words)


def test_a_newer_format(sonde: Command, reviews: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(reviews / "catalog.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = contents(reviews)
    each_command(sonde, reviews, tmp_path / "reviews.jsonl", "format 99", "upgrade Sonde")
    for derived in ("ann", "lexical"):
        shutil.rmtree(reviews / derived)
    each_command(sonde, reviews, tmp_path / "reviews.jsonl", "format 99", "upgrade Sonde")
    assert contents(reviews) == before


def user_database(folder: Path) -> None:
    folder.mkdir()
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        connection.execute("CREATE TABLE books(title TEXT)")
        connection.execute("INSERT INTO books VALUES ('Moby Dick')")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


FOLDERS: dict[str, Callable[[Path], object]] = {
    "notes": lambda folder: folder_of(folder, notes_txt=b"my notes"),
    "a database of another program": user_database,
    "no database": lambda folder: folder_of(folder, catalog_db=b"this is no database, but it is long enough" * 30),
    "vectors of another program": lambda folder: folder_of(folder) and folder_of(folder / "vectors", mine_npy=b"x"),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_no_collection(sonde: Command, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    FOLDERS[name](folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    each_command(sonde, folder, lines(tmp_path / "s.jsonl", ROWS), "folder is not a Sonde collection")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_part_of_a_collection_names_the_whole(
    sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(Path("c.sonde"), collection_json=b"{}")
    folder_of(Path("d.sonde"), catalog_db=b"")
    for part, what in (("c.sonde/shards/00", "a shard of c.sonde"), ("d.sonde/vectors", "a part of d.sonde")):
        Path(part).mkdir(parents=True)
        sonde("search", part, "late parcel").refused(f"{part} is {what}: use ")
    folder_of(Path("c.sonde/mine"), a_txt=b"x")
    held = "mine is not a Sonde collection: it holds other files, such as a.txt; name a collection, or a new folder"
    sonde("search", "c.sonde/mine", "late parcel").refused(held)
    held = ". is not a Sonde collection: it holds 2 collections; name one, such as c.sonde"
    sonde("search", ".", "late parcel").refused(held)


def test_a_catalog_that_may_not_be_read(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr("sonde.indexer.store.catalog.sqlite3.connect", refused)  # these tests may run as root
    monkeypatch.setattr("sonde.indexer.store.catalog.os.access", lambda *_: False)
    with pytest.raises(
        SondeError, match=r"^cannot open .*catalog\.db \(unable to open .*\): give yourself the right to"
    ):
        package.open(reviews)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The connections that were opened."""
    found: list[sqlite3.Connection] = []
    real: Any = sqlite3.connect

    def connect(*given: Any, **options: Any) -> sqlite3.Connection:
        found.append(real(*given, **options))
        return found[-1]

    monkeypatch.setattr(sqlite3, "connect", connect)
    return found


def is_closed(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def test_a_refused_catalog_is_closed(tmp_path: Path, connected: list[sqlite3.Connection]) -> None:
    folder = folder_of(tmp_path / "c.sonde", catalog_db=b"this is no database, but it is long enough" * 30)
    with pytest.raises(SondeError, match=r"c\.sonde is not a Sonde collection: its catalog\.db is damaged"):
        connect_catalog(folder / "catalog.db")
    assert [is_closed(each) for each in connected] == [True]


def test_a_catalog_on_a_read_only_disk_gets_the_same_settings(
    reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connected: list[sqlite3.Connection]
) -> None:
    path = Path(shutil.copy(reviews / "catalog.db", tmp_path))
    real, failures = catalogs._configure, [True]  # pyright: ignore[reportPrivateUsage]

    def configure(*given: Any) -> None:
        if failures and failures.pop():
            raise sqlite3.OperationalError("unable to open database file")
        real(*given)

    monkeypatch.setattr(catalogs, "_configure", configure)
    with closing(connect_catalog(path)) as connection:
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("trusted_schema", "cell_size_check")]
        assert (found, [is_closed(each) for each in connected]) == ([0, 1], [True, False])


def test_a_folder_that_does_not_exist(sonde: Command, unchanged: Path, tmp_path: Path) -> None:
    each_command(sonde, tmp_path / "review.sonde", None, "there is no collection at", "reviews.sonde")
    assert not (tmp_path / "review.sonde").exists()


def test_a_file_as_collection(sonde: Command, tmp_path: Path) -> None:
    source = lines(tmp_path / "s.jsonl", ROWS)
    each_command(sonde, source, None, "s.jsonl is a file, not a collection: index it first, into", "s.sonde")
    sonde("index", source, "--to", source).failed("s.jsonl is a file", "s.sonde", code=2)
    assert source.read_text().count("\n") == 3


def test_a_collection_whose_first_run_was_killed(sonde: Command, tmp_path: Path) -> None:
    source, folder = lines(tmp_path / "s.jsonl", ROWS), tmp_path / "c.sonde"
    from sonde.indexer.store.catalog import Catalog

    (folder / "vectors").mkdir(parents=True)
    Catalog.create(folder / "catalog.db").close()
    for name in (
        "info",
        "export",
        ("search", "battery"),
        ("similar", "1"),
        ("delete", "1"),
        "verify",
        "repair",
    ):
        name, *rest = (name,) if isinstance(name, str) else name
        sonde(name, folder, *rest).refused("c.sonde is unfinished")
    assert sonde("index", source, "--to", folder).code == 0
    assert problems(folder) == []


@pytest.mark.parametrize("epoch", ['"../../victim"', "-1", "1.5", "null", "true", "[1]"])
def test_an_epoch_that_is_no_number_leads_nowhere(sonde: Command, reviews: Path, epoch: str) -> None:
    victim = reviews.parent / "victim"
    victim.mkdir()
    (victim / "letter.txt").write_text("dear")
    with closing(sqlite3.connect(reviews / "catalog.db")) as catalog, catalog:
        catalog.execute("UPDATE properties SET value = ? WHERE name = 'epoch'", (epoch,))
    source = lines(reviews.parent / "more.jsonl", [{"id": "new", "text": "a new review"}])
    each_command(sonde, reviews, source, "reviews.sonde is damaged: its epoch is ", "restore it from a backup")
    assert (victim / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize("part", ["lexical", "ann", "vectors", "writer.json", "writer.lock", "catalog.db-wal", "own"])
def test_links_inside_a_collection_are_refused_by_name(sonde: Command, reviews: Path, part: str) -> None:
    victim = reviews.parent / "victim"
    victim.mkdir()
    (victim / "letter.txt").write_text("dear")
    path = reviews / part
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(victim if part in ("lexical", "ann", "vectors") else victim / "letter.txt")
    source = lines(reviews.parent / "more.jsonl", [{"id": "new", "text": "a new review"}])
    each_command(sonde, reviews, source, f"reviews.sonde/{part} is a link: a collection holds only its own files")
    assert [path.name for path in victim.iterdir()] == ["letter.txt"]
    assert (victim / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize("absolute", [True, False])
def test_a_lexical_index_that_lists_files_of_others_deletes_none(sonde: Command, reviews: Path, absolute: bool) -> None:
    victim = reviews.parent / "victim.txt"
    victim.write_text("dear")
    (managed,) = reviews.rglob(".managed.json")
    listed = json.loads(managed.read_text())
    managed.write_text(json.dumps([*listed, str(victim) if absolute else "../../../victim.txt"]))
    assert "lexical: the lexical index is missing or damaged" in problems(reviews)
    source = lines(reviews.parent / "more.jsonl", [{"id": "new", "text": "a new review"}])
    assert sonde("delete", reviews, "1").code == 0
    assert sonde("index", source, "--to", reviews).code == 0
    assert sonde("compact", reviews).code == 0
    assert victim.read_text() == "dear"
    assert problems(reviews) == []
    assert '"id": "new"' in sonde("search", reviews, "new", "--mode", "lexical", "--json").out


SCHEMAS = {
    "a trigger": ("CREATE TRIGGER t AFTER UPDATE ON documents BEGIN DELETE FROM documents; END", "holds 't'"),
    "a view": ("CREATE VIEW v AS SELECT 1", "holds 'v'"),
    "a table": ("CREATE TABLE other(x)", "holds 'other'"),
    "no index": ("DROP INDEX passages_doc", "has no passages_doc"),
    "another table": ("ALTER TABLE documents ADD COLUMN x", "defines documents in another way"),
    "no runs": ("DROP TABLE runs", "has no runs"),
    "a column": ("ALTER TABLE metadata ADD COLUMN x", "defines metadata in another way"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_catalog_with_other_tables_is_refused(sonde: Command, reviews: Path, name: str) -> None:
    statement, words = SCHEMAS[name]
    with closing(sqlite3.connect(reviews / "catalog.db")) as connection:
        connection.execute(statement)
    source = lines(reviews.parent / "more.jsonl", [{"id": "new", "text": "a new review"}])
    each_command(
        sonde, reviews, source, f"is not a Sonde collection: its catalog.db {words}, which no version of Sonde"
    )


VALUES = {
    "epoch {": ("UPDATE properties SET value = '{' WHERE name = 'epoch'", "in table properties, value is not JSON"),
    "a model that is a list": ("UPDATE properties SET value = '[1]' WHERE name = 'model'", "its model is '[1]'"),
    "a negative generation": ("UPDATE properties SET value = '-1' WHERE name = 'generation'", "its generation is '-1'"),
    "a segment's number": ("UPDATE segments SET number = -5", "number is not an integer from 1 to 2,147,483,648"),
    "a segment's start": ("UPDATE segments SET start = -1", "in table segments, start is not an integer from 0"),
    "a segment's count": ("UPDATE segments SET count = 'many'", "in table segments, count is not an integer from 1"),
    "a segment's digest": ("UPDATE segments SET sha256 = '../x'", "in table segments, sha256 is not a SHA-256 digest"),
    "a field's column": ("UPDATE fields SET \"column\" = 'c0 FROM x'", "in table fields, column is not a column"),
    "a field's type": ("UPDATE fields SET type = 'blob'", "in table fields, type is not a type"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_catalog_with_other_values_is_refused(sonde: Command, reviews: Path, name: str) -> None:
    statement, words = VALUES[name]
    with closing(sqlite3.connect(reviews / "catalog.db")) as connection, connection:
        connection.execute(statement)
    source = lines(reviews.parent / "more.jsonl", [{"id": "new", "text": "a new review"}])
    each_command(sonde, reviews, source, "reviews.sonde is damaged: ", words, "restore it from a backup")


@pytest.mark.parametrize("column", ["title", "text", "length"])
def test_a_document_of_another_type_is_one_line(sonde: Command, reviews: Path, column: str) -> None:
    with closing(sqlite3.connect(reviews / "catalog.db")) as connection, connection:
        connection.execute(f"UPDATE documents SET {column} = x'ff00' WHERE key = '1'")
    assert sonde("verify", reviews).code == 1
    assert f"in table documents, {column} is not " in sonde("verify", reviews).out
    sonde("repair", reviews).failed(f"in table documents, {column} is not ", "restore")
    for words in (("export",), ("search", "battery"), ("topics",), ("similar", "1"), ("duplicates",)):
        assert "Traceback" not in sonde(words[0], reviews, *words[1:]).err


def test_a_collection_that_was_deleted_while_it_is_open_is_said_to_be_gone(reviews: Path) -> None:
    opened = package.open(reviews)
    shutil.rmtree(reviews)
    with pytest.raises(SondeError, match=r"there is no collection at .*: it was deleted or moved$"):
        Catalog.open(reviews / "catalog.db")
    opened.close()


@pytest.mark.parametrize("name", ["lexical/*/state.json", "lexical/*/meta.json", "lexical/*/.managed.json"])
@pytest.mark.parametrize("how", ["deep", "huge"])
def test_a_small_file_that_is_deep_or_huge_is_not_read(reviews: Path, name: str, how: str) -> None:
    """A huge one takes no space where nothing is written in it, and filled the memory of whoever read it."""
    [path] = reviews.glob(name)
    if how == "deep":
        path.write_text("[" * 100_000)
    else:
        os.truncate(path, 2 * 10**9)
    assert package.open(reviews).search("battery", mode="dense")
    [problem] = problems(reviews)
    assert problem.startswith("lexical: the lexical index is missing or damaged")


def test_judgements_are_read_line_by_line(reviews: Path) -> None:
    path = reviews / "judgements.jsonl"
    path.write_bytes(sealed_line({"query": "battery", "id": "1", "grade": 1, "at": "now", "content": "x"}))
    os.truncate(path, 50 * LONGEST_LINE)
    lines = list(sealed_lines(path))
    assert (lines[0] and lines[0]["query"], len(lines)) == ("battery", 51)
    assert lines[1:] == [None] * 50


def test_two_lines_that_became_one_valid_object_are_damaged(reviews: Path) -> None:
    """The bytes that were lost began in the first line's last value and ended in the checksum of the second."""
    path = reviews / "judgements.jsonl"
    first, second = (
        sealed_line({"query": "battery", "id": id, "grade": 1, "at": "now", "content": "A4268F96"}) for id in "12"
    )
    checksum = second.rindex(b'"', 0, -3) + 5
    path.write_bytes(first[: first.index(b"F96")] + second[checksum:])
    assert json.loads(path.read_text())["id"] == "1"
    assert list(sealed_lines(path)) == [None]
    assert problems(reviews) == ["judgements: 1 judgement damaged or cut off, and not counted"]

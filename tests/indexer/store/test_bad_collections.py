"""Folders that are no collection that can be read: one line that says so, and nothing touched."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from command_line import Command, contents, problems
from small_reviews import ROWS, folder_of, lines

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
    each_command(sonde, folder, lines(tmp_path / "s.jsonl", ROWS), "folder is no Sonde collection")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_folder_that_does_not_exist(sonde: Command, unchanged: Path, tmp_path: Path) -> None:
    each_command(sonde, tmp_path / "review.sonde", None, "there is no collection at", "reviews.sonde")
    assert not (tmp_path / "review.sonde").exists()


def test_a_file_as_collection(sonde: Command, tmp_path: Path) -> None:
    source = lines(tmp_path / "s.jsonl", ROWS)
    each_command(sonde, source, None, "is no Sonde collection")
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
        sonde(name, folder, *rest).refused("c.sonde is empty")
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
    each_command(sonde, reviews, source, "the collection is damaged: its epoch is ", "not a whole number from 1")
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

"""A file that is cut or written over while it is read: said, and with `sync` nothing is deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.readers import read_source
from sonde.indexer.store.collection import StoredCollection

ROWS = 20_000


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("id,text\n" + "".join(f"{number},a text of number {number}\n" for number in range(ROWS)))
    return path


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 2 // 3)


def overwritten(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"noise " * (size // 6 + 100))


@pytest.mark.parametrize("change", [cut, overwritten])
def test_a_change_is_an_error(table: Path, change: Callable[[Path], None]) -> None:
    items = iter(read_source(table))
    next(items)
    change(table)
    with pytest.raises(SondeError, match=r"t\.csv changed while it was being read, so parts of it may be missing: run"):
        list(items)


def appended(path: Path) -> None:
    with path.open("a") as file:
        file.write(f"{ROWS},another\n")


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("id,text\n1,one\n")
    other.replace(path)


@pytest.mark.parametrize("change", [appended, replaced, Path.unlink])
def test_what_was_read_whole_is_taken(table: Path, change: Callable[[Path], None]) -> None:
    items = iter(read_source(table))
    next(items)
    change(table)
    assert len(list(items)) >= ROWS - 1


def test_sync_deletes_nothing(table: Path, tmp_path: Path) -> None:
    folder, encoder = tmp_path / "c.sonde", FakeEncoder()
    index_documents(iter(read_source(table)), folder, encoder=encoder)  # type: ignore[arg-type]
    items = iter(read_source(table))
    first = next(items)
    cut(table)

    def documents():
        yield first
        yield from items

    with pytest.raises(SondeError, match="changed while it was being read"):
        index_documents(documents(), folder, settings=BuildSettings(sync=True), encoder=encoder)  # type: ignore[arg-type]
    with StoredCollection.open(folder).view() as view:
        assert view.catalog.counts()[0] == ROWS


def test_a_folder_that_is_moved_away_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"

    def documents():
        yield from read_source([f"text {number}" for number in range(600)])
        folder.rename(tmp_path / "d.sonde")
        yield from read_source([f"other {number}" for number in range(600)])

    with pytest.raises(SondeError, match=r"c\.sonde was moved or removed while it was being written: put it back"):
        index_documents(documents(), folder, settings=BuildSettings(batch=100), encoder=FakeEncoder())  # type: ignore[arg-type]

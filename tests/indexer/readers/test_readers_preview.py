"""A look at a source before it is indexed, a collection at a glance, and removing one."""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.readers import Columns, Preview, ReadOptions, preview, read_source
from sonde.indexer.store.lock import being_written, writer_lock
from sonde.indexer.upkeep.delete import remove_collection
from sonde.indexer.upkeep.info import last_change, quick_look

OPTIONS = ReadOptions()


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def columns_of(found: Preview) -> Columns:
    assert found.columns is not None
    return found.columns


def csv_of(path: Path, count: int) -> Path:
    return written(path, "id,title,text,stars\n" + "".join(f"{n},t{n},some words {n},{n % 5}\n" for n in range(count)))


def test_a_small_table_is_seen_whole(tmp_path):
    found = preview([csv_of(tmp_path / "a.csv", 30)], OPTIONS)
    assert found.columns == read_source(tmp_path / "a.csv").columns
    assert columns_of(found).text == ("text",)
    assert found.types == {"id": "integer", "title": "text", "text": "text", "stars": "integer"}
    assert (found.count, found.exact, len(found.rows)) == (30, True, 20)
    assert found.rows[7] == {"id": "7", "title": "t7", "text": "some words 7", "stars": "2"}


def test_the_rows_of_a_long_one_are_estimated(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["sonde.indexer.readers.read"], "COUNTED_BYTES", 1_000_000)
    found = preview([csv_of(tmp_path / "a.csv", 100_000)], OPTIONS)
    assert not found.exact
    assert 85_000 < found.count < 130_000
    found = preview([csv_of(tmp_path / "a.csv", 20_000)], OPTIONS)
    assert (found.count, found.exact) == (20_000, True)


def test_the_rows_of_parquet_and_the_files_of_a_folder_are_known(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["hello"] * 5_000}), tmp_path / "a.parquet")
    found = preview([tmp_path / "a.parquet"], OPTIONS)
    assert (found.count, found.exact) == (5_000, True)
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(50):
        written(folder / f"{number:02}.md", f"# Note {number}\n\ntext")
    found = preview([folder], OPTIONS)
    assert (found.count, found.exact, found.fixed, len(found.rows)) == (50, True, True, 20)
    assert found.rows[3]["title"] == "Note 3"
    assert columns_of(found).id == "path"


def test_without_a_text_it_says_so_and_names_the_columns(tmp_path):
    found = preview([written(tmp_path / "a.csv", "a,b\n1,2\n3,4\n")], OPTIONS)
    assert found.columns is None
    assert found.problem == "no text column among a (integer), b (integer): choose one with text"
    assert found.types == {"a": "integer", "b": "integer"}
    chosen = preview([tmp_path / "a.csv"], ReadOptions(text=("b",)))
    assert columns_of(chosen).text == ("b",)
    with pytest.raises(UsageError, match="the text column 'c' does not exist; there are a"):
        preview([tmp_path / "a.csv"], ReadOptions(text=("c",)))


def test_broken_rows_are_shown_and_a_broken_file_is_refused(tmp_path):
    lines = [json.dumps({"text": f"words {n}"}) for n in range(10)]
    found = preview([written(tmp_path / "a.jsonl", "\n".join([*lines, "{broken", "[1]"]))], OPTIONS)
    assert [row.origin for row in found.skipped] == ["line 11", "line 12"]
    with pytest.raises(SondeError, match=r"3 of the first 3 rows cannot be read; the first is line 1"):
        preview([written(tmp_path / "b.jsonl", "{a\n{b\n{c\n")], ReadOptions(format="jsonl"))
    with pytest.raises(SondeError, match="no rows: give a file with content"):
        preview([written(tmp_path / "c.csv", "id,text\n")], OPTIONS)
    with pytest.raises(SondeError, match="cannot be decompressed"):
        (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"text\n" + os.urandom(9999).hex().encode())[:-2000])
        preview([tmp_path / "d.csv.gz"], OPTIONS)


def test_several_sources_have_all_their_columns(tmp_path):
    one, other = (
        written(tmp_path / "a.csv", "text,x\nhello,1\n"),
        written(tmp_path / "b.jsonl", '{"text": "b", "y": 1.5}\n'),
    )
    found = preview([one, other], OPTIONS)
    assert found.types == {"text": "text", "x": "integer", "y": "real"}
    assert columns_of(found).metadata == {"x": "integer", "y": "real"}
    assert found.count == 2


def test_columns_that_are_left_out_do_not_become_metadata(tmp_path):
    source = csv_of(tmp_path / "a.csv", 3)
    found = preview([source], ReadOptions(leave_out=("stars",)))
    assert columns_of(found).metadata == {}
    documents = list(read_source(source, options=ReadOptions(leave_out=("stars",))))
    assert [dict(document.metadata) for document in documents if isinstance(document, Document)] == [{}] * 3
    with pytest.raises(UsageError, match=r"the left out column 'starz' does not exist \(did you mean 'stars'\?\)"):
        read_source(source, options=ReadOptions(leave_out=("starz",)))


@pytest.fixture
def made(tmp_path: Path) -> Collection:
    return index(["apples", "bananas"], tmp_path / "fruit.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]


def test_a_glance_agrees_with_info(made):
    found, info = quick_look(made.path), made.info()
    assert (found.documents, found.passages, found.model) == (info.documents, info.passages, info.model)
    assert found.recall is None
    made.close()
    assert quick_look(made.path).bytes >= sum(made.info().bytes.values())
    assert found.problem == ""


def test_the_last_change_is_a_writers_not_a_readers(made):
    made.close()
    for name in ("catalog.db", "catalog.db-wal"):
        if (made.path / name).exists():
            os.utime(made.path / name, (1_000, 1_000))
    quick_look(made.path)
    made.search("apples")
    assert last_change(made.path) == 1_000
    made.delete(where="title = 'none'")
    made.delete([made.search("apples", k=1)[0].id])
    assert last_change(made.path) > 1_000
    assert last_change(made.path / "nothing") == 0


def test_a_damaged_one_has_its_problem(made, tmp_path):
    made.close()
    for path in made.path.glob("catalog.db*"):
        path.unlink()
    (made.path / "catalog.db").write_bytes(b"no database at all" * 100)
    assert "its catalog.db is damaged" in quick_look(made.path).problem
    assert "is not a Sonde collection" in quick_look(tmp_path).problem


def test_removing_a_collection(made, tmp_path):
    with (
        writer_lock(made.path),
        pytest.raises(WriterBusyError, match="written to by another thread of this program"),
    ):
        assert being_written(made.path)
        remove_collection(made.path)
    assert not being_written(made.path)
    (made.path / "writer.json").write_text('{"pid": 999999999}')  # left by one that was killed
    assert not being_written(made.path)
    assert len(made) == 2
    remove_collection(made.path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SondeError, match="there is no collection at"):
        remove_collection(made.path)
    (tmp_path / "other").mkdir()
    with pytest.raises(SondeError, match="other is not a Sonde collection: it is empty; name"):
        remove_collection(tmp_path / "other")
    assert (tmp_path / "other").is_dir()


@pytest.mark.parametrize("catalog", [None, b""])
def test_a_collection_whose_first_batch_is_under_way_says_so(tmp_path: Path, catalog: bytes | None) -> None:
    (tmp_path / "writer.json").write_text(json.dumps({"pid": os.getppid(), "since": "2026-11-21T10:00:00+00:00"}))
    if catalog is not None:
        (tmp_path / "catalog.db").write_bytes(catalog)
    with pytest.raises(
        WriterBusyError, match=rf"is being written to by process {os.getppid()} since .*nothing is commit"
    ):
        Collection.open(tmp_path)


def test_rows_that_cannot_be_read_are_counted_where_all_are_looked_at(tmp_path, monkeypatch):
    def found(rows: int, wrong: set[int]) -> tuple[int, int, int | None]:
        lines = [f"{n},some words{',x' if n in wrong else ''}\n" for n in range(rows)]
        seen = preview([written(tmp_path / "a.csv", "id,text\n" + "".join(lines))], OPTIONS)
        return seen.count, len(seen.skipped), seen.unreadable

    assert found(30, set()) == (30, 0, 0)
    assert found(30, {3, 29}) == (30, 2, 2)
    assert found(1_200, {3, 1_100}) == (1_200, 1, 2)
    other = csv_of(tmp_path / "b.csv", 10)
    both = preview([tmp_path / "a.csv", other], OPTIONS)
    assert (both.count, both.unreadable) == (1_210, 2)
    monkeypatch.setattr(sys.modules["sonde.indexer.readers.read"], "COUNTED_BYTES", 1_000)
    assert found(1_300, {3})[1:] == (1, None)
    assert preview([tmp_path / "a.csv", other], OPTIONS).unreadable is None

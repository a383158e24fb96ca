"""Sources, options of `index` and models that are wrong: one line, exit code 1 or 2, and the collection as it was."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import Command, command, problems
from fake_encoder import FakeEncoder
from small_reviews import ROWS, folder_of, lines, written

from sonde.indexer.document import Document
from sonde.indexer.errors import UsageError
from sonde.indexer.ingest.source import index_source


def truncated_parquet(path: Path) -> Path:
    pq.write_table(pa.table({"text": ["one text", "another text"] * 500}), path)
    path.write_bytes(path.read_bytes()[:400])
    return path


BLANK = b'id,text\n1,\n2,"   "\n3,\n'
BROKEN_LINE = b"".join(b'{"text": "text %d"}\n' % n if n != 4711 else b'{"text": "text\n' for n in range(1, 5001))
SOURCES: dict[str, tuple[Callable[[Path], Path], int, tuple[str, ...]]] = {
    "empty file": (lambda to: written(to / "e.csv", b""), 1, ("e.csv", "empty")),
    "empty JSONL": (lambda to: written(to / "e.jsonl", b"\n\n"), 1, ("e.jsonl",)),
    "empty gzip": (lambda to: written(to / "e.csv.gz", gzip.compress(b"")), 1, ("e.csv.gz",)),
    "header only": (lambda to: written(to / "h.csv", b"id,text,stars\n"), 1, ("h.csv",)),
    "no text column": (lambda to: written(to / "n.csv", b"a,b\n1,2\n3,4\n"), 2, ("a", "b", "--text")),
    "only blank texts": (lambda to: written(to / "b.csv", BLANK), 1, ("nothing to index", "3 skipped")),
    "truncated Parquet": (lambda to: truncated_parquet(to / "t.parquet"), 1, ("t.parquet",)),
    "not Parquet": (lambda to: written(to / "p.parquet", b"no parquet at all"), 1, ("p.parquet",)),
    "truncated gzip": (
        lambda to: written(to / "g.csv.gz", gzip.compress(b"text\n" + os.urandom(9000).hex().encode())[:500]),
        1,
        ("g.csv.gz",),
    ),
    "folder without files": (lambda to: folder_of(to / "d"), 1, ("/d",)),
    "folder of other files": (lambda to: folder_of(to / "d", a_png=b"\x89PNG", b_exe=b"MZ\0"), 1, ("/d",)),
    "missing file": (lambda to: to / "reviws.jsonl", 1, ("reviws.jsonl", "does not exist", "reviews.jsonl")),
    "missing column": (lambda to: lines(to / "c.jsonl", [{"a": "x y z"}]), 2, ("'body'", "a")),
    "declared encoding": (
        lambda to: written(to / "u.csv", b"text\ncaf\xe9 cr\xe8me\n"),
        2,
        ("1 of the first 1 row is not valid utf-8", "leave out --encoding"),
    ),
}
OPTIONS = {"missing column": ("--text", "body"), "declared encoding": ("--encoding", "utf-8")}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_cannot_be_indexed(sonde: Command, unchanged: Path, tmp_path: Path, name: str) -> None:
    make, code, words = SOURCES[name]
    source = make(tmp_path)
    fresh = tmp_path / "new.sonde"
    ran = sonde("index", source, "--to", fresh, *OPTIONS.get(name, ()))
    ran.failed(*words, code=code)
    assert not fresh.exists()
    for sync in ((), ("--sync",)):
        ran = sonde("index", source, "--to", unchanged, *OPTIONS.get(name, ()), *sync)
        ran.failed(*words, code=code)


def test_blank_texts_are_skipped_and_counted(sonde: Command, tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "one"}, {"id": 2, "text": None}, {"id": 3, "text": " \n\t "}, {"id": 4, "text": "two"}]
    ran = sonde("index", lines(tmp_path / "s.jsonl", rows), "--to", tmp_path / "c.sonde", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["added"], report["skipped"]) == (0, 2, 2)
    skipped = [json.loads(line) for line in Path(report["skipped_file"]).read_text().splitlines()]
    assert [row["origin"] for row in skipped] == ["line 2", "line 3"]
    assert all("empty" in row["reason"] for row in skipped)
    assert problems(tmp_path / "c.sonde") == []


def test_of_duplicate_ids_the_last_is_kept_and_the_others_counted(sonde: Command, tmp_path: Path) -> None:
    rows = [{"id": str(n % 3), "text": f"version {n} of the text"} for n in range(7)]
    words = ("index", lines(tmp_path / "s.jsonl", rows), "--to", tmp_path / "c.sonde", "--id", "id")
    sonde(*words).refused(
        "the id column 'id' has repeated values, so 4 rows of 7 would replace another row with the same id; "
        "the first repeated ids are '0', '1', '2': ", "--keep last", code=2,
    )  # fmt: skip
    assert not (tmp_path / "c.sonde").exists()
    ran = sonde(*words, "--keep", "last")
    assert ran.code == 0
    assert "3 added, 4 with a repeated id (the last one was kept)" in ran.out
    ran = sonde("export", tmp_path / "c.sonde")
    kept = {row["id"]: row["text"] for row in map(json.loads, ran.out.splitlines())}
    assert kept == {"0": "version 6 of the text", "1": "version 4 of the text", "2": "version 5 of the text"}


def test_documents_with_repeated_ids_are_refused_without_the_word_column(tmp_path: Path) -> None:
    given = [Document("one", key="3"), Document("two", key="3")]
    with pytest.raises(UsageError, match="repeated ids") as caught:
        index_source(given, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert str(caught.value) == (
        "the list: documents have repeated ids, so 1 row of 2 would replace another row with the same id; the first "
        "repeated ids are '3': give each document an id of its own, or keep the last row of each id with keep=\"last\""
    )


def test_a_row_with_a_nul_byte_is_skipped_or_read_whole(sonde: Command, tmp_path: Path) -> None:
    rows = [
        {"id": "1", "text": "good"},
        {"id": "2", "text": "a\0b"},
        {"id": "3\0", "text": "x"},
        {"id": "4", "text": "y"},
    ]
    ran = sonde("index", lines(tmp_path / "s.jsonl", rows), "--to", tmp_path / "c.sonde", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["added"] + report["skipped"]) == (0, 4)
    assert {row["origin"] for row in report["skipped_rows"]} >= {"line 2"}
    assert all("NUL" in row["reason"] for row in report["skipped_rows"])
    exported = [json.loads(line)["id"] for line in sonde("export", tmp_path / "c.sonde").out.splitlines()]
    assert exported[0] == "1" and exported[-1] == "4"
    assert problems(tmp_path / "c.sonde") == []


def test_broken_json_on_line_4711(sonde: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "s.jsonl", BROKEN_LINE)
    ran = sonde("index", source, "--to", tmp_path / "c.sonde", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["added"], report["skipped"]) == (0, 4999, 1)
    [row] = report["skipped_rows"]
    assert "4711" in row["origin"] and "JSON" in row["reason"]


def test_broken_utf8_is_skipped_where_the_encoding_is_sure(sonde: Command, tmp_path: Path) -> None:
    good = b"".join(b'{"text": "caf\xc3\xa9 %d"}\n' % n for n in range(20))
    source = written(tmp_path / "s.jsonl", good + b'{"text": "cr\xe8me br\xfbl\xe9e"}\n')
    ran = sonde("index", source, "--to", tmp_path / "c.sonde", "--encoding", "utf-8", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["added"], report["skipped"]) == (0, 20, 1)
    assert "UTF-8" in report["skipped_rows"][0]["reason"]


@pytest.mark.long
def test_a_cell_of_50_megabytes(sonde: Command, tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "short"}, {"id": "2", "text": "word " * 10_000_000}, {"id": "3", "text": "also short"}]
    ran = sonde("index", lines(tmp_path / "s.jsonl", rows), "--to", tmp_path / "c.sonde", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["added"], report["skipped"]) == (0, 2, 1)
    assert "50,000,000" in report["skipped_rows"][0]["reason"]


def test_another_model_is_refused(sonde: Command, unchanged: Path, tmp_path: Path) -> None:
    source = tmp_path / "reviews.jsonl"
    sonde("index", source, "--to", unchanged, "--model", "static").failed("built with model 'fake'", "'static'", code=2)
    sonde("index", source, "--to", unchanged, "--truncate-dim", 8).failed("truncate_dim", "8", code=2)
    sonde("index", source, "--to", unchanged, "--dtype", "int8").failed("dtype", "float32", "int8", code=2)


def test_a_model_that_cannot_be_had(
    capsys: pytest.CaptureFixture[str], unchanged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    sonde = command(capsys, monkeypatch)
    sonde("search", unchanged, "battery").refused("fake", "--model")


@pytest.mark.parametrize("name", ["all-minilm-l6-v3", "statc", "./no/such/folder", ""])
def test_a_mistyped_model(sonde: Command, reviews: Path, tmp_path: Path, name: str) -> None:
    ran = sonde("index", tmp_path / "reviews.jsonl", "--to", tmp_path / "new.sonde", "--model", name)
    ran.failed("model", code=2)
    assert not (tmp_path / "new.sonde").exists()


def test_an_unknown_device(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = lines(tmp_path / "s.jsonl", ROWS)
    ran = command(capsys, monkeypatch)("index", source, "--to", tmp_path / "new.sonde", "--device", "gpu")
    ran.failed("unknown device 'gpu'", "cpu", code=2)
    assert not (tmp_path / "new.sonde").exists()

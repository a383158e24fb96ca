"""Bad input: one line that says what is wrong, exit code 1 or 2, and the collection as it was."""

import gc
import gzip
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import Command, command, contents, inject, problems
from fake_encoder import FakeEncoder

RUNNER = Path(__file__).parent / "killed_run.py"
ROWS = [
    {"id": "1", "text": "The battery died after a week.", "stars": 1},
    {"id": "2", "text": "Great phone, lasts for days.", "stars": 5},
    {"id": "3", "text": "The screen broke on the first day.", "stars": 2},
]


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    encoder = FakeEncoder()
    inject(monkeypatch, encoder)
    return encoder


@pytest.fixture
def sonde(encoder: FakeEncoder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(capsys, monkeypatch)


def lines(path: Path, rows: list[dict[str, object]] | list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def reviews(sonde: Command, tmp_path: Path) -> Path:
    """A small collection."""
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    assert sonde("index", source, "--to", tmp_path / "reviews.sonde").code == 0
    return tmp_path / "reviews.sonde"


@pytest.fixture
def unchanged(reviews: Path) -> Iterator[Path]:
    """The collection, which must be the same when the test ends."""
    before = contents(reviews)
    yield reviews
    assert contents(reviews) == before
    assert problems(reviews) == []
    assert list(reviews.rglob("*.tmp")) == []


def truncated_parquet(path: Path) -> Path:
    pq.write_table(pa.table({"text": ["one text", "another text"] * 500}), path)
    path.write_bytes(path.read_bytes()[:400])
    return path


def folder_of(path: Path, **files: bytes) -> Path:
    path.mkdir()
    for name, content in files.items():
        (path / name.replace("_", ".")).write_bytes(content)
    return path


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
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
        1,
        ("nothing to index", "byte 0xe9"),
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
    ran = sonde("index", lines(tmp_path / "s.jsonl", rows), "--to", tmp_path / "c.sonde", "--id", "id")
    assert ran.code == 0
    assert "3 added, 4 with an id that came again (the last one was kept)" in ran.out
    ran = sonde("export", tmp_path / "c.sonde")
    kept = {row["id"]: row["text"] for row in map(json.loads, ran.out.splitlines())}
    assert kept == {"0": "version 6 of the text", "1": "version 4 of the text", "2": "version 5 of the text"}


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
    source = written(
        tmp_path / "s.jsonl", b'{"text": "caf\xc3\xa9"}\n{"text": "cr\xe8me br\xfbl\xe9e"}\n{"text": "th\xc3\xa9"}\n'
    )
    ran = sonde("index", source, "--to", tmp_path / "c.sonde", "--encoding", "utf-8", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["added"], report["skipped"]) == (0, 2, 1)
    assert "UTF-8" in report["skipped_rows"][0]["reason"]


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
    from sonde.indexer.catalog import Catalog

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


MISTAKES: dict[str, tuple[tuple[object, ...], int, tuple[str, ...]]] = {
    "k of 0": (("search", "battery", "-k", 0), 2, ("k is 0",)),
    "k below 0": (("search", "battery", "-k", -3), 2, ("k is -3",)),
    "k of words": (("search", "battery", "-k", "ten"), 2, ("-k",)),
    "offset below 0": (("search", "battery", "--offset", -1), 2, ("offset is -1",)),
    "empty query": (("search", ""), 2, ("query is empty",)),
    "blank query": (("search", " \t "), 2, ("query is empty",)),
    "query of broken bytes": (("search", "caf\udce9"), 2, ("UTF-8",)),
    "no query": (("search",), 2, ("give a query", "--queries")),
    "query twice": (("search", "battery", "--queries", "q.jsonl"), 2, ("give a query",)),
    "run without queries": (("search", "battery", "--run", "r.trec"), 2, ("--queries",)),
    "unknown mode": (("search", "battery", "--mode", "fuzzy"), 2, ("'fuzzy'", "hybrid", "dense", "lexical")),
    "unknown fusion": (("search", "battery", "--fusion", "max"), 2, ("'max'", "convex", "rrf")),
    "weight above 1": (("search", "battery", "--weight", 1.5), 2, ("weight is 1.5",)),
    "weight that is no number": (("search", "battery", "--weight", "nan"), 2, ("weight is nan",)),
    "unknown column": (("search", "battery", "--where", "star > 2"), 2, ("star", "stars")),
    "unknown operator": (("search", "battery", "--where", "stars @> 2"), 2, ()),
    "broken filter": (("search", "battery", "--where", "stars >"), 2, ("stars >",)),
    "filter of broken bytes": (("search", "battery", "--where", "title = 'caf\udce9'"), 2, ("UTF-8",)),
    "injection": (("search", "battery", "--where", "1=1; DROP TABLE documents"), 2, ()),
    "unknown option": (("search", "battery", "--fuzzy"), 2, ("--fuzzy",)),
    "unknown id": (("similar", "4711"), 1, ("'4711'",)),
    "id of broken bytes": (("similar", "caf\udce9"), 1, ("no document with the id",)),
    "similar to nothing": (("similar",), 2, ("id", "--text")),
    "similar to an empty text": (("similar", "--text", " "), 2, ("empty",)),
    "similar, k of 0": (("similar", "1", "-k", 0), 2, ("k is 0",)),
    "delete nothing": (("delete",), 2, ("ids", "--where")),
    "delete an unknown id": (("delete", "1", "4711", "4712"), 1, ("'4711'", "1 more", "nothing was deleted")),
    "delete broken bytes": (("delete", "caf\udce9"), 1, ("no document with the id",)),
    "delete by a wrong filter": (("delete", "--where", "colour = 'red'"), 2, ("colour", "stars")),
    "export to an unknown format": (("export", "--to", "r.docx"), 2, (".parquet", ".csv", ".jsonl")),
    "export to a missing folder": (("export", "--to", "no/such/r.csv"), 1, ("no/such",)),
    "missing queries": (("search", "--queries", "no.jsonl"), 1, ("no.jsonl",)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake(sonde: Command, unchanged: Path, name: str) -> None:
    (first, *rest), code, words = MISTAKES[name]
    sonde(first, unchanged, *rest).refused(*words, code=code)


def test_a_filter_on_an_unknown_column_names_those_that_exist(sonde: Command, unchanged: Path) -> None:
    sonde("search", unchanged, "x", "--where", "price > 2").refused("price", "stars", "title", "length", code=2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("holds no query",)),
        (b'{"_id": "1", "text": "battery"}\n{"_id": "2"}\n', ("line 2",)),
        (b'{"_id": "1", "text": "battery"}\nnot json\n', ("line 2",)),
        (b"[1, 2]\n", ("line 1",)),
        (b'{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}\n', ("'1'", "more than once")),
        (b'{"_id": "1", "text": "caf\xe9"}\n', ("q.jsonl",)),
        (b'{"_id": "1", "text": "a"}\n{"_id": "2", "text": " "}\n', ("query 2", "empty")),
        (b'{"_id": "1", "text": null}\n', ("line 1",)),
    ],
)
def test_broken_queries(
    sonde: Command, unchanged: Path, tmp_path: Path, content: bytes, words: tuple[str, ...]
) -> None:
    queries = written(tmp_path / "q.jsonl", content)
    ran = sonde("search", unchanged, "--queries", queries, "--run", tmp_path / "r.trec")
    ran.refused(*words, code=2 if words[-1] == "empty" else 1)
    assert not (tmp_path / "r.trec").exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--ann", "hsnw", ("hnsw", "ivf")),
        ("--recall", "1.5", ("1.5",)),
        ("--memory", "-1", ("memory",)),
        ("--memory", "0", ("memory",)),
        ("--dtype", "float8", ("float8", "float16")),
        ("--format", "cvs", ("'cvs'", "csv")),
        ("--encoding", "utf-9", ("utf-9",)),
        ("--delimiter", "ab", ("ab",)),
        ("--language", "klingon", ("klingon",)),
    ],
)
def test_an_option_of_index_that_cannot_be(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    option: str,
    value: str,
    words: tuple[str, ...],
) -> None:
    source = lines(tmp_path / "s.jsonl", ROWS)
    ran = command(capsys, monkeypatch)("index", source, "--to", tmp_path / "new.sonde", option, value)
    ran.failed(*words, code=2)
    assert not (tmp_path / "new.sonde").exists()


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
@pytest.mark.parametrize("k", [4, 10**6, 10**18])
def test_k_beyond_the_collection_returns_all(sonde: Command, unchanged: Path, mode: str, k: int) -> None:
    ran = sonde("search", unchanged, "the battery, the phone, a day", "-k", k, "--mode", mode, "--json")
    assert ran.code == 0, ran.err
    assert {json.loads(line)["id"] for line in ran.out.splitlines()} == {"1", "2", "3"}
    ran = sonde("search", unchanged, "the battery", "--offset", k, "--mode", mode)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_a_query_of_100_000_characters(sonde: Command, unchanged: Path, mode: str) -> None:
    query = "battery " * 12_500
    ran = sonde("search", unchanged, query, "-k", 1, "--mode", mode, "--json", "--explain")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["id"] == "1"
    if mode != "lexical":
        assert "note: the query has 12,500 tokens; the model reads the first 64" in ran.err
    words = " ".join(f"word{number}" for number in range(11_000)) + " battery"
    assert sonde("search", unchanged, words, "--mode", mode).code == 0


def test_an_example_of_broken_bytes(
    unchanged: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stream = written(tmp_path / "letter.txt", b"caf\xe9 battery").open(encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
    sonde("similar", unchanged, "--text", "-").refused("UTF-8", code=2)


def test_a_second_writer(sonde: Command, tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    process = subprocess.Popen([sys.executable, str(RUNNER), "index", str(folder), str(tmp_path / "log"), "0"])
    try:
        while not (tmp_path / "log").exists() or (tmp_path / "log").stat().st_size < 100:
            assert process.poll() is None
        process.send_signal(signal.SIGSTOP)  # it stays in the middle of its work for as long as the commands take
        source = lines(tmp_path / "s.jsonl", ROWS)
        holder = f"is being written by process {process.pid} since"
        for arguments in (("compact", folder), ("delete", folder, "1"), ("repair", folder)):
            sonde(*arguments).refused(holder, "wait")
        sonde("index", source, "--to", folder).failed(holder, "wait")
        assert sonde("search", folder, "apple").code == 0
    finally:
        process.send_signal(signal.SIGCONT)
        process.communicate()
    assert process.returncode == 0
    assert problems(folder) == []


DISK = ("size=8m", "nr_inodes=2000")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(DISK), "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def long_texts(path: Path, count: int = 24) -> Path:
    words = [*(f"word{number}" for number in range(10)), "silver", "garden"]
    rows = [{"id": str(n), "text": " ".join(words[(n * i) % 12] for i in range(2_000))} for n in range(count)]
    return lines(path, rows)


def fill(disk: Path, leave: int) -> Path:
    """Fill the disk with a file, up to `leave` bytes."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - leave)))
    return ballast


def answers(sonde: Command, folder: Path) -> list[str]:
    return [
        sonde("search", folder, "silver garden", "-k", 100, "--mode", mode, "--json").out
        for mode in ("dense", "lexical")
    ]


@pytest.mark.parametrize("leave", [0, 150_000, 400_000, 800_000, 1_600_000])
def test_a_full_disk(sonde: Command, tmp_path: Path, small_disk: Path, leave: int) -> None:
    folder, undisturbed = small_disk / "c.sonde", tmp_path / "c.sonde"
    few, all_ = long_texts(tmp_path / "few.jsonl", 6), long_texts(tmp_path / "all.jsonl")
    for to in (folder, undisturbed):
        assert sonde("index", few, "--to", to).code == 0
    before = contents(folder)
    ballast = fill(small_disk, leave)
    ran = sonde("index", all_, "--to", folder)
    if ran.code:
        ran.failed("full" if leave < 200_000 else "")
        assert [line for line in problems(folder) if not line.startswith(("ann", "lexical"))] == []
        assert leave > 200_000 or contents(folder) == before
        assert len(answers(sonde, folder)[0].splitlines()) >= 6
    ballast.unlink()
    assert sonde("index", all_, "--to", folder).code == 0
    assert sonde("index", all_, "--to", undisturbed).code == 0
    assert problems(folder) == []
    assert answers(sonde, folder) == answers(sonde, undisturbed)


def test_a_disk_that_is_full_from_the_start(sonde: Command, tmp_path: Path, small_disk: Path) -> None:
    fill(small_disk, 0)
    sonde("index", lines(tmp_path / "s.jsonl", ROWS), "--to", small_disk / "c.sonde").failed("full")
    assert not (small_disk / "c.sonde").exists()


@pytest.mark.parametrize("arguments", [("compact",), ("delete", "1"), ("delete", "--where", "stars > 1"), ("repair",)])
def test_upkeep_on_a_full_disk(sonde: Command, tmp_path: Path, small_disk: Path, arguments: tuple[str, ...]) -> None:
    folder = small_disk / "c.sonde"
    sonde("index", long_texts(tmp_path / "s.jsonl"), "--to", folder)
    sonde("index", lines(tmp_path / "t.jsonl", ROWS), "--to", folder)
    sonde("delete", folder, "2")
    if arguments[0] == "repair":
        shutil.rmtree(folder / "lexical")
    before = contents(folder)
    ballast = fill(small_disk, 0)
    ran = sonde(arguments[0], folder, *arguments[1:])
    ran.failed("full")
    assert contents(folder) == before
    ballast.unlink()
    assert sonde(arguments[0], folder, *arguments[1:]).code == 0
    assert problems(folder) == []


def test_a_read_only_disk(sonde: Command, tmp_path: Path, small_disk: Path) -> None:
    folder, source = small_disk / "c.sonde", lines(tmp_path / "s.jsonl", ROWS)
    assert sonde("index", source, "--to", folder).code == 0
    before = contents(folder)
    more = lines(tmp_path / "t.jsonl", [*ROWS, {"id": "4", "text": "New."}])
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    try:
        for mode in ("hybrid", "dense", "lexical"):
            ran = sonde("search", folder, "battery", "--mode", mode, "--json", "--where", "stars < 5")
            assert (ran.code, json.loads(ran.out.splitlines()[0])["id"]) == (0, "1"), ran.err
        assert [sonde(name, folder).code for name in ("info", "verify", "export")] == [0, 0, 0]
        sonde("index", more, "--to", folder).failed("c.sonde cannot be written", "read-only")
        sonde("index", more, "--to", small_disk / "new.sonde").failed("new.sonde cannot be written", "read-only")
        for arguments in (("compact", folder), ("delete", folder, "1"), ("repair", folder)):
            sonde(*arguments).refused("c.sonde cannot be written", "read-only")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert contents(folder) == before
    gc.collect()  # SQLite shares what it knows of a file between connections, those of the commands above included
    ran = sonde("index", more, "--to", folder)
    assert ran.code == 0, ran.err
    assert problems(folder) == []

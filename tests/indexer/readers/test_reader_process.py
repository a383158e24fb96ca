"""Each file is read in a process of its own: with the same values, with limits, and without a trace afterwards."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers import ReadOptions, child, child_table, read_source
from sonde.indexer.readers.bytestream import ByteStream
from sonde.indexer.readers.child import TextReaders
from sonde.indexer.readers.child_table import ChildTable
from sonde.indexer.readers.formats import table_source
from sonde.indexer.readers.source import Meter, Source
from sonde.indexer.readers.text_files import TextFiles, read_text_file

OPTIONS = ReadOptions()
AT = datetime(2024, 2, 29, 12, 30, 1, 5)


def parquet_bytes() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {
        "date": pa.array([date(2024, 2, 29), None]),
        "naive": pa.array([AT, None]),
        "utc": pa.array([AT.replace(tzinfo=UTC), None]),
        "zone": pa.array([AT, None], pa.timestamp("us", "Europe/Berlin")),
        "offset": pa.array([AT, None], pa.timestamp("us", "+02:00")),
        "nanoseconds": pa.array([1_700_000_000_000_000_001, None], pa.timestamp("ns")),
        "time": pa.array([clock(1, 2, 3, 4), None]),
        "span": pa.array([timedelta(-1, 5, 7), None]),
        "decimal": pa.array([Decimal("1.50"), Decimal("12345678901234567890123456789.1")]),
        "bytes": pa.array([b"\xff\x00", b""]),
        "real": pa.array([float("nan"), float("-inf")]),
        "small": pa.array([0.1, 1e-320]),
        "list": pa.array([[{"a": date(2024, 1, 1), "b": [Decimal("0.5")]}], []]),
        "whole": pa.array([2**63 - 1, -(2**63)]),
        "text": pa.array(["hello", "\u2028 \x00"]),
    }
    out = io.BytesIO()
    pq.write_table(pa.table(kinds), out)
    return out.getvalue()


def xlsx_bytes() -> bytes:
    import openpyxl

    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in (["text", "n", "when"], ["one", 1, AT], ["two", 1.5, clock(3, 4)], ["three", True, timedelta(hours=30)]):
        book.worksheets[0].append(row)
    book.save(out)
    return out.getvalue()


FILES = {
    "t.csv": b"text,n\nhello,1\nbro\xffken,2\ntoo,many,cells\n",
    "bare.csv": b"hello there,1\nwhat else,2\n",
    "t.tsv.gz": gzip.compress("text\tn\ngrüße\t1\n".encode()),
    "t.jsonl": b'{"text": "half \\ud83d", "n": 123456789012345678901234567890, "x": NaN, "l": [[1], {"a": null}]}\n'
    b"[1]\n",
    "pair.jsonl": '{"text": "\\ud83d\\ude00 \U0001f600", "y": {"z": -0.0}, "": [true]}\n'.encode(),
    "t.json": b'{"rows": [{"text": "a"}, {"text": "b", "n": 1.0}], "other": [{"a": 1}]}',
    "t.parquet": parquet_bytes(),
    "t.xlsx": xlsx_bytes(),
    "page.pdf": b"%PDF-1.4\n",
}


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(source: Source) -> tuple[list[str], dict[str, object]]:
    """Every item with how far the meter was, by `repr`, which tells NaN, types and time zones apart; and the head."""
    meter = Meter()
    items = [f"{meter.done} {item!r}" for item in source.items(meter)]
    names = ("name", "total", "items_total", "unit", "once", "textual", "note", "nothing", "columns", "heading")
    return items, {name: getattr(source, name) for name in names}


def own_processes() -> list[psutil.Process]:
    """Return the processes that this one has started, but for what `multiprocessing` leaves in other tests."""
    others = ("resource_tracker", "forkserver")
    found = psutil.Process().children()
    return [
        one
        for one in found
        if one.status() == psutil.STATUS_ZOMBIE or not any(name in " ".join(one.cmdline()) for name in others)
    ]


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith("pdf")])
def test_a_process_reads_what_is_read_here(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, FILES[name])
    assert read(ChildTable(str(path), path, OPTIONS)) == read(table_source(ByteStream(str(path), path), OPTIONS))


def test_lines_and_batches_of_any_size(tmp_path: Path) -> None:
    path = written(tmp_path, "t.txt", "".join(f"text number {n} {'x' * (n % 7000)}\n" for n in range(3000)))
    options = ReadOptions(format="lines")
    here = read(table_source(ByteStream(str(path), path), options))
    source = ChildTable(str(path), path, options)
    assert len(here[0]) == 3000
    assert read(source) == here  # the process that was started with the source
    assert read(source) == here  # and another


def test_text_files_are_read_as_here(tmp_path: Path) -> None:
    files = {
        "a.md": "# A title\n\ntext",
        "b.html": "<title>t</title><p>one<p>two",
        "c.txt": b"\xff\xfe",
        "d.pdf": b"%PDF-",
    }
    paths = [written(tmp_path, name, content) for name, content in files.items()]
    found = list(TextFiles("folder", [tmp_path], OPTIONS).items(Meter()))
    assert [item.origin for item in found] == list(files)
    assert list(map(repr, found)) == [repr(read_text_file(path.name, path, OPTIONS)) for path in paths]


def test_errors_keep_their_fields(tmp_path: Path) -> None:
    path = written(tmp_path, "t.xlsx", xlsx_bytes())
    with pytest.raises(UsageError, match=r"t.xlsx has no sheet 'Sheat' \(did you mean 'Sheet'\?\)") as caught:
        read_source(path, options=ReadOptions(sheet="Sheat"))
    error = caught.value
    assert (error.code, error.field, error.value, error.alternatives) == ("not-found", "sheet", "Sheat", ("Sheet",))
    path = written(tmp_path, "t.csv", b"x" * 1_100_000)
    with pytest.raises(SondeError, match="bytes: break it up, or if this is not a CSV file, set format") as refused:
        read_source(path)
    assert refused.value.render(lambda name: f"--{name}").endswith("set --format")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_sends_nothing_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_table, "LATE", 0.2)
    os.mkfifo(tmp_path / "pipe")
    said: list[Any] = []

    def write() -> None:
        while not said:
            time.sleep(0.05)
        (tmp_path / "pipe").write_text('{"text": "hello"}\n')

    thread = threading.Thread(target=write)
    thread.start()
    documents = list(read_source(tmp_path / "pipe", options=ReadOptions(format="jsonl"), notify=said.append))
    thread.join()
    assert [each.text for each in documents if isinstance(each, Document)] == ["hello"]
    assert said == [f"waiting for data from {tmp_path / 'pipe'}"]


def test_a_far_cell_does_not_end_this_process(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet["A1"], sheet["A2"], sheet["XFD1048576"] = "text", "hello", "far"
    book.save(tmp_path / "far.xlsx")
    said = (
        "it is damaged, or needs more than 1 GB of memory: delete cells that lie far from the others, or save it as CSV"
    )
    with pytest.raises(SondeError, match=rf"far.xlsx: it crashed the process that reads it \(SIGABRT\): {said}"):
        read_source(tmp_path / "far.xlsx")


@pytest.mark.long
def test_too_much_memory_is_one_line(tmp_path: Path) -> None:
    hostile = b'{"text": "a"}\n{"text": "b", "l": [' + b"[]," * 30_000_000 + b"[]]}\n"
    path = written(tmp_path, "t.jsonl.gz", gzip.compress(hostile, 1))
    assert list(read_source(path)) == [
        Document("a", metadata={}, origin="line 1"),
        Skipped("line 2", f"its {len(hostile) - 14:,} characters need more memory than the process may use"),
    ]


def test_one_file_of_a_folder_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "SECONDS", 2.0)
    for name in ("a.txt", "c.txt", "d.txt"):
        written(tmp_path, name, f"text of {name}")
    os.mkfifo(tmp_path / "b.txt")  # nothing will ever arrive
    files = [(name, tmp_path / name) for name in ("a.txt", "b.txt", "c.txt", "d.txt")]
    readers = TextReaders(files, OPTIONS)
    assert [getattr(item, "text", item) for item in readers.items()] == [
        "text of a.txt",
        Skipped("b.txt", "reading it took more than 2 s"),
        "text of c.txt",
        "text of d.txt",
    ]
    readers.close()
    assert own_processes() == []


def test_the_time_that_a_file_had_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file has more than that of a small one."""
    monkeypatch.setattr(child, "SECONDS", 0.0)
    monkeypatch.setattr(child.Child, "allow", lambda self: vars(self).update(_waited=0.0, _allowed=1.6))
    os.mkfifo(tmp_path / "b.txt")  # nothing will ever arrive
    readers = TextReaders([("b.txt", tmp_path / "b.txt")], OPTIONS)
    assert list(readers.items()) == [Skipped("b.txt", "reading it took more than 2 s")]
    readers.close()


def test_each_file_that_ends_its_process_is_skipped(tmp_path: Path) -> None:
    names = [f"{number:02}.txt" for number in range(20)]
    for name in names:
        written(tmp_path, name, name)
    found = []
    for item in TextFiles("folder", [tmp_path], OPTIONS).items(Meter()):
        found.append(item.origin)
        if item.origin == "04.txt":
            for process in own_processes():
                process.kill()
    assert found == names


def test_a_killed_process_is_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "text\n" + "hello there\n" * 500_000)
    rows = ChildTable(str(path), path, OPTIONS).items(Meter())
    next(rows)
    own_processes()[0].kill()
    with pytest.raises(SondeError, match=r"t.csv: it crashed the process that reads it \(SIGKILL\): it is"):
        list(rows)


def test_a_pause_of_the_parent_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "SECONDS", 2.0)
    monkeypatch.setattr(child, "SECONDS_PER_BYTE", 0.0)
    path = written(tmp_path, "t.csv", "text\n" + "hello there\n" * 30_000)
    rows = iter(read_source(path))
    next(rows)
    time.sleep(3)
    assert sum(1 for _ in rows) == 29_999


def test_a_slow_pipe_has_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "SECONDS", 2.0)
    os.mkfifo(tmp_path / "pipe.csv")

    def write() -> None:
        with (tmp_path / "pipe.csv").open("w") as pipe:
            pipe.write("text,n\n")
            pipe.flush()
            time.sleep(4)
            pipe.write("hello,1\n")

    writer = threading.Thread(target=write)
    writer.start()
    assert [getattr(item, "text", item) for item in read_source(tmp_path / "pipe.csv")] == ["hello"]
    writer.join()


def test_no_process_is_left(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "text\n" + "hello there\n" * 500_000)
    rows = iter(read_source(path))
    next(rows)
    assert len(own_processes()) == 1
    del rows
    assert own_processes() == []


def test_a_look_and_the_pass_after_it_share_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **more: started.append(1) or popen(*words, **more))
    path = written(tmp_path, "t.csv", "text\n" + "".join(f"text number {n}\n" for n in range(50_000)))
    reading = read_source(path)
    assert [document.text for document in reading.head(2)] == ["text number 0", "text number 1"]
    assert [getattr(item, "text", "") for item in reading] == [f"text number {n}" for n in range(50_000)]
    assert len(started) == 1


SCRIPT = """
import sys
from sonde.indexer.readers import read_source
rows = iter(read_source("t.csv"))
print(next(rows).text, flush=True)
"""


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_a_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    written(tmp_path, "t.csv", "text\n" + "hello there\n" * 500_000)
    script = written(tmp_path, "script.py", SCRIPT + "import time; time.sleep(60)\n")  # without `if __name__`
    parent = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "hello there\n"
    (process,) = psutil.Process(parent.pid).children()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 20
    while alive(process) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(process)


def test_modules_that_lie_beside_a_file_are_not_imported(tmp_path: Path) -> None:
    written(tmp_path, "t.json", json.dumps([{"text": "hello there"}]))
    for name in ("ijson", "csv", "json", "zoneinfo", "sonde"):
        written(tmp_path, f"{name}.py", "open('canary', 'w')")
    code = "import sys; from sonde.indexer.readers import read_source as read; print([d.text for d in read('t.json')])"
    run = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("['hello there']\n", "")
    assert not (tmp_path / "canary").exists()


def test_what_a_library_says_is_not_printed(tmp_path: Path) -> None:
    written(tmp_path, "a.pdf", b"%PDF-1.4\nnonsense")
    written(tmp_path, "a.txt", "hello")
    code = "from sonde.indexer.readers import read_source as read; print([i.origin for i in read('.')])"
    run = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("['a.pdf', 'a.txt']\n", "")


def test_no_heavy_library_is_loaded_by_a_reader_process() -> None:
    code = (
        "import sys, sonde.indexer.readers.child_main; print({'torch', 'numpy', 'faiss', 'pyarrow'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"

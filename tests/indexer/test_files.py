"""Files that are read as a whole, within bounds; and files that are written whole, with a user's permissions."""

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from sonde.indexer import files
from sonde.indexer.errors import SondeError
from sonde.indexer.files import remove_folder, text_of, write_durably, write_output
from sonde.indexer.readers import read_source
from sonde.indexer.store.lock import refuse_links
from sonde.pipelines.evaluate.trec import read_qrels, read_queries
from sonde.pipelines.label.correction_files import read_corrections
from sonde.pipelines.label.labels import read_labels
from sonde.pipelines.tune.threshold import read_questions

DEEP = b'{"_id": "1", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "judgements": (read_qrels, "q.tsv"),
    "queries": (read_queries, "q.jsonl"),
    "questions": (read_questions, "q.txt"),
    "corrections": (read_corrections, "q.csv"),
    "labels": (read_labels, "q.labels"),
}


@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"one\n\xff\xfe\x00", r"it is not UTF-8 \(byte 5\): save it as UTF-8 \(in Excel: CSV UTF-8\)"),
        (b"x" * 2_000, r"it is larger than 1.0 kB; split it"),
    ],
)
def test_binary_and_large_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, content: bytes, reason: str
) -> None:
    monkeypatch.setattr(files, "LARGEST_TEXT", 1_000)
    read, name = READERS[what]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SondeError, match=f"^cannot read the {what} in .*{name}: {reason}$"):
        read(tmp_path / name)


def test_what_grows_when_it_is_decompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_TEXT", 1_000_000)
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(b" " * 1_000_001))
    with pytest.raises(SondeError, match=r"q.jsonl.gz: it is larger than 1.0 MB; split it$"):
        read_queries(tmp_path / "q.jsonl.gz")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b"{}")[:-4], r"Compressed file ended before the end-of-stream marker was reached"),
        (b"\x1f\x8b\x08\x00" + bytes(6) + b"\xff" * 20, r"Error -3 while decompressing data: invalid block type"),
    ],
    ids=["cut", "no deflate"],  # a gzip header holds the time, and all workers must collect the same names
)
def test_damaged_compression(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "q.jsonl.gz").write_bytes(content)
    with pytest.raises(SondeError, match=f"^cannot read the queries in .*: {reason}$"):
        text_of(tmp_path / "q.jsonl.gz", "the queries")


def test_a_grade_of_thousands_of_digits_and_deep_json(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text(f"q 0 d 1\nq 0 d {'9' * 5_000}\n")
    with pytest.raises(SondeError, match=r"^line 2 of .*q.tsv is not a judgement: .* a whole number$"):
        read_qrels(tmp_path / "q.tsv")
    (tmp_path / "q.tsv").write_text("q 0 d 1\nq 0 d \u00b2\n")
    with pytest.raises(SondeError, match=r"^line 2 of .*q.tsv is not a judgement"):
        read_qrels(tmp_path / "q.tsv")
    (tmp_path / "q.jsonl").write_bytes(DEEP)
    with pytest.raises(SondeError, match=r"^line 1 of .*q.jsonl is not a query: expected"):
        read_queries(tmp_path / "q.jsonl")
    with pytest.raises(SondeError, match=r"^cannot read .*q.jsonl: maximum recursion depth exceeded"):
        read_corrections(tmp_path / "q.jsonl")


def test_a_query_id_that_comes_again_after_many(tmp_path: Path) -> None:
    ids = [*range(200_000), 199_999]
    (tmp_path / "q.jsonl").write_text("".join(f'{{"_id": "{id}", "text": "a"}}\n' for id in ids))
    with pytest.raises(SondeError, match=r"holds the query id '199999' more than once$"):
        read_queries(tmp_path / "q.jsonl")


def test_a_path_that_is_too_long_is_cut_in_messages(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=at)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    for refused in (refuse_links, read_source):
        with pytest.raises(SondeError, match=r"/d+… cannot be (checked|read): File name too long") as raised:
            refused(tmp_path)
        assert len(str(raised.value)) < 300


def test_a_file_of_the_user_with_a_temporary_name_stays(tmp_path: Path) -> None:
    notes = tmp_path / "mine.csv.tmp"
    notes.write_text("my notes")
    write_durably(tmp_path / "mine.csv", lambda stream: stream.write(b"rows"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"mine.csv": "rows", notes.name: "my notes"}


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("old")
    path.chmod(0o600)
    write_durably(path, lambda stream: stream.write(b"new"))
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


def test_two_that_write_one_file_both_end_well(tmp_path: Path) -> None:
    path, both = tmp_path / "same.csv", threading.Barrier(2)

    def write(content: bytes) -> None:
        def slowly(stream: IO[bytes]) -> None:
            stream.write(content)
            both.wait(10)

        write_durably(path, slowly)

    threads = [threading.Thread(target=write, args=(content,)) for content in (b"one" * 10, b"two" * 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in (b"one" * 10, b"two" * 10)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_which_a_file_is_made_while_it_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tantivy's own thread makes its lock file in an index that others have closed."""
    index, real = tmp_path / "c.sonde" / "lexical", os.rmdir
    index.mkdir(parents=True)
    late = [index / ".tantivy-meta.lock"]

    def rmdir(*arguments: Any, **options: Any) -> None:
        if late:
            late.pop().touch()
        real(*arguments, **options)

    monkeypatch.setattr(os, "rmdir", rmdir)
    remove_folder(tmp_path / "c.sonde")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_line_with_the_file(tmp_path: Path) -> None:
    code = f"""
import errno, sys
from sonde.app.cli import main
def app(**_):
    raise OSError(errno.ENOSPC, "No space left on device", {str(tmp_path / "x.csv")!r})
main.app_for = lambda words: app
main.main()
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert (found.returncode, found.stderr) == (
        1, f"sonde: the disk is full: {tmp_path / 'x.csv'}: free some space, then run the same command again\n"
    )  # fmt: skip


def test_a_link_that_the_user_named_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "out.csv", tmp_path / "out.csv"
    target.write_text("old")
    link.symlink_to(target)
    write_output(link, lambda stream: stream.write(b"new"))
    assert link.is_symlink() and target.read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_a_device_or_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    """Renaming over it made a file of /dev/null, for a user who may do that."""
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, lambda stream: stream.write(b"new"))
    reader.join()
    assert got == [b"new"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(sys.platform == "win32", reason="no /dev/stdout")
def test_a_file_that_stdout_is_redirected_to_gets_the_output_after_what_was_printed(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from sonde.indexer.files import write_output
print("first", flush=True)
write_output(Path("/dev/stdout"), lambda stream: stream.write(b"second"))
"""
    with (tmp_path / "out.txt").open("ab") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text() == "first\nsecond"


@pytest.mark.skipif(sys.platform == "win32", reason="no /dev/full")
def test_an_output_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SondeError, match=r"^the disk is full: /dev/full: free some space") as full:
        write_output(Path("/dev/full"), lambda stream: stream.write(b"new"))
    assert full.value.code == "disk-full"
    with pytest.raises(SondeError, match=rf"^cannot write {tmp_path / 'no' / 'x.csv'}: No such file or directory$"):
        write_output(tmp_path / "no" / "x.csv", lambda stream: stream.write(b"new"))
    with pytest.raises(FileNotFoundError, match=r"gone\.txt"):
        write_output(tmp_path / "x.csv", lambda _: (tmp_path / "gone.txt").read_bytes())
    assert not list(tmp_path.iterdir())

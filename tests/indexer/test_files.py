"""Files that the main process reads as a whole: a hostile one is one line, within bounds."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sonde.indexer import files
from sonde.indexer.errors import SondeError
from sonde.indexer.files import text_of
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

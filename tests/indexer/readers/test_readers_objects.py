"""Python objects, standard input, and what a `Reading` offers: one pass or many, head, progress, flat memory."""

import gzip
import io
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from random import Random

import pytest

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers import ReadOptions, ReadProgress, read_source


def documents(reading: Iterable[Document | Skipped]) -> list[Document]:
    """All that was read, which is nothing but documents."""
    items = list(reading)
    found = [item for item in items if isinstance(item, Document)]
    assert len(found) == len(items)
    return found


RECORDS = [
    {"id": "a", "text": "first", "n": 1, "at": datetime(2024, 1, 2, 3, 4), "tags": ["x", "y"]},
    {"id": "b", "text": "second", "n": 2, "at": datetime(2024, 5, 6, 7, 8), "tags": []},
]
DOCUMENTS = [
    Document(row["text"], "", row["id"], {key: row[key] for key in ("n", "at", "tags")}, origin=f"row {number}")
    for number, row in enumerate(RECORDS, start=1)
]


def arrow():
    import pyarrow as pa

    return pa.Table.from_pylist(RECORDS)


def library(name):
    return pytest.importorskip(name)


OBJECTS = {
    "list": lambda: RECORDS,
    "tuple": lambda: tuple(RECORDS),
    "pandas": lambda: library("pandas").DataFrame(RECORDS),
    "pandas with an index": lambda: library("pandas").DataFrame(RECORDS).set_index("id"),
    "polars": lambda: library("polars").DataFrame(RECORDS),
    "polars lazy": lambda: library("polars").LazyFrame(RECORDS),
    "table": arrow,
    "batch": lambda: arrow().to_batches()[0],
    "dataset": lambda: library("pyarrow.dataset").dataset(arrow()),
    "hugging face": lambda: library("datasets").Dataset.from_list(RECORDS),
    "hugging face stream": lambda: library("datasets").Dataset.from_list(RECORDS).to_iterable_dataset(),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_every_library(kind):
    reading = read_source(OBJECTS[kind]())
    assert list(reading) == DOCUMENTS
    assert list(reading) == DOCUMENTS, "an object can be read twice"
    assert reading.columns.metadata == {"n": "integer", "at": "date", "tags": "list"}
    assert reading.progress() in (ReadProgress(2, 2, "rows"), ReadProgress(2, None, "rows"))


def test_an_index_without_a_name_is_kept_unless_pandas_made_it():
    """Ids in an index that nobody had named were dropped."""
    keys = [f"TCK-{n + 1000}" for n in range(30)]
    frame = library("pandas").DataFrame({"text": [f"text {n}" for n in range(30)]}, index=keys)
    given = ReadOptions(id_hint="")  # as a new collection reads it
    assert [item.key for item in read_source(frame, options=given)] == keys
    numbered = read_source(frame.reset_index(drop=True).iloc[::-1], options=given)
    assert ({item.key for item in numbered}, numbered.columns.metadata) == ({None}, {})


def test_one_shot_objects():
    for source in (arrow().to_reader(), iter(RECORDS), (row for row in RECORDS), (d for d in DOCUMENTS)):
        reading = read_source(source)
        assert reading.once
        assert reading.head(1) == DOCUMENTS[:1]
        assert reading.progress() == ReadProgress(1, None, "rows")
        assert reading.head(5) == DOCUMENTS, "a second look sees the same"
        assert list(reading) == DOCUMENTS
        with pytest.raises(
            SondeError, match=r"can be read only once: save it as a file, or look at it first with head\(n\)"
        ):
            iter(reading)
        with pytest.raises(SondeError, match=r"is already being read: call head\(n\) first"):
            reading.head(1)


def test_head_of_a_file_takes_nothing_away(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,n\n,0\n" + "".join(f"text {n},{n}\n" for n in range(1, 20_000)))
    reading = read_source(path)
    assert [d.text for d in reading.head(3)] == ["text 1", "text 2", "text 3"], "a skipped row is none of the documents"
    progress = reading.progress()
    assert progress.total is not None
    assert progress.total == path.stat().st_size
    assert 0 < progress.done < progress.total
    assert isinstance(next(iter(reading)), Skipped)
    assert len(list(reading)) == 20_000


def test_progress_tells_how_long_a_file_is(tmp_path):
    path = tmp_path / "t.csv.gz"
    random = Random(7)
    path.write_bytes(gzip.compress(b"text\n" + b"".join(b"%x\n" % random.getrandbits(400) for _ in range(10_000))))
    reading = read_source(path)
    head = reading.head(2_000)
    fraction = reading.progress().fraction
    assert fraction is not None
    assert len(head) / fraction == pytest.approx(10_000, rel=0.1)


def test_strings_and_documents():
    assert list(read_source(["one", "two"])) == [Document("one", origin="row 1"), Document("two", origin="row 2")]
    own = [Document("text", "title", "k", {"year": 2024, "when": "2024-05-06"}, "de", "here")]
    reading = read_source(own)
    assert list(reading) == own
    assert reading.columns.describe() == (
        "text: text (the document's own) · title: title (the document's own) · id: key (the document's own) · "
        "language: language (the document's own) · metadata: year (integer), when (date)"
    )


def test_series():
    pd, pl = library("pandas"), library("polars")
    assert [d.text for d in documents(read_source(pd.Series(["a", "b"], name="body")))] == ["a", "b"]
    assert [d.text for d in documents(read_source(pl.Series("body", ["a", "b"])))] == ["a", "b"]


def test_missing_values_of_pandas():
    import numpy as np

    pd = library("pandas")
    frame = pd.DataFrame(
        {
            "text": ["a", None, "c"],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "float": [1.5, np.nan, np.inf],
            "at": [pd.Timestamp("2024-01-02 03:04:05.000000006"), pd.NaT, pd.Timestamp("2024-01-02", tz="UTC")],
            "kind": pd.Categorical(["x", None, "y"]),
            "vector": [np.array([1, 2]), None, np.array([])],
        }
    )
    first, second, third = list(read_source(frame, options=ReadOptions(text="text")))
    assert isinstance(first, Document) and isinstance(third, Document)
    assert first.metadata == {
        **{"whole": 1, "float": 1.5, "at": datetime(2024, 1, 2, 3, 4, 5), "kind": "x", "vector": [1, 2]},
    }
    assert second == Skipped("row 2", "no text and no title: empty")
    assert third.metadata["float"] is None, "infinity is no number that JSON knows"
    assert [type(first.metadata[name]) for name in ("whole", "float", "at")] == [int, float, datetime]


def test_values_of_every_type():
    import enum
    import uuid
    from datetime import time, timedelta

    import numpy as np

    row = {
        "text": "t",
        "int64": 2**63 - 1,
        "beyond": 2**63,
        "huge": 10**5000,
        "decimal": Decimal("1.50"),
        "bytes": b"caf\xc3\xa9",
        "binary": b"\xff\x00",
        "unique": uuid.UUID(int=7),
        "time": time(1, 2),
        "span": timedelta(minutes=2),
        "enum": enum.Enum("Color", {"RED": "red"}).RED,
        "set": {3},
        "numpy": np.float32(0.5),
        "flag": np.bool_(True),
        "empty": "",
        "day": date(2024, 1, 2),
        "nested": [[1, 2], {"a": None}],
    }
    (document,) = documents(read_source([row]))
    assert document.metadata == {
        **{"int64": 2**63 - 1, "beyond": "9223372036854775808", "huge": hex(10**5000), "decimal": 1.5, "bytes": "café"},
        **{"binary": None, "unique": "00000000-0000-0000-0000-000000000007", "time": "01:02:00", "span": 120.0},
        **{"enum": "red", "set": [3], "numpy": 0.5, "flag": True, "empty": None, "day": date(2024, 1, 2)},
        **{"nested": ["[1, 2]", '{"a": null}']},
    }


def test_labels_of_hugging_face_are_named():
    datasets = library("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    dataset = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, -1]}, features=features)
    assert [d.metadata["label"] for d in documents(read_source(dataset))] == ["pos", "neg", None]
    with pytest.raises(UsageError, match="the DatasetDict with the keys train, test: give one of its values"):
        read_source(datasets.DatasetDict({"train": dataset, "test": dataset}))


STDIN = {
    "jsonl": (b'{"text": "one", "n": 1}\n{"text": "two", "n": 2}\n', ["one", "two"], {"n": 1}),
    "json": (b'[{"text": "one", "n": 1}, {"text": "two", "n": 2}]', ["one", "two"], {"n": 1}),
    "csv": (b"text;n\none;1\ntwo;2\n", ["one", "two"], {"n": 1}),
    "lines": (b"one, well\n\ntwo\n", ["one, well", "two"], {}),
    "gzip": (gzip.compress(b"text,n\none,1\ntwo,2\n"), ["one", "two"], {"n": 1}),
}


def give_on_stdin(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("kind", STDIN)
def test_standard_input(monkeypatch, kind):
    data, texts, metadata = STDIN[kind]
    give_on_stdin(monkeypatch, data)
    reading = read_source("-")
    assert reading.name == "standard input"
    assert [d.text for d in reading.head(1)] == texts[:1]
    found = documents(reading)
    assert [d.text for d in found] == texts
    assert found[0].metadata == metadata
    assert reading.progress().total is None or kind == "json"


def test_standard_input_of_a_declared_format(monkeypatch):
    give_on_stdin(monkeypatch, b"# A heading\n\nand text\n")
    (document,) = documents(read_source("-", options=ReadOptions(format="markdown")))
    assert (document.title, document.text) == ("A heading", "# A heading\n\nand text\n")
    give_on_stdin(monkeypatch, b"text,n\none,1\n")
    assert [d.text for d in documents(read_source("-", options=ReadOptions(format="lines")))] == ["text,n", "one,1"]


@pytest.mark.long
def test_large_standard_input_is_streamed(monkeypatch):
    give_on_stdin(monkeypatch, b"".join(b'{"text": "text number %d"}\n' % n for n in range(100_000)))
    found = documents(read_source("-"))
    assert len(found) == 100_000
    assert found[-1].text == "text number 99999"


def test_empty_standard_input(monkeypatch):
    give_on_stdin(monkeypatch, b"")
    with pytest.raises(SondeError, match="standard input is empty: nothing arrived"):
        read_source("-")


def peak_of(reading):
    tracemalloc.start()
    try:
        count = sum(1 for _ in reading)
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_memory_stays_flat_over_a_generator():
    rows = ({"text": f"text number {n} " * 10} for n in range(100_000))
    count, peak = peak_of(read_source(rows))
    assert count == 100_000
    assert peak < 2_000_000


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json"])
def test_memory_stays_flat_over_a_file(tmp_path, suffix):
    texts = [f"text number {n} " * 10 for n in range(40_000)]
    lines = {"csv": ["text", *texts], "jsonl": [f'{{"text": "{text}"}}' for text in texts]}
    lines["json"] = ["[", ",\n".join(lines["jsonl"]), "]"]
    path = tmp_path / f"t.{suffix}"
    path.write_text("\n".join(lines[suffix]))
    reading = read_source(path)
    count, peak = peak_of(reading)
    assert count == 40_000
    assert peak < path.stat().st_size / 3


def test_no_library_is_imported_for_a_csv(tmp_path):
    (tmp_path / "t.csv").write_text("text\nhello\n")
    heavy = "{'torch', 'pyarrow', 'pandas', 'polars', 'datasets', 'ijson', 'pypdf', 'faiss', 'charset_normalizer'}"
    code = (
        "import sys; from sonde.indexer.readers import read_source; list(read_source('t.csv')); "
        f"print({heavy} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_real_pipe(tmp_path):
    code = "from sonde.indexer.readers import read_source as read; print([d.text for d in read('-')])"
    done = subprocess.run([sys.executable, "-c", code], input=b"text,n\none,1\n", capture_output=True, check=True)
    assert done.stdout == b"['one']\n"


def test_a_named_pipe(tmp_path):
    import os
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"text": "one"}\n{"text": "two"}\n',))
    writer.start()
    reading = read_source(pipe)
    assert reading.once
    assert [d.text for d in documents(reading)] == ["one", "two"]
    writer.join()

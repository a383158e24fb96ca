"""Reading files of rows: every format, compressed or not, with its roles, types and origins."""

import csv
import gzip
import io
import json
import random
from collections.abc import Iterable
from datetime import date, datetime

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.indexer.document import Document, Skipped, is_blank
from sonde.indexer.readers import ReadOptions, read_source
from sonde.indexer.readers.bytestream import ByteStream
from sonde.indexer.readers.formats import table_source
from sonde.indexer.readers.source import Meter


def documents(reading: Iterable[Document | Skipped]) -> list[Document]:
    """All that was read, which is nothing but documents."""
    items = list(reading)
    found = [item for item in items if isinstance(item, Document)]
    assert len(found) == len(items)
    return found


ROWS = [
    {"id": "a1", "headline": "Fine", "review_body": "It works, really.", "stars": 5, "when": "2024-01-05", "ok": True},
    {
        "id": "b2",
        "headline": "Bad",
        "review_body": 'Broke "at once"\nand again',
        "stars": 1,
        "when": "2024-02-29",
        "ok": False,
    },
    {"id": "c3", "headline": "", "review_body": "Größe naïve 漢字", "stars": None, "when": None, "ok": None},
]
DATES = {None: None, "2024-01-05": date(2024, 1, 5), "2024-02-29": date(2024, 2, 29)}
DOCUMENTS = [
    Document(
        row["review_body"],
        row["headline"],
        row["id"],
        {"stars": row["stars"], "when": DATES[row["when"]], "ok": row["ok"]},
    )
    for row in ROWS
]
DESCRIPTION = (
    "text: review_body (by name) · title: headline (by name) · id: id (by name) · "
    "metadata: stars (integer), when (date), ok (boolean)"
)


def csv_bytes(rows, delimiter=",", encoding="utf-8", **options):
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, **options)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode(encoding)


def jsonl_bytes(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def parquet_bytes(rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{**row, "when": DATES[row["when"]]} for row in rows]), out)
    return out.getvalue()


def xlsx_bytes(rows):
    import openpyxl

    book, out = openpyxl.Workbook(), io.BytesIO()
    sheet = book.worksheets[0]
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append([DATES[value] if name == "when" else value for name, value in row.items()])
    book.save(out)
    return out.getvalue()


FILES = {
    "r.csv": csv_bytes(ROWS),
    "semicolon.csv": csv_bytes(ROWS, ";", quoting=csv.QUOTE_ALL),
    "pipe.csv": csv_bytes(ROWS, "|"),
    "bom.csv": csv_bytes(ROWS, encoding="utf-8-sig"),
    "utf16.csv": csv_bytes(ROWS, encoding="utf-16"),
    "utf16le.csv": csv_bytes(ROWS, encoding="utf-16-le"),
    "gb.csv": csv_bytes(ROWS, encoding="gb18030"),
    "backslash.csv": csv_bytes(ROWS, doublequote=False, escapechar="\\"),
    "r.tsv": csv_bytes(ROWS, "\t"),
    "r.jsonl": jsonl_bytes(ROWS),
    "r.ndjson": jsonl_bytes(ROWS),
    "lines.json": jsonl_bytes(ROWS),
    "r.json": json.dumps(ROWS, indent=1).encode(),
    "array.jsonl": json.dumps(ROWS).encode(),
    "utf16.json": json.dumps(ROWS, ensure_ascii=False).encode("utf-16"),
    "wrapped.json": json.dumps({"took": 3, "tags": ["x"], "data": {"docs": ROWS}}).encode(),
    "r.parquet": parquet_bytes(ROWS),
    "r.xlsx": xlsx_bytes(ROWS),
}


def without_origin(items):
    return [Document(item.text, item.title, item.key, item.metadata, item.language) for item in items]


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("compress", ["", *(pytest.param(way, marks=pytest.mark.long) for way in (".gz", ".zst"))])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_documents(tmp_path, name, compress):
    packed = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[compress](FILES[name])
    path = written(tmp_path, name + compress, packed)
    options = ReadOptions(encoding="gb18030") if name.startswith("gb") else ReadOptions()
    reading = read_source(path, options=options)
    assert without_origin(reading) == DOCUMENTS
    assert without_origin(reading) == DOCUMENTS, "a file can be read twice"
    assert reading.columns.describe().startswith(DESCRIPTION)
    progress = reading.progress()
    assert (progress.done, progress.total, progress.unit) == (len(packed), len(packed), "bytes")
    assert progress.fraction == 1.0


def test_origins_say_where_to_look(tmp_path):
    origins = {name: [item.origin for item in read_source(written(tmp_path, name, FILES[name]))] for name in FILES}
    assert origins["r.csv"] == origins["r.parquet"] == origins["r.json"] == ["row 1", "row 2", "row 3"]
    assert origins["r.jsonl"] == ["line 1", "line 2", "line 3"]
    assert origins["r.xlsx"] == ["row 2", "row 3", "row 4"], "as the spreadsheet program numbers them"


def test_beir_layout(tmp_path):
    lines = [
        {"_id": "MED-1", "title": "Statins", "text": "Recent studies", "metadata": {}},
        {"_id": "MED-2", "title": "T", "text": ""},
    ]
    reading = read_source(written(tmp_path, "corpus.jsonl", jsonl_bytes(lines)))
    assert without_origin(reading) == [
        Document("Recent studies", "Statins", "MED-1", {"metadata": None}),
        Document("", "T", "MED-2"),
    ]


def test_types_of_text_cells(tmp_path):
    table = (
        "text,zip,n,price,big,flag,tags,day,stamp,mail,ambiguous,empty\n"
        'one,00712,7,1.5,99999999999999999999,yes,"[""a"", ""b""]",31.12.2023,2024-01-05T10:30:00Z,'
        '"Mon, 01 Jan 2024 08:00:00 +0000",01/02/2024,\n'
        "two,12345,NA,2,1,no,[],01.02.2024,2024-01-05 10:30,,03/04/2024,\n"
    )
    first, second = documents(read_source(written(tmp_path, "t.csv", table)))
    assert first.metadata["zip"] == "00712", "leading zeros make a code, not a number"
    assert (first.metadata["n"], second.metadata["n"]) == (7, None)
    assert (first.metadata["price"], second.metadata["price"]) == (1.5, 2.0)
    assert first.metadata["big"] == "99999999999999999999", "beyond 64 bits"
    assert (first.metadata["flag"], second.metadata["flag"]) == (True, False)
    assert (first.metadata["tags"], second.metadata["tags"]) == (["a", "b"], [])
    assert (first.metadata["day"], second.metadata["day"]) == (date(2023, 12, 31), date(2024, 2, 1))
    assert first.metadata["stamp"] == datetime.fromisoformat("2024-01-05T10:30:00+00:00")
    assert second.metadata["stamp"] == datetime.fromisoformat("2024-01-05T10:30:00")
    assert first.metadata["mail"] == datetime.fromisoformat("2024-01-01T08:00:00+00:00")
    assert first.metadata["ambiguous"] == "01/02/2024", "January or February: not for us to say"
    assert first.metadata["empty"] is None
    kinds = dict(read_source(tmp_path / "t.csv").columns.metadata)
    assert kinds == {
        **{"zip": "text", "n": "integer", "price": "real", "big": "text", "flag": "boolean", "tags": "list"},
        **{"day": "date", "stamp": "date", "mail": "date", "ambiguous": "text"},
    }


def test_a_later_value_that_does_not_fit_is_kept_as_text(tmp_path):
    rows = "".join(f"text {n},{n}\n" for n in range(1500)) + "last,about ten\n"
    found = documents(read_source(written(tmp_path, "t.csv", "text,n\n" + rows)))
    assert found[1499].metadata == {"n": 1499}
    assert found[1500].metadata == {"n": "about ten"}


def test_nested_json_is_flattened(tmp_path):
    line = '{"text": "t", "user": {"name": "Ann", "geo": {"lat": 1.5, "lon": NaN}}, "tags": ["x", null, {"y": 1}]}\n'
    (document,) = documents(read_source(written(tmp_path, "t.jsonl", line)))
    assert document.metadata == {
        "user.name": "Ann",
        "user.geo.lat": 1.5,
        "user.geo.lon": None,
        "tags": ["x", '{"y": 1}'],
    }


def test_single_column_with_commas_is_one_text_per_line(tmp_path):
    assert [d.text for d in documents(read_source(written(tmp_path, "t.csv", "text\nWell, yes\nNo, no, no\n")))] == [
        "Well, yes",
        "No, no, no",
    ]


def test_file_without_header(tmp_path):
    reading = read_source(
        written(tmp_path, "t.csv", "A man dances.,A man is dancing.,5.0\nA dog runs.,A cat sleeps.,0.2\n")
    )
    assert [d.text for d in documents(reading)] == ["A man is dancing.", "A cat sleeps."], "the longer of the two"
    assert reading.columns.metadata["column_3"] == "real"
    assert reading.columns.describe().endswith("no header")


def test_tabs_with_stray_quotes(tmp_path):
    reading = read_source(
        written(tmp_path, "t.tsv", 'text\tlabel\n"Hello," he said.\tgreeting\n"Bye\tgreeting\nplain\tother\n')
    )
    assert [d.text for d in documents(reading)] == ['"Hello," he said.', '"Bye', "plain"]


def test_repeated_and_missing_column_names(tmp_path):
    (document,) = documents(read_source(written(tmp_path, "t.csv", ",text,tag,tag\n0,hello,a,b\n")))
    assert document.metadata == {"column_1": 0, "tag": "a", "tag_2": "b"}


def test_sheet_is_chosen(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.create_sheet("Reviews").append(["text", "n", "at"])
    book["Reviews"].append(["good", 3, datetime(2024, 5, 6, 7, 8)])
    book.create_sheet("Other").append(["text"])
    book["Other"].append(["elsewhere"])
    book.save(tmp_path / "b.xlsx")
    (first,) = documents(read_source(tmp_path / "b.xlsx"))
    assert (first.text, first.metadata) == ("good", {"n": 3, "at": datetime(2024, 5, 6, 7, 8)}), (
        "the first sheet with content"
    )
    assert [d.text for d in documents(read_source(tmp_path / "b.xlsx", options=ReadOptions(sheet="Other")))] == [
        "elsewhere"
    ]


def test_a_parquet_file_is_not_held_in_memory(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    group = pa.table({"text": [random.Random(n).randbytes(200).hex() for n in range(2_000)]})
    with pq.ParquetWriter(tmp_path / "t.parquet", group.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(12):
            writer.write_table(group)
    source, before = (
        table_source(ByteStream("t.parquet", tmp_path / "t.parquet"), ReadOptions()),
        pa.total_allocated_bytes(),
    )
    held = [pa.total_allocated_bytes() - before for _ in source.items(Meter())]
    assert len(held) == 24_000
    assert 0 < max(held) < 4 * group.nbytes


def test_parquet_dates_beyond_python_and_broken_strings(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    broken = pa.array([b"fine", b"bad \xff"]).view(pa.string())
    far = pa.array([0, 10**15], pa.timestamp("ms"))
    nano = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns"))
    pq.write_table(pa.table({"text": broken, "far": far, "nano": nano}), tmp_path / "t.parquet")
    first, second = read_source(tmp_path / "t.parquet")
    assert isinstance(first, Document)
    assert first.metadata["nano"] == datetime(2023, 11, 14, 22, 13, 20, 123456)
    assert second == Skipped("row 2", "broken UTF-8: byte 0xff at character 5 of the text")


def test_of_several_sources_only_what_differs_is_said(tmp_path):
    """One line held all columns of all files."""
    heads = [
        "id,body,price,agent",
        "id,body,price,by",
        "id,body,price,agent",
        "id,text,price,agent",
        "id,body,price,agent",
    ]
    paths = [
        written(tmp_path, f"{place}.csv", f"{head}\n{place},A text of some length,{price},ann\n".replace(",", mark))
        for place, (head, price, mark) in enumerate(zip(heads, ["1.5", "x", "2.5", "3.5", "4.5"], ",,,,;", strict=True))
    ]
    said = read_source(paths).columns.describe().replace(f"{tmp_path}/", "").splitlines()
    roles = "text: body (by name) · title: none · id: id (by name)"
    assert said == [
        "",
        f"  0.csv: {roles} · metadata: price (real), agent (text) · read as: delimiter ',', utf-8",
        "  1.csv: other metadata: price (text), by (text) · without agent",
        "  3.csv: text: text (by name)",
        "  and 2 sources with the columns of the first",
    ]
    many = [written(tmp_path, f"m{place}.csv", f"id,body,x{place}\nm{place},A text,1\n") for place in range(16)]
    said = read_source(many).columns.describe().splitlines()
    assert said[-2:] == [
        f"  {many[12]}: other metadata: x12 (integer) · without x0",
        "  and 3 sources with other columns",
    ]


def test_several_sources_are_read_one_after_the_other(tmp_path):
    paths = [written(tmp_path, "a.csv", "text,n\none,1\n"), written(tmp_path, "b.jsonl", '{"body": "two", "n": 2.5}\n')]
    reading = read_source(paths)
    assert [(d.text, d.metadata["n"]) for d in documents(reading)] == [("one", 1), ("two", 2.5)]
    assert reading.columns.metadata == {"n": "real"}
    assert reading.columns.describe().startswith(f"\n  {paths[0]}: text: text (by name)")
    assert reading.columns.describe().endswith(f"\n  {paths[1]}: text: body (by name) · other metadata: n (real)")
    assert reading.progress().fraction == 1.0
    assert reading.name == f"{paths[0]} and 1 more"


FEWER = max(1, settings().max_examples // 3)
"""Each example starts a reader process."""
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
legible = texts.filter(lambda text: not is_blank(text))
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030")


@settings(max_examples=FEWER)
@given(
    st.lists(st.tuples(legible, texts), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t", "|", "~"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(ENCODINGS),
    st.sampled_from(["\r\n", "\n"]),
)
def test_csv_round_trip(tmp_path_factory, rows, delimiter, quoting, encoding, end):
    # Before Python 3.13 the writer leaves a carriage return unquoted unless lines end with one.
    end = "\r\n" if quoting == csv.QUOTE_MINIMAL else end
    rows = [{"text": text, "note_id": f"x{note}"} for text, note in rows]
    content = csv_bytes(rows, delimiter, encoding, quoting=quoting, lineterminator=end)
    path = written(tmp_path_factory.mktemp("csv"), "t.csv", content)
    found = documents(read_source(path, options=ReadOptions(delimiter=delimiter, encoding=encoding, title="", id="")))
    assert [d.text for d in found] == [row["text"] for row in rows]
    assert [d.metadata["note_id"] for d in found] == [row["note_id"] for row in rows]


@settings(max_examples=FEWER)
@given(st.lists(legible, min_size=1, max_size=8))
def test_csv_round_trip_with_everything_detected(tmp_path_factory, given_texts):
    rows = [{"text": text, "number": number} for number, text in enumerate(given_texts)]
    path = written(tmp_path_factory.mktemp("csv"), "t.csv", csv_bytes(rows, quoting=csv.QUOTE_ALL))
    assert [(d.text, d.metadata["number"]) for d in documents(read_source(path))] == [
        (row["text"], row["number"]) for row in rows
    ]


@settings(max_examples=FEWER)
@given(st.lists(legible, min_size=1, max_size=8))
def test_jsonl_round_trip(tmp_path_factory, given_texts):
    path = written(tmp_path_factory.mktemp("jsonl"), "t.jsonl", jsonl_bytes([{"text": text} for text in given_texts]))
    assert [d.text for d in documents(read_source(path))] == given_texts


REAL = {
    "retrieval/cisi/corpus.jsonl.gz": (
        1460,
        "text: text (by name) · title: title (by name) · id: _id (by name) · metadata: none",
    ),
    "topics/banking77_train.csv": (
        10003,
        "text: text (by name) · title: none · id: none, using a hash of the text · metadata: category (text) · "
        "read as: delimiter ',', utf-8",
    ),
    "titles/arxiv_cs.parquet": (
        30000,
        "text: abstract (by name) · title: title (by name) · id: id (by name) · "
        "metadata: categories (list), month (date)",
    ),
    "topics/trec6.jsonl.gz": (
        5952,
        "text: text (by name) · title: none · id: none, using a hash of the text · "
        "metadata: split (text), coarse (text), fine (text)",
    ),
    "qa/medquad.jsonl.gz": (
        16407,
        "text: answer (by name) · title: question (by name) · id: id (by name) · metadata: qtype (text)",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", REAL)
def test_real_files(shared_data, name):
    reading = read_source(shared_data / name)
    count, description = REAL[name]
    items = list(reading)
    assert len(items) == count
    assert all(isinstance(item, Document) for item in items)
    assert reading.columns.describe() == description

"""Damaged files, and files made to exhaust a reader: each is read or refused in one line, in little time."""

import gzip
import io
import json
import time
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from mutations import SEEDS, mutations, read_here

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers import ReadOptions, read_source
from sonde.indexer.readers.bytestream import ByteStream
from sonde.indexer.readers.formats import table_source
from sonde.indexer.readers.source import Item, Meter
from sonde.indexer.readers.text_files import read_text_file
from sonde.indexer.readers.values import natural

DEEP = "its values are nested more than 32 levels deep"
OPTIONS = ReadOptions()


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def items(path: Path) -> list[Item]:
    """What is read in this process, whose time and memory a test can see."""
    return list(table_source(ByteStream(path.name, path), OPTIONS).items(Meter()))


def lists(levels: int) -> str:
    return "[" * levels + "]" * levels


def objects(levels: int) -> str:
    return '{"a": ' * levels + "1" + "}" * levels


@pytest.mark.parametrize("nested", [lists, objects])
@pytest.mark.parametrize("levels", [32, 100, 450, 50_000])
def test_a_row_that_is_nested_too_deeply(tmp_path: Path, nested, levels: int) -> None:
    rows = ['{"text": "a"}', f'{{"text": "b", "x": {nested(levels)}}}', '{"text": "c"}']
    for name, content, origins in (
        ("t.jsonl", "\n".join(rows), ("line 1", "line 2", "line 3")),
        ("t.json", f"[{','.join(rows)}]", ("row 1", "row 2", "row 3")),
        ("w.json", f'{{"data": {{"rows": [{",".join(rows)}]}}}}', ("row 1", "row 2", "row 3")),
    ):
        begun = time.monotonic()
        assert list(read_source(written(tmp_path, name, content))) == [
            Document("a", metadata={}, origin=origins[0]),
            Skipped(origins[1], DEEP),
            Document("c", metadata={}, origin=origins[2]),
        ]
        assert time.monotonic() - begun < 20


def test_31_levels_are_read_and_written_as_json_once(tmp_path: Path) -> None:
    for name, form in (("t.jsonl", "{}"), ("t.json", "[{}]")):
        path = written(tmp_path, name, form.format(f'{{"text": "a", "x": {lists(31)}}}'))
        (document,) = read_source(path)
        assert isinstance(document, Document)
        assert document.metadata == {"x": [lists(30)]}
    (document,) = read_source([{"text": "a", "x": [[['it\'s "so"']], [1.5, None, "b"]]}])
    assert isinstance(document, Document)
    assert document.metadata == {"x": ['[["it\'s \\"so\\""]]', '[1.5, "b"]']}


def test_python_objects_that_are_nested_too_deeply() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    tree: dict[str, object] = {}
    for _ in range(100_000):
        tree = {"a": tree}
    loop: list[object] = []
    loop += [loop, loop]
    rows: list[object] = [{"text": "a", "x": value} for value in (deep, tree, [tree], {"b": deep})]
    assert list(read_source(["fine", *rows]))[1:] == [Skipped(f"row {n}", DEEP) for n in range(2, 6)]
    assert list(read_source(["fine", {"text": "a", "x": loop}, Document("b", metadata={"x": deep})]))[1:] == [  # type: ignore
        Skipped("row 2", "a list in it holds more than 1,000,000 values"),
        Skipped("row 3", DEEP),
    ]
    for value in (deep, tree):
        with pytest.raises(UsageError, match="its values are nested more than 32 levels deep"):
            natural(value)


def test_names_that_grow_with_each_level(tmp_path: Path) -> None:
    name = "n" * 600
    path = written(tmp_path, "t.jsonl", json.dumps({"text": "a", name: {name: 1}}) + '\n{"text": "b"}\n')
    said = "a column name has 1,201 characters, more than 1,000"
    assert next(iter(read_source(path))) == Skipped("line 1", said)


def test_rows_with_other_columns_each(tmp_path: Path) -> None:
    rows = (json.dumps({"text": "a"} | {f"c{row}_{n}": 1 for n in range(20)}) for row in range(1000))
    with pytest.raises(SondeError, match="there are more than 10,000 columns in the first rows: remove some"):
        read_source(written(tmp_path, "t.jsonl", "\n".join(rows)))


def test_many_arrays_in_one_file(tmp_path: Path) -> None:
    arrays = ",".join(f'"k{n}": [{{"a": 1}}]' for n in range(50_000))
    begun = time.monotonic()
    assert len(items(written(tmp_path, "t.json", f"{{{arrays}}}"))) == 50_000
    assert time.monotonic() - begun < 20


def test_a_bomb_of_zstandard_is_taken_in_parts(tmp_path: Path) -> None:
    path = written(tmp_path, "t.zst", zstandard.compress(bytes(1 << 29)))
    tracemalloc.start()
    with ByteStream("t", path).open(Meter()) as file:
        assert file.read(10) == bytes(10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    ).compressobj()
    path = written(tmp_path, "t.csv.zst", wide.compress(b"text\nhello\n") + wide.flush())
    with pytest.raises(SondeError, match=r"t.csv.zst cannot be decompressed: .*Frame requires too much memory"):
        read_source(path)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_that_becomes_a_copy_on_disk(tmp_path: Path, pack) -> None:
    path = written(tmp_path, "t.parquet.x", pack(b"PAR1" + bytes(320_000_000)))
    with pytest.raises(SondeError, match=r"t.parquet.x expands more than 100 times when decompressed"):
        read_source(path)


def test_a_text_that_is_too_long(tmp_path: Path) -> None:
    written(tmp_path, "a.txt.gz", gzip.compress(b"a" * 25_000_000, 1))
    written(tmp_path, "b.txt.gz", gzip.compress(b"b" * 140_000_000, 1))
    assert list(read_source([tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"])) == [
        Skipped("a.txt.gz", "the text has 25,000,000 characters, more than the limit of 20,000,000"),
        Skipped("b.txt.gz", "the file has more than 134,217,728 bytes"),
    ]


def test_html_whose_tags_are_nested_deeply(tmp_path: Path) -> None:
    path = written(tmp_path, "deep.html", "<div>" * 600_000)
    assert read_text_file("deep.html", path, OPTIONS) == Skipped(
        "deep.html", "its tags are nested more than 2,000 levels deep"
    )
    script = "<script>" + "for (i=0; i<n; i++) if (a<b) x();" * 3_000 + "</script>"
    unclosed = "<ul>" + "<li><p>one<br><img src='x'>" * 3_000 + "<svg>" + "<path d='M0'/>" * 3_000
    path = written(tmp_path, "wide.html", f"<title>t</title>{script}{unclosed}")
    document = read_text_file("wide.html", path, OPTIONS)
    assert isinstance(document, Document)
    assert document.text == "\n".join(["one"] * 3_000)


def test_quotes_that_are_never_closed(tmp_path: Path) -> None:
    fine = "".join(f"text number {n},2\n" for n in range(3_000))
    path = written(tmp_path, "t.csv", "text,x\n" + fine + 'a","\n' * 50_000)
    with pytest.raises(SondeError, match=r"t.csv: 100 quotes are opened and never closed, the last on line 3101"):
        items(path)


def test_a_line_without_an_end(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv.gz", gzip.compress(b"text,x\na,1\n" + b"a" * 140_000_000, 1))
    with pytest.raises(
        SondeError,
        match=r"t.csv.gz: line 3 is longer than 134,217,728 characters: break it up, or",
    ):
        list(read_source(path))


def test_front_matter_with_much_white_space(tmp_path: Path) -> None:
    titles = {'"a b"': "a b", "'a' b": "'a' b", "a" + " " * 300_000 + "b": "a" + " " * 300_000 + "b", "''": "''"}
    for given, title in titles.items():
        path = written(tmp_path, "t.md", f"---\ntitle: {given}  \n---\ntext")
        document = read_text_file("t.md", path, OPTIONS)
        assert isinstance(document, Document)
        assert document.title == title


def test_a_damaged_sheet_is_one_line(tmp_path: Path) -> None:
    import zipfile

    import openpyxl

    book, out = openpyxl.Workbook(), io.BytesIO()
    book.worksheets[0].append(["text"])
    book.worksheets[0].append(["hello"])
    book.save(out)
    with zipfile.ZipFile(out) as whole, zipfile.ZipFile(tmp_path / "t.xlsx", "w") as damaged:
        for name in whole.namelist():
            content = whole.read(name)
            damaged.writestr(name, content.replace(b'r="A2"', b'r="2A"') if "sheet1" in name else content)
    with pytest.raises(SondeError, match=r"t.xlsx is damaged or not a workbook: save it again as .xlsx \("):
        read_source(tmp_path / "t.xlsx")


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"file.{'txt' if name == 'lines' else name}"
    for data in islice(mutations(name, seed=1), 100):
        path.write_bytes(data)
        assert read_here(path, name) == ""
    assert list(tmp_path.iterdir()) == [path]


def test_utf_16_that_ends_within_a_character(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"\xff\xfea")
    said = (
        "a.md cannot be decoded ('utf-16-le' codec can't decode byte 0x61 in position 2: truncated data): set encoding"
    )
    assert read_text_file("a.md", path, ReadOptions()) == Skipped("a.md", said)


def test_a_parquet_file_of_types_that_arrow_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def refuse(path: str) -> None:
        raise pa.ArrowNotImplementedError("Integers with more than 64 bits not implemented")

    monkeypatch.setattr(pq, "read_metadata", refuse)
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(
        SondeError, match=r"t.parquet is not a valid Parquet file, or is truncated: get a new copy \(Int"
    ):
        table_source(ByteStream("t.parquet", path), ReadOptions())

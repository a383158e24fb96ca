"""Bad input: one clear line, or a skipped row with its reason, and everything else is read."""

import csv
import gzip
import io
import json
from pathlib import Path
from random import Random

import pytest
import zstandard

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers import ReadOptions, delimited, read_source
from sonde.indexer.readers.bytestream import ByteStream
from sonde.indexer.readers.formats import table_source
from sonde.indexer.readers.source import Meter, Place, source_errors


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def skipped(reading):
    return [item for item in reading if isinstance(item, Skipped)]


def texts(reading):
    return [item.text for item in reading if isinstance(item, Document)]


def parquet_bytes():
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"text": [f"text number {n}" for n in range(5000)]}), out)
    return out.getvalue()


PARQUET = parquet_bytes()
NAMED, NEW_COPY = "file, although its name ends with", "get a new copy, or give it the ending of its format"
CONVERT = "convert it to text, HTML or PDF, or to a table with a column of texts"
RTF = rb"{\rtf1\ansi Dear all,\par a letter.}"
WHOLE = {
    "empty.csv": (b"", "empty.csv is empty: give a file with content"),
    "blank.csv": (b"\n\n", "blank.csv is empty"),
    "empty.csv.gz": (gzip.compress(b""), "empty.csv.gz is empty"),
    "empty.jsonl": (b"", "empty.jsonl is empty"),
    "blank.jsonl": (b"\n \n", "blank.jsonl holds only blank lines"),
    "empty.json": (b" ", "empty.json is empty"),
    "array.json": (b"[]", "array.json holds an empty array"),
    "header.csv": (b"text,stars\n", r"header.csv has a header \(text, stars\) but no rows"),
    "names.csv": (
        b'"two\nlines","' + b"x" * 500 + b'"\n',
        r"has a header \(two lines, x{80}…\) but no rows: give a file",
    ),
    "cut.parquet": (
        PARQUET[: len(PARQUET) // 2],
        "cut.parquet is not a valid Parquet file, or is truncated: get a new copy",
    ),
    "no.parquet": (b"text\nhello\n", "no.parquet is not a valid Parquet file, or is truncated"),
    "no.xlsx": (b"PK\x03\x04 nothing", "no.xlsx is damaged or not a workbook: save it again as .xlsx"),
    "cut.csv.gz": (
        gzip.compress(b"text\nhello\n" * 99)[:-20],
        "cut.csv.gz cannot be decompressed: it is damaged or cut short",
    ),
    "cut.csv.zst": (
        zstandard.compress(b"text\nhello\n" * 99)[:-9],
        "cut.csv.zst cannot be decompressed: it is damaged",
    ),
    "bad.csv.zst": (b"\x28\xb5\x2f\xfd junk junk junk", "bad.csv.zst cannot be decompressed: it is damaged"),
    "bad.csv.gz": (b"\x1f\x8b junk junk junk", "bad.csv.gz cannot be decompressed: it is damaged"),
    "random.csv.gz": (b"\x9b\x81" * 99, rf"/random\.csv\.gz is not a gzip {NAMED} \.gz: {NEW_COPY}$"),
    "zeros.csv.gz": (bytes(99), rf"zeros\.csv\.gz is not a gzip {NAMED} \.gz: {NEW_COPY}$"),
    "marked.csv.gz": (b"\xfe\xff" + b"\xd8" * 99, rf"/marked\.csv\.gz is not a gzip {NAMED} \.gz: {NEW_COPY}$"),
    "random.json.gz": (b"\x9b\x81" * 99, rf"/random\.json\.gz is not a gzip {NAMED} \.gz: {NEW_COPY}$"),
    "random.parquet.zst": (b"\x9b" * 99, rf"/random\.parquet\.zst is not a Zstandard {NAMED} \.zst: {NEW_COPY}$"),
    "random.csv.gzip": (b"\x9b\x81" * 99, rf"/random\.csv\.gzip is not a gzip {NAMED} \.gzip: {NEW_COPY}$"),
    "twice.csv.gz": (
        gzip.compress(gzip.compress(b"text\nhello\n")),
        r"/twice\.csv\.gz was compressed twice: decompress it once$",
    ),
    "zip.csv.gz": (b"PK\x03\x04" + bytes(99), r"/zip\.csv\.gz is a ZIP archive, not a text file: unpack it$"),
    "inside.csv.gz": (gzip.compress(bytes(99)), r"inside\.csv\.gz is not a text file: it contains NUL bytes"),
    "broken.json": (b'[{"text": "a"}, {"text": ', "broken.json: broken JSON"),
    "no.jsonl": (
        b"this\nis\nno\nJSON\n",
        "4 of the first 4 rows cannot be read; the first is line 1: broken JSON: Expecting value",
    ),
    "notes.doc": (b"\xd0\xcf\x11\xe0", rf"/notes\.doc is a \.doc file, which Sonde does not read: {CONVERT}$"),
    "letter.rtf": (RTF, rf"/letter\.rtf is an RTF file, which Sonde does not read: {CONVERT}$"),
    "letter.json": (RTF, rf"/letter\.json is an RTF file, which Sonde does not read: {CONVERT}$"),
    "old.rtf": (b"Dear all", rf"/old\.rtf is a \.rtf file, which Sonde does not read: {CONVERT}$"),
    "Mail.MSG": (
        b"\xd0\xcf\x11\xe0",
        r"/Mail\.MSG is a \.msg file, which Sonde does not read: export it as \.eml or \.mbox files$",
    ),
    "all.zip": (
        b"PK\x03\x04" + bytes(99),
        r"/all\.zip is a \.zip file, which Sonde does not read: unpack it, and give the files or their folder$",
    ),
    "picture.xyz": (b"abc", "cannot tell the format of .*picture.xyz: use one of the suffixes .csv, .tsv"),
    "blanks.csv": (b"\n" * 1_100_000 + b"text\na\n", "blanks.csv begins with 1,048,576 blank bytes: remove them"),
    "blank.json": (b" " * 1_100_000, "blank.json is empty: give a file with content"),
    "blanks.jsonl": (b" " * 1_100_000, "blanks.jsonl holds only blank lines: give a file with content"),
    "huge.json": (
        b'[{"text": "a", "n": ' + b"9" * 5_000 + b"}]",
        "huge.json: a number in it has too many digits: write it as a string, in double quotes",
    ),
    "huge.jsonl": (
        b'{"text": "a", "n": ' + b"9" * 5_000 + b"}",
        "first is line 1: a number in it has too many digits: write it as a string, in double quotes.",
    ),
    "long.csv": (b"x" * 1_100_000, "the first line of .*long.csv is longer than 1,048,576 bytes"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_source_that_cannot_be_read(tmp_path, name):
    content, message = WHOLE[name]
    with pytest.raises(SondeError, match=message) as caught:
        read_source(written(tmp_path, name, content))
    assert "\n" not in str(caught.value)


def test_a_text_that_was_compressed_twice_is_refused(tmp_path):
    twice = written(tmp_path, "twice.txt.gz", gzip.compress(zstandard.compress(b"hello\n")))
    [skipped] = read_source(twice)
    assert isinstance(skipped, Skipped)
    assert skipped.reason.endswith("twice.txt.gz was compressed twice: decompress it once")


def test_a_program_is_no_text_even_without_a_name(tmp_path):
    path = written(tmp_path, "program", b"\x7fELF\x02\x01\x01" + bytes(range(20)) * 40)
    with pytest.raises(SondeError, match="standard input is not a text file: it contains NUL bytes"):
        delimited.sample_lines(ByteStream("standard input", path), "utf-8")


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_what_follows_many_blanks_is_read(tmp_path, name):
    content = '[{"text": "hello"}]' if name == "t.json" else '{"text": "hello"}'
    assert texts(read_source(written(tmp_path, name, " " * 5_000_000 + content))) == ["hello"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_whose_size_is_not_known_is_read():
    found = texts(read_source(Path("/proc/self/status"), options=ReadOptions(format="lines")))
    assert [text.split(":")[0] for text in found[:2]] == ["Name", "Umask"]


def test_empty_and_repeated_names_of_nested_fields(tmp_path):
    row = {"text": "hello", "": 1, "unnamed": 2, "a": {"": 3, "b": 4}, "a.b": 5}
    path = written(tmp_path, "t.jsonl", json.dumps(row))
    (document,) = read_source(path, options=ReadOptions(title=""))
    assert isinstance(document, Document)
    assert document.metadata == {"unnamed": 1, "unnamed_2": 2, "a.unnamed": 3, "a.b": 4, "a.b_2": 5}


def test_long_cells(tmp_path, monkeypatch):
    """What the csv module takes without being asked is 131,072 characters."""
    path = written(tmp_path, "t.csv", 'text,b\n"' + "x" * 200_000 + '",1\nhello there,2\n')
    assert [len(text) for text in texts(read_source(path))] == [200_000, 11]
    monkeypatch.setattr(delimited, "_LONGEST_CELL", 1_000)
    csv.field_size_limit(131_072)  # another test may have raised it
    monkeypatch.setattr(csv, "field_size_limit", lambda *_: 131_072)
    path = written(tmp_path, "t.csv", "text,b\n" + "hello there,1\n" * 80_000 + '"' + "x" * 200_000 + '",1\n')
    *_, last = table_source(ByteStream("t.csv", path), ReadOptions(max_chars=1_000)).items(Meter())
    assert last == Skipped("row 80001", "a quote is opened on line 80002 and not closed within 1,000 characters")


def test_missing_file(tmp_path):
    written(tmp_path, "reviews.csv", "text\nx\n")
    with pytest.raises(SondeError, match=r"revews.csv does not exist \(did you mean 'reviews.csv'\?\): check the path"):
        read_source(tmp_path / "revews.csv")
    with pytest.raises(SondeError, match=r"there is no folder .*nowhere: check the path"):
        read_source(tmp_path / "nowhere" / "reviews.csv")
    with pytest.raises(SondeError, match=r"revews.csv does not exist"):
        read_source([tmp_path / "reviews.csv", tmp_path / "revews.csv"])


def test_strings_in_a_list_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that someone else wrote could have a file read, and texts failed beside a folder of that name."""
    written(tmp_path, "secret.txt", "what nobody should see")
    (tmp_path / "topics").mkdir()
    monkeypatch.chdir(tmp_path)
    for named in (str(tmp_path / "secret.txt"), "secret.txt", "mistyped.csv"):
        with pytest.raises(UsageError, match=r"in a list is a text or the name of a file: give files as Path objects"):
            read_source([named])
    assert [each.text for each in read_source(["refund", "topics"])] == ["refund", "topics"]  # type: ignore[union-attr]


def test_forbidden_file(tmp_path, monkeypatch):
    path = written(tmp_path, "t.csv", "text\nx\n")
    monkeypatch.setattr(
        "pathlib.Path.open", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    with (
        pytest.raises(SondeError, match=r"t.csv cannot be read: Permission denied"),
        source_errors("t.csv", Place()),
    ):
        table_source(ByteStream("t.csv", path), ReadOptions())


def test_unknown_sheet(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.save(tmp_path / "b.xlsx")
    with pytest.raises(UsageError, match=r"has no sheet 'Sheat' \(did you mean 'Sheet'\?\); it has 'Sheet'"):
        read_source(tmp_path / "b.xlsx", options=ReadOptions(sheet="Sheat"))
    with pytest.raises(SondeError, match=r"is empty: none of its sheets \(Sheet\) has a cell"):
        read_source(tmp_path / "b.xlsx")


def test_a_file_that_was_decompressed_on_its_way_is_read(tmp_path):
    for name, content in {"t.csv.gz": b"text\ngr\xc3\xbcn\n", "t.parquet.gz": PARQUET}.items():
        first = next(iter(read_source(written(tmp_path, name, content))))
        assert isinstance(first, Document) and first.text in ("grün", "text number 0")


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_compressed_file_that_breaks_off_late(tmp_path, pack):
    random = Random(7)
    rows = "".join(f"{random.getrandbits(400):x}\n" for _ in range(40_000))
    packed = pack(f"text\n{rows}".encode())
    reading = read_source(written(tmp_path, "t.csv.gz", packed[: len(packed) - 100_000]))
    count = 0
    with pytest.raises(
        SondeError, match=r"t.csv.gz cannot be decompressed after row \d+: it is damaged .*; get a new copy"
    ):
        for _ in reading:
            count += 1
    assert count > 20_000


def test_parquet_that_is_damaged_within(tmp_path):
    damaged = bytearray(PARQUET)
    damaged[4:200] = b"\xff" * 196
    with pytest.raises(SondeError, match=r"t.parquet is damaged after row 0: get a new copy"):
        read_source(written(tmp_path, "t.parquet", bytes(damaged)))


def test_rows_that_are_skipped_in_a_csv(tmp_path):
    table = (
        "id,title,text\n1,,fine\n2,,\n3,,   \n4,only a title,\n5,short\n"
        "6,,too,many\n7,,nul\0here\n8,, bad \xff byte\n9,,ok\n"
    )
    reading = read_source(written(tmp_path, "t.csv", table.encode("latin-1")))
    assert texts(reading) == ["fine", "", "ok"]
    assert skipped(reading) == [
        Skipped("row 2", "no text and no title: empty"),
        Skipped("row 3", "no text and no title: empty"),
        Skipped("row 5", "2 cells instead of 3 (line 6)"),
        Skipped("row 6", "4 cells instead of 3 (line 7)"),
        Skipped("row 7", "the text contains a NUL byte at character 4"),
        Skipped("row 8", "broken UTF-8: byte 0xff at character 6 of the text"),
    ]


def test_cell_over_the_limit(tmp_path):
    path = written(tmp_path, "t.csv", "text,note\nfine,x\n" + "a" * 101 + ",x\nfine,y\n")
    assert skipped(read_source(path, options=ReadOptions(max_chars=100))) == [
        Skipped("row 2", "the text has 101 characters, more than the limit of 100")
    ]
    assert len(texts(read_source(path))) == 3


@pytest.mark.long
def test_cell_of_fifty_megabytes(tmp_path):
    path = written(tmp_path, "t.csv", b"text\nbefore\n" + b"a" * 50_000_000 + b"\nafter\n")
    items = list(read_source(path))
    assert texts(items) == ["before", "after"]
    assert items[1] == Skipped("row 2", "the text has 50,000,000 characters, more than the limit of 20,000,000")


def test_quote_that_is_never_closed(tmp_path):
    rows = "".join(f'"fine, number {n}",{n}\n' for n in range(30))
    path = written(tmp_path, "t.csv", f'text,n\n{rows}"open,31\nafter,32\nlast,33\n')
    reading = read_source(path)
    assert texts(reading)[-2:] == ["after", "last"]
    assert skipped(reading) == [Skipped("row 31", "a quote is opened on line 32 and never closed")]


def test_broken_json_on_line_4711(tmp_path):
    lines = [json.dumps({"text": f"text {n}"}) for n in range(1, 6001)]
    lines[4710] = '{"text": "text 4711", '
    lines[99] = "[1, 2]"
    lines[98] = '{"text": "half \\ud800"}'
    lines[97] = "[" * 100_000
    reading = read_source(written(tmp_path, "t.jsonl", "\n".join(lines)))
    assert len(texts(reading)) == 5996
    assert skipped(reading)[1:] == [
        Skipped("line 99", "half a surrogate pair (U+D800) at character 6 of the text"),
        Skipped("line 100", "not a JSON object but an array"),
        Skipped("line 4711", "broken JSON: Expecting property name enclosed in double quotes at character 24"),
    ]
    assert skipped(reading)[0].origin == "line 98"


def test_broken_utf8_in_jsonl(tmp_path):
    path = written(
        tmp_path, "t.jsonl", b'{"text": "good"}\n{"text": "caf\xe9 au lait"}\n{"text": "fine", "x": "\xff"}\n'
    )
    assert skipped(read_source(path)) == [
        Skipped("line 2", "broken UTF-8: byte 0xe9 at character 4 of the text"),
        Skipped("line 3", "broken UTF-8: byte 0xff at character 1 of the column 'x'"),
    ]


def test_null_texts_in_python_objects():
    reading = read_source([{"text": None}, {"text": "a"}, {"other": 1}, 7, None, "b", Document(""), Document("c")])
    assert texts(reading) == ["a", "b", "c"]
    assert [(item.origin, item.reason) for item in skipped(reading)] == [
        ("row 1", "no text and no title: empty"),
        ("row 3", "no text and no title: empty"),
        ("row 4", "not a str, dict or Document but of type int"),
        ("row 5", "no text and no title: empty"),
        ("row 7", "no text and no title: empty"),
    ]


@pytest.mark.parametrize(
    "source, message",
    [
        ([], "the list holds no rows"),
        (
            [1, 2],
            "2 of the first 2 rows cannot be read; the first is row 1: not a str, dict or Document but of type int",
        ),
        (7, "the int cannot be read: give a path, a list or generator of str"),
        ({"text": ["a"]}, r"the dict with the keys text: give one of its values, or \[it\]"),
        (iter([]), "the list_iterator holds no rows"),
    ],
)
def test_python_objects_that_cannot_be_read(source, message):
    with pytest.raises(SondeError, match=message):
        read_source(source)


@pytest.mark.parametrize(
    "raw, text",
    [
        (
            "text\nLe café était fermé, où êtes-vous allés à Noël?\n".encode("latin-1"),
            "Le café était fermé, où êtes-vous allés à Noël?",
        ),
        ("text\ncafé\nnaïve\n".encode("cp1252"), "café"),
        ("text\nIt costs £5\n".encode("cp1252"), "It costs £5"),
        ("text\nПривет, как дела? Это русский текст\n".encode("cp1251"), "Привет, как дела? Это русский текст"),
        ("text\nこれは日本語のテキストです。\n".encode("shift_jis"), "これは日本語のテキストです。"),
        ("text\nZażółć gęślą jaźń, proszę bardzo\n".encode("cp1250"), "Zażółć gęślą jaźń, proszę bardzo"),
    ],
)
def test_encodings_are_detected(tmp_path, raw, text):
    assert texts(read_source(written(tmp_path, "t.csv", raw)))[0] == text


def test_mostly_good_utf8_is_not_taken_for_another_encoding(tmp_path):
    reading = read_source(written(tmp_path, "t.csv", "text\nGröße\nschön\nüber\n".encode() + b"kaputt \xe9\x80\n"))
    assert texts(reading) == ["Größe", "schön", "über"]
    assert skipped(reading) == [Skipped("row 4", "broken UTF-8: byte 0xe9 at character 8 of the text")]


def test_a_skipped_row_names_its_file_among_several(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,text\n1,Some words\n2\n3,More words\n")
    both = read_source([tmp_path / "a.csv", tmp_path / "b.csv"])
    origins = [item.origin for item in both if isinstance(item, Skipped)]
    assert origins == [f"{tmp_path / name}, row 2" for name in ("a.csv", "b.csv")]
    assert [item.origin for item in read_source(tmp_path / "a.csv") if isinstance(item, Skipped)] == ["row 2"]

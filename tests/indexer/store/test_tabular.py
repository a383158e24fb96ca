"""A workbook holds the values of an export; no cell of it or of a CSV file is a formula that would run."""

import csv
import gc
import io
import json
import tempfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store import tabular
from sonde.indexer.store.tabular import MOST_CHARS, Formulas, Workbook, unquoted
from sonde.pipelines.label.correction_files import read_corrections, write_corrections
from sonde.pipelines.label.corrections import Correction
from sonde.pipelines.search.tables import to_csv

METADATA = {
    "stars": 5, "price": -1.5, "card": 2**60, "fresh": True, "day": date(2026, 4, 1), "old": date(1815, 6, 18),
    "at": datetime(2026, 4, 1, 12, 30), "tags": ["a", "ü"], "code": "007", "sum": "=1+1", "site": "http://a.b/c",
}  # fmt: skip


@pytest.fixture
def mixed(tmp_path: Path) -> Collection:
    documents = [Document("naïve café", key="12", metadata=METADATA), Document("x" * 40_000, "long", key="b")]
    encoder: Any = FakeEncoder()
    return index(documents, tmp_path / "c.sonde", encoder=encoder)


def test_values_keep_their_types_and_no_text_becomes_a_formula_a_link_or_a_number(
    mixed: Collection, tmp_path: Path
) -> None:
    mixed.tag("kept", ids=["12"])
    notes: list[str] = []
    assert mixed.export(tmp_path / "c.xlsx", progress=lambda each: notes.append(str(each))) == 2
    sheet = openpyxl.load_workbook(tmp_path / "c.xlsx")["documents"]
    header, first, second = sheet.iter_rows()
    row = dict(zip((cell.value for cell in header), first, strict=True))
    expected = {"id": "12", "title": None, "text": "naïve café", **METADATA, "tag:kept": True}
    expected |= {"card": str(2**60), "day": datetime(2026, 4, 1), "old": "1815-06-18", "tags": '["a", "ü"]'}
    assert {name: cell.value for name, cell in row.items()} == expected
    assert {row[name].data_type for name in ("sum", "site", "code", "id")} == {"s"}
    assert not any(cell.hyperlink for cell in first)
    assert (row["day"].number_format, row["at"].number_format) == ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss")
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", f"A1:{first[-1].coordinate[:-1]}3")
    assert [sheet.column_dimensions[column].width > 30 for column in "ABCD"] == [False, True, True, False]
    assert second[2].value == "x" * (MOST_CHARS - 1) + "…"
    assert notes[-1] == (
        "note: 1 cell had more than the 32,767 characters that Excel can hold, and ends in …; .csv, .jsonl and "
        ".parquet files hold the whole texts"
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_any_text_comes_back(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = io.BytesIO()
        book = Workbook(out, ["text"], folder)
        book.write([{"text": text}])
        book.close()
    (_, (cell,)) = openpyxl.load_workbook(out)["documents"].iter_rows()
    # XML reads \r as \n, and openpyxl leaves the escapes of control characters (ECMA-376, ST_Xstring) as they are.
    unescaped = unescape(cell.value) if isinstance(cell.value, str) else ""
    assert cell.data_type in "sn" and unescaped.replace("\r", "\n") == text.replace("\r", "\n")


def test_emoji_count_twice_as_in_excel() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = io.BytesIO()
        book = Workbook(out, ["text"], folder)
        book.write([{"text": "😀" * 16_383}, {"text": "😀" * 16_384}])
        book.close()
    assert book.cut == 1
    values = [cell.value for (cell,) in openpyxl.load_workbook(out)["documents"].iter_rows()]
    assert values == ["text", "😀" * 16_383, "😀" * 16_383 + "…"]


def test_what_does_not_fit_is_refused_and_leaves_nothing(
    mixed: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with pytest.raises(UsageError, match=r"a workbook has no room for vectors: write a .parquet file"):
        mixed.export(tmp_path / "v.xlsx", vectors=True)
    monkeypatch.setattr(tabular, "MOST_ROWS", 1)
    with pytest.raises(SondeError, match=r"a workbook holds at most 1 rows: write a .csv or .parquet file instead"):
        mixed.export(tmp_path / "v.xlsx")
    gc.collect()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.sonde", "temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_workbook_leaves_out_columns_without_a_value_only_if_it_is_asked_to(
    mixed: Collection, tmp_path: Path
) -> None:
    docs, path = np.array(sorted(mixed.numbers(["b"]).values())), tmp_path / "c.xlsx"
    assert mixed.export_numbered(docs, path, filled=True) == 1
    book = openpyxl.load_workbook(path)
    assert [cell.value for cell in book["documents"][1]] == ["id", "title", "text"]
    assert [[cell.value for cell in row] for row in book["left out"].iter_rows()] == [
        [f"11 columns left out, because no document here has a value: {', '.join(METADATA)}"]
    ]
    again: Any = index(path, tmp_path / "d.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert len(again) == 1, "the second sheet is not read as the table"
    for options in ({"filled": True, "columns": ["id", "stars"]}, {}):
        mixed.export_numbered(docs, path, **options)  # type: ignore[arg-type]
        book = openpyxl.load_workbook(path)
        assert [cell.value for cell in book["documents"][1]] == options.get("columns", mixed.export_columns())
        assert book.sheetnames == ["documents"]
    mixed.export_numbered(docs[:0], tmp_path / "none.xlsx", filled=True)
    assert len(openpyxl.load_workbook(tmp_path / "none.xlsx")["documents"][1]) == len(mixed.export_columns())


RUN = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "  =1", "\u00a0=1", "＝1", "=", "--5",
       "+1e", "-5 apples", "-1,2;=x", "=1"]  # fmt: skip
KEPT = ["-", " - ", "--", "-5", "+1.5e3", "-.5", " -3 ", "-1,000.25", "+4%", "'=1", "a=1", "", "plain", "1-2", "(=1)"]
NOTE = (
    "note: an apostrophe was put before 3 cells that a spreadsheet would run as a formula; .jsonl and .parquet files "
    "hold the unchanged texts"
)
AGAIN = ": use one of these to index the export again"


@pytest.mark.parametrize("text", RUN)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert Formulas().cell(text) == f"'{text}"
    assert Formulas(raw=True).cell(text) == text


@pytest.mark.parametrize("value", [*KEPT, -5, -1.5, True, None])
def test_numbers_and_other_cells_stay_as_they_are(value: Any) -> None:
    formulas = Formulas()
    assert formulas.cell(value) is value
    assert formulas.note(".jsonl") == ""


@given(st.text())
def test_no_cell_begins_as_a_formula_unless_it_is_a_number(text: str) -> None:
    cell = Formulas().cell(text)
    if cell.strip()[:1] in set("=+-@＝＋－＠") - {""} or cell[:1] in set("\t\r\n"):
        assert cell.strip() in ("-", "--", "+") or isinstance(float(cell.replace(",", "").replace("%", "")), float)
    assert cell in (text, f"'{text}")


def test_metadata_named_like_other_columns_keep_columns_of_their_own(tmp_path: Path) -> None:
    """`text` becomes `metadata.text`, unless a field is called that already."""
    metadata = {"text": 1, "metadata.text": 2, "metadata.metadata.text": 3, "metadata.x": 4, "x": 5, "score": 6}
    encoder: Any = FakeEncoder()
    made = index([Document("red pens", key="a", metadata=metadata)], tmp_path / "c.sonde", encoder=encoder)
    expected = {"metadata.metadata.metadata.text": 1} | {name: n for name, n in metadata.items() if name != "text"}
    for name in ("c.csv", "c.jsonl", "c.parquet"):
        made.export(tmp_path / name)
    (row,) = csv.DictReader((tmp_path / "c.csv").open())
    assert {name: row[name] for name in expected} == {name: str(n) for name, n in expected.items()}
    row = json.loads((tmp_path / "c.jsonl").read_text())
    assert {name: row[name] for name in expected} == expected
    row = pq.read_table(tmp_path / "c.parquet").to_pylist()[0]
    assert {name: row[name] for name in expected} == expected
    (row,) = csv.DictReader(to_csv(made.search("red pens", mode="lexical")).decode().splitlines())
    expected["metadata.score"] = expected.pop("score")
    assert {name: row[name] for name in expected} == {name: str(n) for name, n in expected.items()}


def test_corrections_as_csv_are_quoted_and_read_back(tmp_path: Path) -> None:
    given = [Correction("=1+1", ("@label",)), Correction("-5", ("+x",)), Correction("b", ())]
    said: list[Any] = []
    write_corrections(given, tmp_path / "c.csv", said.append)
    assert said == [NOTE.replace(" and .parquet", "")]
    assert (tmp_path / "c.csv").read_text().split() == ["id,label", "'=1+1,'@label", "-5,'+x", "b,none", "of", "these"]
    assert read_corrections(tmp_path / "c.csv") == {"=1+1": ["@label"], "-5": ["+x"], "b": ["none of these"]}
    write_corrections(given, tmp_path / "c.jsonl", said.append)
    assert len(said) == 1
    assert read_corrections(tmp_path / "c.jsonl") == read_corrections(tmp_path / "c.csv")


@pytest.mark.parametrize("text", RUN)
def test_an_apostrophe_before_a_formula_is_taken_away_again(text: str) -> None:
    assert unquoted(Formulas().cell(text)) == text


@pytest.mark.parametrize("text", ["'plain", "'-5", "'", ""])
def test_other_apostrophes_stay(text: str) -> None:
    assert unquoted(text) == text


@pytest.fixture
def made(tmp_path: Path) -> Collection:
    rows = [{"id": "=1+1", "title": "-5", "text": "=HYPERLINK(1) red", "=column": -7}]
    encoder: Any = FakeEncoder()
    return index(rows, tmp_path / "c.sonde", text="text", id="id", title="title", encoder=encoder)


def test_an_export_says_what_it_changed(made: Collection, tmp_path: Path) -> None:
    said: list[Any] = []
    made.export(tmp_path / "safe.csv", progress=said.append)
    assert said == [NOTE + AGAIN]
    with (tmp_path / "safe.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["id", "title", "text", "'=column"],
            ["'=1+1", "-5", "'=HYPERLINK(1) red", "-7"],
        ]
    made.export(tmp_path / "raw.csv", raw_formulas=True, progress=said.append)
    made.export(tmp_path / "all.jsonl", progress=said.append)
    assert said == [NOTE + AGAIN]
    assert (tmp_path / "raw.csv").read_text() == "id,title,text,=column\n=1+1,-5,=HYPERLINK(1) red,-7\n"
    assert '"id": "=1+1"' in (tmp_path / "all.jsonl").read_text()


@pytest.mark.parametrize("file", ["e.jsonl", "e.parquet", "e.csv"])
def test_an_export_that_is_indexed_again_has_equal_metadata(tmp_path: Path, file: str) -> None:
    """CSV needs `raw_formulas`: a reader cannot tell the export's apostrophe from one that a text begins with."""
    notes = ["=1+1", "'@property' fails", "'-v", "plain"]
    rows = [{"id": str(place), "text": f"red {place}", "note": note} for place, note in enumerate(notes)]
    encoder: Any = FakeEncoder()
    index(rows, tmp_path / "s.sonde", encoder=encoder).export(tmp_path / file, raw_formulas=True)
    again = index(tmp_path / file, tmp_path / "a.sonde", encoder=encoder)
    assert [row["note"] for row in again.rows()] == notes


def test_an_index_keeps_the_apostrophes_of_a_table(tmp_path: Path) -> None:
    """Those of an export too: stripping them would change texts of other people, such as '@property' fails."""
    (tmp_path / "t.csv").write_text("id,text,note\n1,'@property' fails,'=1+1\n")
    encoder: Any = FakeEncoder()
    (row,) = index(tmp_path / "t.csv", tmp_path / "t.sonde", encoder=encoder).rows()
    assert (row["text"], row["note"]) == ("'@property' fails", "'=1+1")


def test_hits_as_csv(made: Collection) -> None:
    lines = to_csv(made.search("red")).decode().splitlines()
    assert lines[0].endswith(",text,'=column")
    assert ",'=HYPERLINK(1) red,'=HYPERLINK(1) red,-7" in lines[1]
    assert lines[1].startswith("1,'=1+1,-5,")


def test_the_command(
    made: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inject(monkeypatch, FakeEncoder())
    sonde: Command = command(capsys, monkeypatch)
    path = tmp_path / "e.csv"
    assert sonde("export", made.path, "--to", path).said == [NOTE + AGAIN, f"1 document written to {path}"]
    assert sonde("export", made.path, "--to", path, "--raw-formulas").said == [f"1 document written to {path}"]

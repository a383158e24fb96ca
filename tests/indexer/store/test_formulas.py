"""CSV files hold no cell that a spreadsheet would run as a formula."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st

from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.store.spreadsheets import Formulas, unquoted
from sonde.pipelines.label.correction_files import read_corrections, write_corrections
from sonde.pipelines.label.corrections import Correction
from sonde.pipelines.search.tables import to_csv

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

"""CSV files hold no cell that a spreadsheet would run as a formula."""

import csv
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st

from sonde.app.api import Collection, index
from sonde.indexer.store.formulas import Formulas
from sonde.pipelines.search.results import to_csv

RUN = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "  =1", "\u00a0=1", "＝1", "-", "--5",
       "+1e", "-5 apples", "-1,2;=x", "=1"]  # fmt: skip
KEPT = ["-5", "+1.5e3", "-.5", " -3 ", "-1,000.25", "+4%", "'=1", "a=1", "", "plain", "1-2", "(=1)"]
NOTE = (
    "note: an apostrophe was put before 3 cells that a spreadsheet would run as a formula; .jsonl and .parquet files "
    "hold the unchanged texts"
)


@pytest.mark.parametrize("text", RUN)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert Formulas().cell(text) == f"'{text}"
    assert Formulas(raw=True).cell(text) == text


@pytest.mark.parametrize("value", [*KEPT, -5, -1.5, True, None])
def test_numbers_and_other_cells_stay_as_they_are(value: Any) -> None:
    formulas = Formulas()
    assert formulas.cell(value) is value
    assert formulas.note() == ""


@given(st.text())
def test_no_cell_begins_as_a_formula_unless_it_is_a_number(text: str) -> None:
    cell = Formulas().cell(text)
    if cell.strip()[:1] in set("=+-@＝＋－＠") - {""} or cell[:1] in set("\t\r\n"):
        float(cell.replace(",", "").replace("%", ""))
    assert cell in (text, f"'{text}")


@pytest.fixture
def made(tmp_path: Path) -> Collection:
    rows = [{"id": "=1+1", "title": "-5", "text": "=HYPERLINK(1) red", "=column": -7}]
    encoder: Any = FakeEncoder()
    return index(rows, tmp_path / "c.sonde", text="text", id="id", title="title", encoder=encoder)


def test_an_export_says_what_it_changed(made: Collection, tmp_path: Path) -> None:
    said: list[Any] = []
    made.export(tmp_path / "safe.csv", progress=said.append)
    assert said == [NOTE]
    with (tmp_path / "safe.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["id", "title", "text", "'=column"],
            ["'=1+1", "-5", "'=HYPERLINK(1) red", "-7"],
        ]
    made.export(tmp_path / "raw.csv", raw_formulas=True, progress=said.append)
    made.export(tmp_path / "all.jsonl", progress=said.append)
    assert said == [NOTE]
    assert (tmp_path / "raw.csv").read_text() == "id,title,text,=column\n=1+1,-5,=HYPERLINK(1) red,-7\n"
    assert '"id": "=1+1"' in (tmp_path / "all.jsonl").read_text()


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
    assert sonde("export", made.path, "--to", path).said == [NOTE, f"1 document written to {path}"]
    assert sonde("export", made.path, "--to", path, "--raw-formulas").said == [f"1 document written to {path}"]

"""Types of columns: months and seasons, amounts with signs, and codes that look like decimal numbers."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.errors import UsageError
from sonde.indexer.readers import Reading, ReadOptions, read_source
from sonde.indexer.readers.column_types import decide_type

MARCH, APRIL, MAY = date(2026, 3, 1), date(2026, 4, 1), date(2026, 5, 1)


def table(folder: Path, cells: list[str]) -> Path:
    path = folder / "t.csv"
    path.write_text("text;when\n" + "".join(f"Text {n} is here.;{cell}\n" for n, cell in enumerate(cells)))
    return path


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2026-04", "2026-05", ""], [APRIL, MAY, None]),
        (["2026/04", "2026/05"], [APRIL, MAY]),
        (["04/2026", "05/2026"], [APRIL, MAY]),
        (["Apr 2026", "May 2026", "mar 2026"], [APRIL, MAY, MARCH]),
        (["April 2026", "May 2026", "n/a", "March 2026"], [APRIL, MAY, None, MARCH]),
        (["2026年4月", "2026年05月"], [APRIL, MAY]),
        (["2026年4月1日", "2026年05月01日"], [APRIL, MAY]),
        (["2026년 4월 1일", "2026년 5월 1일"], [APRIL, MAY]),
        (["2026年4月1日 10:30"], [datetime(2026, 4, 1, 10, 30)]),
        (["May 2026"], [MAY]),
        (["2009-10"], [date(2009, 10, 1)]),  # one value alone is a month
        (["2009-10", "2010-11", "2009-11"], [date(2009, 10, 1), date(2010, 11, 1), date(2009, 11, 1)]),
    ],
)
def test_months_are_their_first_days(tmp_path: Path, cells: list[str], expected: list[date | None]) -> None:
    reading = read_source(table(tmp_path, cells))
    assert reading.columns.metadata == {"when": "date"}
    assert [item.metadata["when"] for item in reading if isinstance(item, Document)] == expected


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["2026-04", "05/2026", "June 2026"], True),  # several forms
        (["Apr 2026", "June 2026"], True),
        (["2026-04", "2026-05-03"], True),
        (["2026年4月1日", "2026-05-03"], True),
        (["2009-10", "2010-11", "2010-11"], False),  # seasons
        (["2010-11", "2011-12", "2012-13"], False),
        (["2009/10", "2010/11"], False),
        (["1812-04", "1812-05"], False),
        (["2026-13", "2026-14"], False),
        (["Windows 2019", "Windows 2022"], False),
    ],
)
def test_what_is_not_clearly_a_month_stays_text(tmp_path: Path, cells: list[str], said: bool) -> None:
    reading = read_source(table(tmp_path, cells), options=ReadOptions(id=None))
    assert reading.columns.metadata == {"when": "text"}
    assert reading.columns.dates == (("when",) if said else ())
    assert [item.metadata["when"] for item in reading if isinstance(item, Document)] == cells


def test_a_later_value_in_another_form_is_kept_as_text() -> None:
    kind = decide_type(["2026-04", "2026-05"], textual=False)
    assert kind is not None
    assert (kind.value("2026-06"), kind.value("06/2026"), kind.value("2101-01"), kind.value("-")) == (
        date(2026, 6, 1), "06/2026", "2101-01", None,
    )  # fmt: skip


def read(folder: Path, cells: list[str], kind: str | None) -> Reading:
    path = folder / "t.csv"
    path.write_text("text;x\n" + "".join(f"Text {n} is here.;{cell}\n" for n, cell in enumerate(cells)))
    return read_source(path, options=ReadOptions(type={"x": kind} if kind else {}))


def values(reading: Reading) -> list[Any]:
    return [item.metadata["x"] for item in reading if isinstance(item, Document)]


@pytest.mark.parametrize(
    ("kind", "cells", "expected"),
    [
        ("real", ["544,96 €", "1.200,00 €", "-3,50€", "7"], [544.96, 1200.0, -3.5, 7.0]),
        ("real", ["CHF 12.50", "CHF 1,000.25", "CHF-3"], [12.5, 1000.25, -3.0]),
        ("real:,", ["€ 99,00", "€1.234", "-€ 5,5", "n/a"], [99.0, 1234.0, -5.5, None]),
        ("real", ["12 %", "3.5%", "%"], [12.0, 3.5, None]),
        ("real", ["$1,234.50", "$ 3"], [1234.5, 3.0]),
        ("integer", ["5 EUR", "12\u00a0EUR", "EUR 7", "1.5 EUR"], [5, 12, 7, None]),
        ("real", ["544.96 €", "3 €", "5 $", "7 kg", "€ 1"], [544.96, 3.0, None, None, 1.0]),
        ("real", ["1.5", "2.5", "5 €"], [1.5, 2.5, None]),
    ],
)
def test_one_sign_is_ignored_in_a_column_with_a_type(
    tmp_path: Path, kind: str, cells: list[str], expected: list[Any]
) -> None:
    assert values(read(tmp_path, cells, kind)) == expected


def test_without_a_type_the_column_stays_text(tmp_path: Path) -> None:
    assert values(read(tmp_path, ["544,96 €", "12 %", "CHF 3"], None)) == ["544,96 €", "12 %", "CHF 3"]


@pytest.mark.parametrize("cells", [["5 kg", "7 kg"], ["AB 5", "AB 7"], ["eur 5", "eur 6"], ["5 € 6", "€ 5 €"]])
def test_other_words_are_no_signs(tmp_path: Path, cells: list[str]) -> None:
    with pytest.raises(UsageError, match=f"no value of the column 'x' is a number; the first one is '{cells[0]}'"):
        read(tmp_path, cells, "real")


def test_a_filter_works_after_its_advice_is_followed(tmp_path: Path, sonde: Command) -> None:
    path, to = tmp_path / "t.csv", tmp_path / "t.sonde"
    path.write_text("id;text;Betrag\n" + "".join(f"{n};Rechnung Nummer {n};{n}44,96 €\n" for n in range(1, 6)))
    sonde("index", path, "--to", to)
    for number in (300, 300.5):
        advice = "index the file again with a type, such as --type Betrag=real,"
        sonde("count", to, "--where", f"Betrag > {number}").refused(advice, code=2)
    said = "no value of the column 'Betrag' is an integer; the first one is '144,96 €': give it another --type, such as"
    sonde("index", path, "--to", to, "--type", "Betrag=integer").refused(f"{said} real", code=2)
    ran = sonde("index", path, "--to", to, "--type", "Betrag=real")
    assert "note: Betrag changes from type text to real, as set" in ran.said
    assert sonde("count", to, "--where", "Betrag > 300").out == "3 documents\n"
    path.write_text("id;text;Betrag\n9;Noch eine Rechnung;1.000,50 €\n")
    sonde("index", path, "--to", to)
    with Collection.open(to) as collection:
        assert collection.get("9").metadata == {"Betrag": 1000.5}


def coded_table(path: Path, header: str, values: list[str]) -> Path:
    rows = "".join(f"{value},a paper about number {n}\n" for n, value in enumerate(values))
    path.write_text(f"{header},abstract\n{rows}")
    return path


@pytest.mark.parametrize("header", ["arXiv ID", "paper_id", "Code", "part ref"])
def test_codes_stay_as_they_are_written_and_can_be_ids(tmp_path: Path, header: str) -> None:
    codes = ["2510.20470", "2510.2047", "2601.00001"]
    made = index(coded_table(tmp_path / "p.csv", header, codes), tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert sorted(row["id"] for row in made.rows()) == sorted(codes)


def test_repeating_codes_are_text_and_can_be_filtered(tmp_path: Path) -> None:
    source = coded_table(tmp_path / "p.csv", "model code", ["1.10", "1.1", "1.10"])
    made = index(source, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert made.fields() == {"model code": "text"}
    assert made.matching("\"model code\" = '1.10'", k=0)[0] == 2


@pytest.mark.parametrize(
    ("header", "values", "kind"),
    [("price", ["19.90", "5.50", "7.00"], "real"), ("order amount", ["1.10", "2.5", "2.5"], "real")],
)
def test_numbers_stay_numbers(tmp_path: Path, header: str, values: list[str], kind: str) -> None:
    assert read_source(coded_table(tmp_path / "p.csv", header, values)).columns.metadata == {header: kind}


def test_whole_ids_with_a_point_stay_ids(tmp_path: Path) -> None:
    assert read_source(coded_table(tmp_path / "p.csv", "id", ["1.0", "2.0", "3.0"])).columns.id == "id"

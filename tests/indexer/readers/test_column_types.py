"""Types of columns, given or found: how cells are read, what does not fit; amounts, months, and codes with a point."""

import csv
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st

from sonde.app.api import Collection, index
from sonde.indexer.document import Document, Value
from sonde.indexer.errors import Message, UsageError
from sonde.indexer.readers import Reading, ReadOptions, read_source
from sonde.indexer.readers.coercion import coerced
from sonde.indexer.readers.column_types import decide_type
from sonde.indexer.readers.values import cell_text, natural


def table(folder: Path, cells: list[str]) -> Path:
    path = folder / "t.csv"
    path.write_text("text;x\n" + "".join(f"Text {n} is here.;{cell}\n" for n, cell in enumerate(cells)))
    return path


def read(folder: Path, cells: list[str], kind: str | None, column: str = "x", **options: Any) -> Reading:
    return read_source(table(folder, cells), options=ReadOptions(type={column: kind} if kind else {}, **options))


def values(reading: Reading) -> list[Any]:
    return [item.metadata["x"] for item in reading if isinstance(item, Document)]


CELLS: dict[str, tuple[str, list[str], list[Value], int]] = {
    "whole": ("integer", ["5", "unknown", "n/a", "", "1,234", "4.0", "007"], [5, None, None, None, 1234, 4, 7], 1),
    "odd": ("integer", ["1", "4.5", "1_0", "²", str(2**63), "1" * 5000], [1, *[None] * 5], 5),
    "plain": ("real", ["5", "4.5", "many", "1e3", "inf"], [5.0, 4.5, None, 1000.0, None], 2),
    "comma": ("real", ["1,5", "2,25", "cheap", "1.000,5"], [1.5, 2.25, None, 1000.5], 1),
    "thousandths": ("real", ["1.234", "2.345"], [1.234, 2.345], 0),
    "flag": ("boolean", ["yes", "0", "1", "maybe", "F", "TRUE"], [True, False, True, None, False, True], 1),
    "list": ("list", ['["a", 1]', "a", "[]"], [["a", 1], None, []], 1),
    "version": ("text", ["1.10", "1.1", "yes", "n/a"], ["1.10", "1.1", "yes", "n/a"], 0),
    "iso": ("date", ["2024-04-03", "soon", "-"], [date(2024, 4, 3), None, None], 1),
    "dotted": ("date", ["31.12.2023", "03.04.2024", "99.99.2024"], [date(2023, 12, 31), date(2024, 4, 3), None], 1),
    "american": ("date", ["12/31/2023", "03/04/2024"], [date(2023, 12, 31), date(2024, 3, 4)], 0),
    "month": ("date", ["Apr 2024", "April 2024?", "May 2024"], [date(2024, 4, 1), None, date(2024, 5, 1)], 1),
    "british": ("date:%d/%m/%Y", ["03/04/2024", "2024-05-06", "0/1/2"], [date(2024, 4, 3), date(2024, 5, 6), None], 1),
    "year": ("date:%Y", ["2024", "24"], [date(2024, 1, 1), None], 1),
    "clock": ("date:%d.%m.%y %H:%M", ["03.04.24 05:06"], [datetime(2024, 4, 3, 5, 6)], 0),
}  # fmt: skip
"""Columns with their types, cells, what these become, and how many do not fit."""


def test_cells_become_values_of_the_type(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", *CELLS])
        for row in range(7):
            cells = [cells[row] if row < len(cells) else "" for _, cells, _, _ in CELLS.values()]
            writer.writerow([f"Text {row} is here.", *cells])
    types = {name: kind for name, (kind, *_) in CELLS.items()}
    reading = read_source(tmp_path / "t.csv", options=ReadOptions(type=types))
    assert reading.columns.metadata == {name: kind.partition(":")[0] for name, kind in types.items()}
    rows = [item.metadata for item in reading if isinstance(item, Document)]
    found = {name: [row[name] for row in rows][: len(CELLS[name][1])] for name in CELLS}
    assert found == {name: expected for name, (_, _, expected, _) in CELLS.items()}
    lost = {column: misfits.count for _, column, misfits in reading.misfits()}
    assert lost == {name: count for name, (*_, count) in CELLS.items() if count}


@pytest.mark.parametrize(
    ("kind", "cells", "expected"),
    [
        ("integer", [5, "5", 5.0, 5.5, True, "n/a", None, [5]], [5, 5, 5, None, None, None, None, None]),
        ("real", [5, 5.5, "2.5"], [5.0, 5.5, 2.5]),
        ("boolean", [True, 1, 0, "no", 2], [True, True, False, False, None]),
        ("text", [1.1, "1.10", True, [1], None], ["1.1", "1.10", "true", "[1]", None]),
        ("list", [["a"], "a", "[1]"], [["a"], None, [1]]),
        ("date:%Y", [2024, "2025"], [date(2024, 1, 1), date(2025, 1, 1)]),
    ],
)
def test_so_do_values_of_python(kind: str, cells: list[Any], expected: list[Value]) -> None:
    source = [{"text": f"Text {n}.", "x": cell} for n, cell in enumerate(cells)]
    assert values(read_source(source, options=ReadOptions(type={"x": kind}))) == expected


def test_what_does_not_fit_is_counted_in_every_pass_anew(tmp_path: Path) -> None:
    reading = read(tmp_path, ["1", "soon", "later", "2"], "integer")
    for _ in range(2):
        assert len(values(reading)) == 4
        ((source, column, found),) = reading.misfits()
        assert source == str(tmp_path / "t.csv")
        assert found.describe(column) == (
            "2 of 4 values of 'x' do not fit the type integer and were left out; the first is 'soon' (row 2)"
        )


@pytest.mark.parametrize(
    ("kind", "cells", "said"),
    [
        ("number", ["1"], r"the type of 'x' is 'number'; it must be one of text, integer, real"),
        ("intger", ["1"], r"the type of 'x' is 'intger' \(did you mean 'integer'\?\)"),
        ("date:", ["2024"], "the type of 'x' is 'date:'"),
        ("date:%d", ["3"], "the type of 'x' is 'date:%d'"),
        ("date:%Q%Y", ["3"], "the type of 'x' is 'date:%Q%Y'"),
        ("integer", ["a", "b"], r"no value of the column 'x' is an integer; the first one is 'a': give"),
        ("date:%d.%m.%Y", ["3/4/24"], r"no value of the column 'x' is a date of the form %d.%m.%Y; the first one is"),
        ("date", ["03/04/2024", "05/06/2024"], "'03/04/2024' in the column 'x' can be read in two ways: give the"),
        ("real", ["1,234", "5,678"], "'1,234' in the column 'x' can be read in two ways: give the decimal separator"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(tmp_path: Path, kind: str, cells: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        values(read(tmp_path, cells, kind))
    assert error.value.field == "type"


@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        ("y", {}, "there is no column 'y' to give a type; there are text, x"),
        ("text", {}, "the column 'text' is the text, so it cannot have a type: leave it out of type$"),
        ("x", {"id": "x"}, "the column 'x' is the id, so it cannot have a type: leave it out of type$"),
        ("x", {"title": "x"}, "the column 'x' is the title, so it cannot have a type: leave it out of type$"),
        ("x", {"leave_out": ("x",)}, "the column 'x' is left out, so it cannot have a type: leave it out of type$"),
    ],
)
def test_a_column_that_can_have_no_type_is_refused(tmp_path: Path, column: str, options: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read(tmp_path, ["1"], "text", column=column, **options)


def test_types_of_earlier_runs_that_do_not_fit_are_no_error(tmp_path: Path) -> None:
    path = table(tmp_path, ["a", "b"])
    reading = read_source(path, options=ReadOptions(type_hint={"x": "integer", "gone": "date"}))
    assert (values(reading), [found.count for _, _, found in reading.misfits()]) == ([None, None], [2])


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([*map(str, range(20)), "unknown"], "kept as text: x ('unknown' is not an integer); to give a column another"),
        ([*["1.5"] * 5, *map(str, range(20)), "?!"], "kept as text: x ('?!' is not a number)"),
        ([*["2024-04-03"] * 12, "2024-13-03"], "kept as text: x ('2024-13-03' is not a date)"),
        ([*["yes", "no"] * 8, "maybe"], "kept as text: x ('maybe' is not true or false)"),
        ([*[f"{day}/04/2024" for day in range(10, 25)], "32/04/2024"], "kept as text: x ('32/04/2024' is not a date)"),
        ([*["1.234,5"] * 15, "EUR 12"], "kept as text: x ('EUR 12' is not a number)"),
        (["1.1", "1.10", "2.0"], "1.1 and 1.10 are one number in x; to keep them apart, set type to text"),
        ([*map(str, range(1000, 1020)), "0999"], ""),  # codes
        ([*map(str, range(20)), *"abc"], ""),
        ([*map(str, range(8)), "a"], ""),
    ],
)
def test_a_column_of_text_that_is_nearly_of_a_type_is_named(tmp_path: Path, cells: list[str], said: str) -> None:
    described = str(Message(read_source(table(tmp_path, cells)).columns.describe()))
    assert said in described
    assert said or "kept as text" not in described
    assert "number in x" in said or "one number" not in described


def test_numbers_beside_words_in_python_data_are_named_too() -> None:
    source = [{"text": f"Text {n}.", "x": value} for n, value in enumerate([*range(20), "n/a"])]
    assert "kept as text: x ('n/a' is not an integer)" in read_source(source).columns.describe()


@given(st.sampled_from(("integer", "real", "real:,", "boolean", "date", "date:%d/%m/%y", "list", "text")), st.lists(
    st.one_of(st.none(), st.text(max_size=12), st.text("0123456789.,-/: eE[]", max_size=12), st.integers(), st.floats())
))  # fmt: skip
def test_any_cell_fits_or_stays_a_text(kind: str, cells: list[Any]) -> None:
    try:
        found = coerced("x", kind, [natural(cell) for cell in cells])
    except UsageError:
        return
    for cell in cells:
        value = found.value(cell)
        assert found.fits(value) or value == cell_text(natural(cell))
        assert found.kind != "text" or cell_text(value) == cell_text(natural(cell))


@pytest.mark.parametrize(
    "words", ["oui non", "Sí NO", "JA nein", "sim não", "да Нет", "はい いいえ", "是 否", "네 아니요", "evet HAYIR"]
)
def test_yes_and_no_of_other_languages_are_booleans_if_the_user_says_so(tmp_path: Path, words: str) -> None:
    yes, no = words.split()
    path = tmp_path / "t.csv"
    path.write_text(f"text,paid\nThe first,{yes}\nThe second,{no}\nThe third,\n")
    assert read_source(path).columns.metadata == {"paid": "text"}
    given = read_source(path, options=ReadOptions(type={"paid": "boolean"}))
    assert [each.metadata["paid"] for each in given if isinstance(each, Document)] == [True, False, None]


MARCH, APRIL, MAY = date(2026, 3, 1), date(2026, 4, 1), date(2026, 5, 1)


def table_of_months(folder: Path, cells: list[str]) -> Path:
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
    reading = read_source(table_of_months(tmp_path, cells))
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
    reading = read_source(table_of_months(tmp_path, cells), options=ReadOptions(id=None))
    assert reading.columns.metadata == {"when": "text"}
    assert reading.columns.dates == (("when",) if said else ())
    assert [item.metadata["when"] for item in reading if isinstance(item, Document)] == cells


def test_a_later_value_in_another_form_is_kept_as_text() -> None:
    kind = decide_type(["2026-04", "2026-05"], textual=False)
    assert kind is not None
    assert (kind.value("2026-06"), kind.value("06/2026"), kind.value("2101-01"), kind.value("-")) == (
        date(2026, 6, 1), "06/2026", "2101-01", None,
    )  # fmt: skip


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

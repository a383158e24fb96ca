"""Amounts with the sign of a currency or of per cent: numbers in a column that is given such a type."""

from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from sonde.app.api import Collection
from sonde.indexer.document import Document
from sonde.indexer.errors import UsageError
from sonde.indexer.readers import Reading, ReadOptions, read_source


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

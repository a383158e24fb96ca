"""Numbers such as 1.234, which are more than a thousand in most of Europe: they are read as before, with a note."""

from pathlib import Path

import openpyxl
import pytest
from command_line import Command

from sonde.app.api import Collection

NUMBERS = ("1.234", "5.678", "12.500", "2.000", "750")


def table(folder: Path, numbers: tuple[str, ...]) -> Path:
    rows = (f"{n};Der Text mit der Nummer {n};{number}\n" for n, number in enumerate(numbers))
    (folder / "t.csv").write_text("".join(["id;text;Wert\n", *rows]))
    return folder / "t.csv"


def stored(folder: Path) -> list[object]:
    with Collection.open(folder / "t.sonde") as collection:
        return [collection.get(str(n)).metadata["Wert"] for n in range(5)]


@pytest.mark.parametrize("shards", [[], ["--shards", "2"]])
def test_the_note_names_a_number_and_the_type_that_reads_it(tmp_path: Path, sonde: Command, shards: list[str]) -> None:
    path, to = table(tmp_path, NUMBERS), tmp_path / "t.sonde"
    said = (
        "note: 'Wert' is read with a decimal point, so 1.234 is less than 2: if the points separate thousands, "
        "index the file again with a type, such as --type Wert=real:,"
    )
    assert sonde("index", path, "--to", to, *shards).said.count(said) == 1
    assert stored(tmp_path) == [1.234, 5.678, 12.5, 2.0, 750.0]


def test_the_type_corrects_the_stored_numbers(tmp_path: Path, sonde: Command) -> None:
    path, to = table(tmp_path, NUMBERS), tmp_path / "t.sonde"
    sonde("index", path, "--to", to)
    for given in (["--type", "Wert=real:,"], []):
        ran = sonde("index", path, "--to", to, *given)
        assert "decimal point" not in ran.err
        assert stored(tmp_path) == [1234.0, 5678.0, 12500.0, 2000.0, 750.0]


@pytest.mark.parametrize(
    "numbers",
    [
        ("1.234", "5.67", "12.500", "2.000", "750"),
        ("1.234", "5.678", "12.500", "2.000", "7500"),
        ("1.234", "0.678", "12.500", "2.000", "750"),
        ("1", "2", "3", "4", "750"),
        ("1,234", "5,678", "12,500", "2,000", "750"),
    ],
)
def test_other_numbers_get_no_note(tmp_path: Path, sonde: Command, numbers: tuple[str, ...]) -> None:
    assert "decimal point" not in sonde("index", table(tmp_path, numbers), "--to", tmp_path / "t.sonde").err


def sheet(folder: Path, *numbers: object) -> Path:
    book = openpyxl.Workbook()
    for row in [("id", "text", "Wert"), *((n, f"Der Text {n}", number) for n, number in enumerate(numbers))]:
        book.worksheets[0].append(row)
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def test_texts_of_a_worksheet_get_the_note_when_they_become_numbers(tmp_path: Path, sonde: Command) -> None:
    path, to = sheet(tmp_path, *NUMBERS), tmp_path / "t.sonde"
    assert "decimal point" not in sonde("index", path, "--to", to).err
    assert stored(tmp_path) == list(NUMBERS)
    said = "note: 'Wert' is read with a decimal point, so 1.234 is less than 2: if the points separate thousands, "
    ran = sonde("index", path, "--to", to, "--type", "Wert=real")
    assert [line for line in ran.said if line.startswith(said)], ran.err
    assert "decimal point" not in sonde("index", path, "--to", to).err  # the user has been told
    assert "decimal point" not in sonde("index", path, "--to", to, "--type", "Wert=real:.").err
    assert stored(tmp_path) == [1.234, 5.678, 12.5, 2.0, 750.0]
    sonde("index", path, "--to", to, "--type", "Wert=real:,")
    assert stored(tmp_path) == [1234.0, 5678.0, 12500.0, 2000.0, 750.0]


def test_numbers_of_a_worksheet_get_no_note(tmp_path: Path, sonde: Command) -> None:
    path = sheet(tmp_path, 1.234, 5.678, 12.345, 2, 750)
    for given in ([], ["--type", "Wert=real"]):
        assert "decimal point" not in sonde("index", path, "--to", tmp_path / "t.sonde", *given).err


def test_amounts_with_a_sign_get_the_note_too(tmp_path: Path, sonde: Command) -> None:
    path, to = table(tmp_path, tuple(f"{number} €" for number in NUMBERS)), tmp_path / "t.sonde"
    assert "so 1.234 is less than 2:" in sonde("index", path, "--to", to, "--type", "Wert=real").err
    assert "decimal point" not in sonde("index", path, "--to", to, "--type", "Wert=real:,").err
    assert stored(tmp_path) == [1234.0, 5678.0, 12500.0, 2000.0, 750.0]

"""Reports whose table does not begin on the first line: the line of the header is named."""

from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest

from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers import ReadOptions, read_source
from sonde.indexer.readers.delimited import table_start

HEADER = ["id,text,category,stars\n"]
ROWS = [f"{n},My card was declined again,App,{n % 5}\n" for n in range(30)]


@pytest.mark.parametrize(
    ("above", "line"),
    [
        (["Help desk\n", "\n", "January\n"], 4),
        (["Help, desk, all, of, it\n", "January\n"], 3),
        (["Help desk,,,\n", "January,2026-01-02,,\n"], 3),
        (['"Help desk,\n", January, b"\n'], 3),
        ([], 0),
        (["id,text\n"], 0),
        (["a,b,c,d\n"], 0),
    ],
)
def test_the_line_of_the_header(above: list[str], line: int) -> None:
    lines = "".join([*above, *HEADER, *ROWS]).splitlines(keepends=True)
    assert table_start(lines, (",", ";")) == line
    assert table_start([each.replace(",", ";") for each in lines], (",", ";")) == line


def test_texts_with_commas_have_no_table_below() -> None:
    assert table_start(["A text, of sorts.\n", "Another\n", *ROWS], (",",)) == 0
    assert table_start([], (",",)) == 0
    assert table_start([",text\n", *ROWS], (",",)) == 0


def test_the_message_names_the_line_to_begin_with(tmp_path: Path) -> None:
    table = tmp_path / "report.csv"
    table.write_text("".join(["Help, desk\n", "January, 2026\n", "by, anna\n", *HEADER, *ROWS]))
    said = r"instead of 2 \(line 4\); the table seems to begin on line 4: remove the lines above it$"
    with pytest.raises(SondeError, match=said):
        read_source(table)
    table.write_text("".join(["Help desk\n", "January\n", "by anna\n", *HEADER, *ROWS]))
    note = read_source(table).columns.note
    assert note.endswith("; the table seems to begin on line 4: remove the lines above it")


NAMES = ["Nr", "Nachricht", "Bereich", "Sterne"]
CELLS = [[n, "Meine Karte wurde abgelehnt", "App", n % 5] for n in range(1, 31)]


def workbook(folder: Path, *above: Sequence[str | None], header: Sequence[str | None] = NAMES) -> Path:
    book = openpyxl.Workbook()
    for row in [*above, header, *CELLS]:
        book.worksheets[0].append(row)
    book.save(folder / "report.xlsx")
    return folder / "report.xlsx"


@pytest.mark.parametrize(
    ("above", "row"),
    [
        ([["Kundenservice, Mai 2026"], []], 3),
        ([["Kundenservice"], ["Stand:", "01.06.2026"]], 3),
        ([[None, "Kundenservice"]], 2),
    ],
)
def test_a_sheet_with_a_title_names_the_row_to_begin_with(
    tmp_path: Path, above: Sequence[Sequence[str | None]], row: int
) -> None:
    note = read_source(workbook(tmp_path, *above)).columns.note
    assert note == f"sheet 'Sheet'; the table seems to begin on row {row}: remove the rows above it"


def test_names_that_are_not_known_are_found_below_a_title_in_one_cell(tmp_path: Path) -> None:
    odd = ["Vorgang", "Beschwerde", "Bereich", "Sterne"]
    for above, row in (([["Kundenservice"], [], ["Stand:", "01.06.2026"]], 4), ([["Service", "Mai", "2026"]], 0)):
        note = read_source(workbook(tmp_path, *above, header=odd)).columns.note
        hint = f"; the table seems to begin on row {row}: remove the rows above it" if row else ""
        assert note == f"sheet 'Sheet'{hint}"
    for header in (["Beschwerde", None, None, None], ["Nachricht", None, None, None]):
        assert read_source(workbook(tmp_path, header=header)).columns.note == "sheet 'Sheet'"


@pytest.mark.parametrize("above", [[], [[]], [["Nummer", "Text", "Teil", "Wert"]]])
def test_a_sheet_that_begins_with_its_header_gets_no_hint(
    tmp_path: Path, above: Sequence[Sequence[str | None]]
) -> None:
    reading = read_source(workbook(tmp_path, *above))
    assert reading.columns.note == "sheet 'Sheet'"
    assert sum(isinstance(item, Document) for item in reading) == 30 + any(above)


def test_a_column_that_is_not_found_because_of_lines_above_the_header(tmp_path: Path) -> None:
    path = workbook(tmp_path, ["Kundenservice"], [])
    with pytest.raises(
        UsageError, match=r"'Nachricht' does not exist.*; the table seems to begin on row 3: remove the rows"
    ):
        read_source(path, options=ReadOptions(text="Nachricht"))
    table = tmp_path / "report.csv"
    table.write_text("".join(["Help desk\n", "January\n", "by anna\n", *HEADER, *ROWS]))
    with pytest.raises(
        UsageError, match=r"'stars' does not exist.*; the table seems to begin on line 4: remove the lines"
    ):
        read_source(table, options=ReadOptions(title="stars"))

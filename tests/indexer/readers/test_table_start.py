"""Reports whose table does not begin on the first line: the line of the header is named."""

from pathlib import Path

import pytest

from sonde.indexer.errors import SondeError
from sonde.indexer.readers import read_source
from sonde.indexer.readers.table_start import table_start

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

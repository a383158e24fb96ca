"""What is said of columns is one line, whatever their names hold."""

from sonde.indexer.readers.columns import Columns


def test_a_line_break_in_a_name_breaks_no_line() -> None:
    said = Columns(("text",), "a\ntitle", None, None, {"price\nin euro": "real"}).describe()
    assert said == "text: text · title: a title · id: none · metadata: price in euro (real)"

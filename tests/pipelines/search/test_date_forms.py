"""The advice to give a text column of dates a type names the form of the date that stands in the way."""

from datetime import date
from pathlib import Path

import pytest
from command_line import Command

from sonde.app.api import Collection
from sonde.indexer.readers.column_types import date_form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("30.05.2026", "date:%d.%m.%Y"),
        ("30-05-2026", "date:%d-%m-%Y"),
        ("30/05/2026", "date:%d/%m/%Y"),
        ("03/04/2026", "date:%d/%m/%Y"),
        ("05/30/2026", "date:%m/%d/%Y"),
        ("2026/05/30", "date:%Y/%m/%d"),
        ("30.05.2026 14:30", "date:%d.%m.%Y %H:%M"),
        ("30.05.26", "date:%d.%m.%y"),
        ("99.99.2026", "date:%d.%m.%Y"),
        ("30 May 2026", "date:%d %B %Y"),
        ("05/2026", "date:%m/%Y"),
        ("30 Mai 2026", "date"),
    ],
)
def test_the_form_of_a_date(text: str, form: str) -> None:
    assert date_form(text) == form


@pytest.mark.parametrize(("odd", "form"), [("30.05.2026", "%d.%m.%Y"), ("2026/05/30", "%Y/%m/%d")])
def test_the_advice_is_right_for_a_later_file(tmp_path: Path, sonde: Command, odd: str, form: str) -> None:
    path, to = tmp_path / "week.csv", tmp_path / "t.sonde"
    path.write_text("id;text;Datum\n" + "".join(f"{n};Text Nummer {n};2026-05-0{n}\n" for n in range(1, 9)))
    sonde("index", path, "--to", to)
    path.write_text(f"id;text;Datum\n10;Ein Text;2026-05-20\n11;Noch einer;{odd}\n")
    said = f"Datum changes from type date to text, because '{odd}' of document '11'"
    ran = sonde("index", path, "--to", to)
    assert [line for line in ran.said if said in line], ran.err
    advice = f"index the file again with a type, such as --type Datum=date:{form}"
    sonde("count", to, "--where", "Datum >= '2026-05-20'").refused(advice, code=2)
    sonde("count", to, "--by", "Datum", "--period", "month").refused(advice, code=2)
    ran = sonde("index", path, "--to", to, "--type", f"Datum=date:{form}")
    assert "note: Datum changes from type text to date, as set" in ran.said
    assert sonde("count", to, "--where", "Datum >= '2026-05-20'").out == "2 documents\n"
    with Collection.open(to) as collection:
        assert collection.get("11").metadata == {"Datum": date(2026, 5, 30)}

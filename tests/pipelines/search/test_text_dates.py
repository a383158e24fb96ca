"""Dates in a text column: filters that cannot compare them are refused, and the advice names the form in the way."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde import Collection, UsageError, index
from sonde.indexer.readers.column_types import date_form

ROWS = [
    {
        "id": str(number),
        "text": f"Text number {number} is here",
        "opened": f"{1 + number:02}/0{1 + number % 2}/2024" if number != 3 else "unknown",
        "closed": f"2024-0{1 + number % 2}-{1 + number:02}" if number != 3 else "unknown",
        "mixed": f"2024-01-{1 + number:02}" if number < 11 else "12/02/2024",
        "version": f"1.{number}.{10 + number}",
    }
    for number in range(12)
]


@pytest.fixture(params=[None, 2])
def collection(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    encoder: Any = FakeEncoder()
    with index(ROWS, tmp_path / "t.sonde", encoder=encoder, shards=request.param) as made:
        assert {made.info().fields[name] for name in ("opened", "closed", "mixed", "version")} == {"text"}
        yield made


@pytest.mark.parametrize(
    ("where", "first"),
    [
        ("opened < '2024-02'", r"with the date '2024-02': it holds '0\d/0\d/2024', "),
        ("NOT (id = '1' OR '2024' <= opened)", r"with the date '2024': it holds"),
        ("opened BETWEEN '2024-01-01' AND '2024-02-01T12:00'", r"with the date '2024-01-01': it holds"),
        ("opened > DATE '2024-01-01'", r"with the date '2024-01-01': it holds"),
        ("opened >= '05/01/2024'", r"with the date '05/01/2024': it holds"),
        ("mixed > '2024-01-05'", r"it holds '12/02/2024', "),
    ],
)
def test_an_order_of_dates_that_are_not_iso_is_refused(collection: Collection, where: str, first: str) -> None:
    """`delete` with such a filter deleted three times as many documents as were meant, in alphabetical order."""
    for ask in (
        collection.matching,
        lambda given: collection.delete(where=given),
        lambda given: collection.count_by("mixed", given),
    ):
        with pytest.raises(UsageError, match=first) as caught:
            ask(where)
        assert caught.value.field == "where"
    assert "such as read=sonde.ReadOptions(type={'opened': 'date:%d/%m/%Y'})" in str(caught.value) or where.startswith(
        "mixed"
    )
    assert len(collection) == len(ROWS)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("closed < '2024-02'", 6),
        ("closed >= '2024-02-01' AND closed < '2025'", 5),
        ("opened = '01/01/2024'", 1),
        ("opened != '2024-02'", 12),
        ("opened > 'm'", 1),
        ("version >= '1.1.11'", 11),
        ("id < '2024-01-01'", 5),
    ],
)
def test_other_comparisons_of_text_are_as_before(collection: Collection, where: str, count: int) -> None:
    assert collection.matching(where)[0] == count


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

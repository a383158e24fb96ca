"""Columns of months are dates, and seasons such as 2009-10 are not."""

from datetime import date, datetime
from pathlib import Path

import pytest

from sonde.indexer.document import Document
from sonde.indexer.readers import ReadOptions, read_source
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

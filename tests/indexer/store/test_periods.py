"""Periods of dates: their names, and those between two days."""

from datetime import date, timedelta

import pytest

from sonde.indexer.store.fields import PERIODS, Period, period_of, periods_between


def test_names_of_the_periods_of_a_day() -> None:
    assert [period_of(date(2026, 4, 14), period) for period in PERIODS] == [
        "2026", "2026-Q2", "2026-04", "2026-W16", "2026-04-14"
    ]  # fmt: skip
    assert period_of(date(2027, 1, 1), "week") == "2026-W53"  # ISO 8601: this week began in 2026
    assert [period_of(date(2026, month, 1), "quarter")[-1] for month in range(1, 13)] == list("111222333444")


@pytest.mark.parametrize("period", PERIODS)
def test_periods_between_are_those_of_all_days(period: Period) -> None:
    first, last = date(2023, 11, 30), date(2025, 2, 9)
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    found = periods_between(first, last, period, 1000)
    assert found == list(dict.fromkeys(period_of(day, period) for day in days)) == sorted(found)
    assert periods_between(first, last, period, 1) == found[:2]
    end = periods_between(date(9999, 12, 30), date.max, period, 9)
    assert end == list(dict.fromkeys(period_of(day, period) for day in (date(9999, 12, 30), date.max)))

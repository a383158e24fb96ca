"""Periods of dates: years, quarters, months, weeks and days, and what each is called."""

from collections.abc import Callable, Collection
from datetime import date, timedelta
from typing import Any, Literal, get_args

from ..document import Value
from .fields import first_day

Period = Literal["year", "quarter", "month", "week", "day"]
PERIODS: tuple[Period, ...] = get_args(Period)
PRECISION: dict[Period, int] = {"year": 4, "quarter": 7, "month": 7, "week": 10, "day": 10}
"""The first characters of an ISO date that tell in which period it lies."""


def period_of(day: date, period: Period) -> str:
    """Return the period of a day: 2026, 2026-Q2, 2026-04, 2026-W16 (ISO 8601) or 2026-04-14; sorted, in order."""
    if period == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    if period == "quarter":
        return f"{day.year:04d}-Q{_quarter(day)}"
    return day.isoformat()[: PRECISION[period]]


def periods_between(first: date, last: date, period: Period, most: int) -> list[str]:
    """Return all periods from one day to another, both included, in order.

    Args:
        first: A day of the first period.
        last: A day of the last period.
        period: Their length.
        most: Stop after this number of periods plus one, at least 0.
    """
    found: dict[str, None] = {}
    try:
        while first <= last and len(found) <= most:
            found[period_of(first, period)] = None
            first = _NEXT[period](first)
    except (OverflowError, ValueError):  # after the last day that Python knows
        pass
    return list(found)


def name_times(values: Collection[Value]) -> bool:
    """Whether all values are texts that name a month or a day, such as 2024-05; a year alone counts as a number."""
    return bool(values) and all(
        isinstance(value, str) and not value.strip().isdecimal() and first_day(value) is not None for value in values
    )


def by_time(text: Any) -> str:
    """Return the key that sorts texts for which `name_times` is true, in order of time."""
    return str(text).strip()


def _quarter(day: date) -> int:
    return (day.month + 2) // 3


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


_NEXT: dict[Period, Callable[[date], date]] = {
    "year": lambda day: date(day.year + 1, 1, 1),
    "quarter": lambda day: _next_month(day.replace(month=3 * _quarter(day), day=1)),
    "month": _next_month,
    "week": lambda day: day + timedelta(days=7 - day.weekday()),
    "day": lambda day: day + timedelta(days=1),
}
"""The first day of the period after that of a day."""

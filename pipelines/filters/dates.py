"""Dates in filters: a literal is a stretch of time, and stored values are compared with its two ends as text.

The catalog stores dates as "2024-03-01" and times as "2024-03-01T12:00:00" with ".500000" only where it is needed, all
in UTC, so the order of the texts is the order of the times.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

_YEAR_OR_MONTH = re.compile(r"\d{4}(-(0[1-9]|1[0-2]))?")
# Sorts after everything that can continue a date, and before everything that can follow it in time.
AFTER_PERIOD = "~"
# Sorts between a whole second and its fractions.
AFTER_INSTANT = "!"


@dataclass(frozen=True, slots=True)
class Period:
    """The stored texts from `start` up to, but without, `end`."""

    start: str
    end: str


def period(literal: str) -> Period | None:
    """Return what a date literal stands for: a year, a month, a day, or an instant; None if it is no date.

    A stored day counts as its midnight, so "2024-03-01T00:00" is equal to it.
    """
    text = literal.strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        return Period(text, text + AFTER_PERIOD)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return _instant(text)
    return Period(day.isoformat(), day.isoformat() + AFTER_PERIOD)


def _instant(text: str) -> Period | None:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return None
    stored = moment.isoformat()
    start = moment.date().isoformat() if moment.time() == time() else stored
    return Period(start, stored + AFTER_INSTANT)

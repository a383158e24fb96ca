"""Typed metadata: how the catalog stores Python values, how a column's type widens, and periods of dates."""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, get_args

from ..document import Value

STORED_INTEGERS = range(-(2**63), 2**63)
EXACT_INTEGERS = 2**53
"""Integers below this are exact as real numbers."""
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ].*)?)?)?")

Period = Literal["year", "quarter", "month", "week", "day"]
PERIODS: tuple[Period, ...] = get_args(Period)
PRECISION: dict[Period, int] = {"year": 4, "quarter": 7, "month": 7, "week": 10, "day": 10}
"""The first characters of an ISO date that tell in which period it lies."""


@dataclass(frozen=True, slots=True)
class Field:
    """A metadata field: its name as the user wrote it, its column in table `metadata`, and its type."""

    name: str
    column: str
    type: str


def type_of(value: Value) -> str | None:
    """Return the field type of one value, None for a missing one (None, NaN)."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if value in STORED_INTEGERS else "text"
    if isinstance(value, float):
        return "real"
    if isinstance(value, (date, datetime)):
        return "date"
    return "list" if isinstance(value, (list, tuple)) else "text"


def wider_type(known: str | None, new: str | None) -> str | None:
    """Return the narrowest type that holds both: integers become real, anything else mixed becomes text."""
    if known is None or new is None or known == new:
        return known or new
    return "real" if {known, new} == {"integer", "real"} else "text"


def narrowed(text: str, kind: str) -> Value:
    """Return the value of type `kind` that `stored_text` wrote as this text.

    Raises:
        ValueError: There is none: the text would be another one if it were written again.
    """
    if kind == "boolean":
        value: Value = {"true": True, "false": False}.get(text)
    elif kind in ("integer", "real"):
        value = int(text) if kind == "integer" else float(text)
    else:
        value = load_value(text, kind)
    if type_of(value) != kind or stored_text(value) != text:
        raise ValueError(f"{text!r} is no {kind}")
    return value


def store(value: Value, kind: str) -> str | int | float | None:
    """Return what SQLite stores for a value in a column of type `kind`."""
    if type_of(value) is None:
        return None
    if kind == "boolean":
        return int(bool(value))
    if kind == "integer":
        return int(value)  # type: ignore[arg-type]
    if kind == "real":
        return float(value)  # type: ignore[arg-type]
    return stored_text(value)


def stored_text(value: Value) -> str:
    """Return the text form of a value: ISO 8601 in UTC for times, JSON for lists, true and false for booleans."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return json.dumps([json_value(item) for item in value], ensure_ascii=False)
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_INTEGERS:
        return str(int(value))  # an integer that was stored in a column of real numbers before that became text
    return str(value)


def first_day(value: Value) -> date | None:
    """Return the (first) day that a value names: a date, "2024-05-06", "2024-05", "2024" or 2024; None for others."""
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    found = _DATE.fullmatch(str(value).strip()) if value is not None and not isinstance(value, (bool, list)) else None
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1)) if found and found[1] < "9000" else None
    except ValueError:
        return None


def json_value(value: Value) -> Any:
    """Return a value as JSON can hold it: times as text; None for infinity and NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return stored_text(value) if isinstance(value, date) else value


def distinct_names(fields: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """Return a column name for each field: its own, or `metadata.NAME` where another column has taken that.

    If a field is called `metadata.NAME` itself, `metadata.` is put before the other one again.
    """
    names: dict[str, str] = {}
    for field in fields:
        name = field
        while name in taken or (name != field and (name in fields or name in names.values())):
            name = f"metadata.{name}"
        names[field] = name
    return names


def check_text(doc: object, id: object, title: object, text: object, language: object) -> None:
    """Check the types of what the catalog holds of a document.

    Raises:
        TypeError: The catalog is damaged.
    """
    if not all(isinstance(value, str) for value in (id, title, text)) or not isinstance(language, (str, type(None))):
        raise TypeError(f"document {doc} holds a value that is not text")


_STORED = {"text": str, "integer": int, "real": (int, float), "boolean": int, "date": str, "list": str}


def load_value(stored: Any, kind: str) -> Value:
    """Return the Python value of what SQLite stored in a column of type `kind`.

    Raises:
        TypeError: A column of this type does not hold such a value: the catalog is damaged.
        ValueError: A date or a list cannot be read, for the same reason.
    """
    if stored is None:
        return None
    if not isinstance(stored, _STORED[kind]):
        raise TypeError(f"a column of type {kind} holds {type(stored).__name__}")
    if kind == "boolean":
        return bool(stored)
    if kind == "date":
        return datetime.fromisoformat(stored) if "T" in stored else date.fromisoformat(stored)
    return json.loads(stored) if kind == "list" else stored


def canonical(metadata: Mapping[str, Value]) -> str:
    """Return one text for equal metadata, whatever the order of its fields; missing values count as absent."""
    present = {name: [type_of(value), stored_text(value)] for name, value in metadata.items() if type_of(value)}
    return json.dumps(present, sort_keys=True, ensure_ascii=False)


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

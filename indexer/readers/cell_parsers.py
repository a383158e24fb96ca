"""What the string in a cell can mean: a number, a boolean, a list or a date, in the ways in which people write them."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime

from ..document import Value
from .nested import MOST_VALUES, NestedError
from .values import INT64, natural

NOTHING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "?", "#n/a"}
"""What stands for a missing value among values of a type, in small letters."""
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,18})")
_REAL = re.compile(r"-?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")
_GROUPED = re.compile(r"-?(0|[1-9]\d*|[1-9]\d{0,2}(,\d{3})+)(\.\d+)?")
"""1,234.50, as in English."""
_COMMA = re.compile(r"-?(0|[1-9]\d*|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?")
"""1.234,50, as in most of Europe."""
_EITHER = re.compile(r"-?\d{1,3}[,.]\d{3}|-?\d+")
"""1,234 is one number or the other."""
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|[+-]\d\d(:?\d\d)?))?)?")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
_WORDED = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y", "%d-%b-%Y")
_STAMPS = ("%a, %d %b %Y %H:%M:%S %z", "%a, %d %b %Y %H:%M:%S %Z", "%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Y")
_FORMATS = (*(day + clock for day in _DAYS + _WORDED for clock in _CLOCKS), *_STAMPS)
"""Formats of strptime, in the order in which they are tried."""

Parse = Callable[[str], Value]
"""Gives the value that a stripped string means; a ValueError says that it means none of this kind."""
Form = tuple[str, Parse]
"""How a column writes its values: the type with the decimal separator or the format of dates, and what reads it."""


def parses_all(parse: Parse, texts: Sequence[str]) -> bool:
    """Whether every string means something of this kind."""
    try:
        return all(parse(text) is not None for text in texts)
    except ValueError:
        return False


def boolean(text: str) -> bool:
    """True and false, yes and no, in any case."""
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def integer(text: str) -> int:
    """A whole number of at most 64 bits, without zeros before it, which codes have."""
    if not _fits(text):
        raise ValueError(text)
    return int(text)


def _fits(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and int(text) in INT64


def real(text: str) -> Value:
    """A number with a decimal point, with or without an exponent."""
    beyond_64_bits = len(text) > 18 and text.lstrip("-").isdigit() and not _fits(text)
    if not _REAL.fullmatch(text) or not any(map(str.isdigit, text)) or beyond_64_bits:
        raise ValueError(text)
    return natural(float(text))


def common_number(texts: Sequence[str]) -> Form | None:
    """Return the one way of writing numbers with commas that all texts share; None where it could be either way."""
    if all(map(_EITHER.fullmatch, texts)):
        return None
    return next((form for form in number_forms() if parses_all(form[1], texts)), None)


def number_forms() -> tuple[Form, Form]:
    """Return the two ways of writing numbers with commas: 1,234.50 and 1.234,50."""
    return ("real:.", grouped), ("real:,", with_comma)


def grouped(text: str) -> Value:
    """A number such as 1,234.50."""
    if not _GROUPED.fullmatch(text):
        raise ValueError(text)
    return natural(float(text.replace(",", "")))


def with_comma(text: str) -> Value:
    """A number such as 1.234,50."""
    if not _COMMA.fullmatch(text):
        raise ValueError(text)
    return natural(float(text.replace(".", "").replace(",", ".")))


def json_list(text: str) -> Value:
    """A list written as JSON."""
    if not text.startswith("[") or len(text) > MOST_VALUES:
        raise ValueError(text)
    try:
        return natural(json.loads(text))
    except (RecursionError, NestedError):
        raise ValueError(text) from None


def iso_date(text: str) -> date:
    """A day or a time in ISO 8601."""
    if not _ISO.fullmatch(text):
        raise ValueError(text)
    return (
        date.fromisoformat(text)
        if len(text) == 10
        else datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
    )


def common_date(texts: Sequence[str]) -> Form | None:
    """Return the one format that all texts share; None also where day and month could be either way round."""
    if not texts[0][-1].isalnum() or not any(map(str.isdigit, texts[0])) or len(texts[0]) > 40:
        return None
    found = [form for form in date_forms() if parses_all(form[1], texts)]
    readings = [list(map(parse, texts)) for _, parse in found]
    return found[0] if found and all(reading == readings[0] for reading in readings) else None


def date_forms() -> list[Form]:
    """Return the formats of dates, in the order in which they are tried."""
    return [(f"date:{pattern}", dated_by(pattern)) for pattern in _FORMATS]


def dated_by(pattern: str) -> Parse:
    """Return what reads dates of a format of strptime: days, or times if it has hours."""
    clock = "%H" in pattern or "%I" in pattern

    def parse(text: str) -> date:
        moment = datetime.strptime(text, pattern)
        return moment if clock else moment.date()

    return parse

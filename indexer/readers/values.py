"""Values of cells: from any library's objects to plain types, and the type of each column."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from ..document import Scalar, Value
from .months import are_seasons, common_month, looks_like_a_month
from .nested import DEEPEST, LISTS, MOST_VALUES, NestedError, object_text, too_deep

INT64 = range(-(2**63), 2**63)


def natural(value: Any) -> Value:
    """The value as str, int, float, bool, date, datetime, list of those, or None.

    Not a number, infinite, empty and undecodable values become None; an integer beyond 64 bits becomes a str. A list
    inside a list becomes its JSON.

    Raises:
        NestedError: The value has too many levels.
    """
    if isinstance(value, str):
        return str(value) if value else None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value in INT64 else _digits(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, LISTS):
        return [item for item in map(_scalar, value) if item is not None]
    return _foreign(value)


def cell_text(value: Value) -> str:
    """A value as a reader would write it; "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    return value.isoformat() if isinstance(value, date) else str(value)


def id_text(value: Any) -> str:
    """Return any value as the text of an id, "" for a missing one: a spreadsheet's 12.0 is 12."""
    value = natural(value)
    return cell_text(int(value) if isinstance(value, float) and value.is_integer() else value)


def _foreign(value: Any) -> Value:
    if isinstance(value, (date, datetime)):
        return _python_date(value)
    if isinstance(value, Decimal):
        return (
            natural(int(value) if value == value.to_integral_value() else float(value)) if value.is_finite() else None
        )
    if isinstance(value, bytes):
        return _decoded(value)
    if isinstance(value, timedelta):
        return natural(value.total_seconds())
    if isinstance(value, Mapping):
        return object_text(value) if value else None
    if isinstance(value, (time, Enum)):
        return value.isoformat() if isinstance(value, time) else natural(value.value)
    return _by_library(value)


def _by_library(value: Any) -> Value:
    """NumPy scalars and arrays, and what else unpacks itself; pandas' NA and NaT are missing."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    unpack = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    unpacked = unpack() if unpack is not None else None
    return natural(unpacked) if unpacked is not None and type(unpacked) is not type(value) else natural(str(value))


def _python_date(value: date) -> date | None:
    if type(value).__name__ == "NaTType":  # a subclass of datetime in some versions of pandas
        return None
    convert = getattr(value, "to_pydatetime", None)
    return convert(warn=False) if convert is not None else value


def _scalar(item: Any) -> Scalar | None:
    if isinstance(item, LISTS):
        return json.dumps(_lists(item, 2), ensure_ascii=False, default=cell_text)
    value = natural(item)
    return cell_text(value) if isinstance(value, list) else value


def _lists(items: Iterable[Any], level: int) -> list[Any]:
    """The natural values of lists in lists, which are written as JSON once, at the outermost."""
    if level > DEEPEST:
        raise too_deep()
    inner = [_lists(item, level + 1) if isinstance(item, LISTS) else natural(item) for item in items]
    return [item for item in inner if item is not None]


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        return None


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return hex(value)


_NOTHING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "?", "#n/a"}
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

Parse = Callable[[str], Value]


@dataclass(frozen=True)
class ColumnType:
    """What a column holds: text, integer, real, boolean, date or list; and how its strings become that."""

    kind: str
    parse: Parse | None = None

    def value(self, raw: object) -> Value:
        """The cell's value; a str where it does not fit the column's type."""
        value = natural(raw)
        if isinstance(value, str) and self.parse is not None:
            return self._parsed(value)
        if value is None or kind_of(value) == self.kind:
            return value
        if self.kind == "real" and isinstance(value, int):
            return float(value)
        return cell_text(value)

    def _parsed(self, text: str) -> Value:
        if text.strip().lower() in _NOTHING:
            return None
        try:
            return self.parse(text.strip()) if self.parse else text
        except ValueError:
            return text


def decide_type(values: Sequence[Value], textual: bool) -> ColumnType | None:
    """The type of a column from its sampled values, None if all are missing.

    Args:
        values: `natural` values.
        textual: Whether numbers, booleans and lists also come as strings, as in CSV. Dates are looked for in any case.
    """
    present = [value for value in values if value is not None]
    if not present:
        return None
    if all(isinstance(value, str) for value in present):
        return _type_of_strings([str(value).strip() for value in present], textual)
    kinds = {kind_of(value) for value in present}
    if kinds == {"integer", "real"}:
        return ColumnType("real")
    return ColumnType(kinds.pop() if len(kinds) == 1 else "text")


def kind_of(value: Value) -> str:
    """The type that a single value has on its own."""
    if isinstance(value, bool):
        return "boolean"
    kinds: tuple[tuple[type, str], ...] = ((int, "integer"), (float, "real"), (date, "date"), (list, "list"))
    return next((kind for python, kind in kinds if isinstance(value, python)), "text")


def _type_of_strings(strings: Sequence[str], textual: bool) -> ColumnType:
    present = [text for text in strings if text.lower() not in _NOTHING]
    if not present:
        return ColumnType("text")
    parses: tuple[tuple[str, Parse], ...] = (
        (("boolean", _boolean), ("integer", _integer), ("real", _real), ("list", _list)) if textual else ()
    )
    for kind, parse in (*parses, ("date", _iso_date)):
        if _parses_all(parse, present):
            return ColumnType(kind, parse)
    if textual and (parse := _common_number(present)):
        return ColumnType("real", parse)
    parse = _common_date(present) or common_month(present)
    return ColumnType("date", parse) if parse else ColumnType("text")


def _parses_all(parse: Parse, texts: Sequence[str]) -> bool:
    try:
        return all(parse(text) is not None for text in texts)
    except ValueError:
        return False


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def _integer(text: str) -> int:
    if not _fits(text):
        raise ValueError(text)
    return int(text)


def _fits(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and int(text) in INT64


def _real(text: str) -> Value:
    beyond_64_bits = len(text) > 18 and text.lstrip("-").isdigit() and not _fits(text)
    if not _REAL.fullmatch(text) or not any(map(str.isdigit, text)) or beyond_64_bits:
        raise ValueError(text)
    return natural(float(text))


def _common_number(texts: Sequence[str]) -> Parse | None:
    """The one way of writing numbers with commas that all texts share; None where it could be either way."""
    if all(map(_EITHER.fullmatch, texts)):
        return None
    return next((parse for parse in (_grouped, _with_comma) if _parses_all(parse, texts)), None)


def _grouped(text: str) -> Value:
    if not _GROUPED.fullmatch(text):
        raise ValueError(text)
    return natural(float(text.replace(",", "")))


def _with_comma(text: str) -> Value:
    if not _COMMA.fullmatch(text):
        raise ValueError(text)
    return natural(float(text.replace(".", "").replace(",", ".")))


def _list(text: str) -> Value:
    if not text.startswith("[") or len(text) > MOST_VALUES:
        raise ValueError(text)
    try:
        return natural(json.loads(text))
    except (RecursionError, NestedError):
        raise ValueError(text) from None


def _iso_date(text: str) -> date:
    if not _ISO.fullmatch(text):
        raise ValueError(text)
    return (
        date.fromisoformat(text)
        if len(text) == 10
        else datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
    )


def _common_date(texts: Sequence[str]) -> Parse | None:
    """The one format that all texts share; None also where day and month could be either way round."""
    if not texts[0][-1].isalnum() or not any(map(str.isdigit, texts[0])) or len(texts[0]) > 40:
        return None
    found = [parse for parse in map(_dated_by, _FORMATS) if _parses_all(parse, texts)]
    readings = [list(map(parse, texts)) for parse in found]
    return found[0] if found and all(reading == readings[0] for reading in readings) else None


_LIKE_A_DATE = re.compile(
    r"(\d{4}([-./])\d{1,2}\2\d{1,2}|\d{1,2}([-./])\d{1,2}\3(\d{4}|\d{2})|\d{1,2}[. -]+[^\W\d_]{3,9}[. -]+\d{2,4}"
    r"|[^\W\d_]{3,9}\.? \d{1,2},? \d{4})([ T,].*)?"
)
MOST_DATES = 0.8
"""Share of the values that must look like dates: one may be a slip of the pen."""


def looks_like_dates(values: Sequence[Value]) -> bool:
    """Whether values are strings of which most look like dates or months, in whatever forms; seasons do not."""
    present = [value.strip() for value in values if isinstance(value, str) and value.strip().lower() not in _NOTHING]
    if not present or are_seasons(present):
        return False
    return sum(map(looks_like_a_date, present)) >= MOST_DATES * len(present)


def looks_like_a_date(text: str) -> bool:
    """Whether a text without outer spaces looks like a date or a month, in whatever form."""
    return len(text) <= 40 and (_LIKE_A_DATE.fullmatch(text) is not None or looks_like_a_month(text))


def _dated_by(pattern: str) -> Parse:
    clock = "%H" in pattern or "%I" in pattern

    def parse(text: str) -> date:
        moment = datetime.strptime(text, pattern)
        return moment if clock else moment.date()

    return parse

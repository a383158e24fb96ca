"""The type of a column, decided on a sample, and the value of each of its cells."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from ..document import Value
from .natives import INT64, as_text, natural

_NOTHING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "?", "#n/a"}
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,18})")
_REAL = re.compile(r"-?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")
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
        return as_text(value)

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
    parse = _common_date(present)
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


def _list(text: str) -> Value:
    if not text.startswith("["):
        raise ValueError(text)
    try:
        return natural(json.loads(text))
    except RecursionError:
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


def _dated_by(pattern: str) -> Parse:
    clock = "%H" in pattern or "%I" in pattern

    def parse(text: str) -> date:
        moment = datetime.strptime(text, pattern)
        return moment if clock else moment.date()

    return parse

"""The type of a column: found from its values, as people would say it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ..document import Value
from .cell_parsers import (
    NOTHING,
    Parse,
    are_seasons,
    boolean,
    common_date,
    common_month,
    common_number,
    date_forms,
    integer,
    iso_date,
    json_list,
    looks_like_a_month,
    month_forms,
    parses_all,
    real,
)
from .values import cell_text, natural

NAMED = {
    "text": "text", "integer": "an integer", "real": "a number", "boolean": "true or false", "date": "a date",
    "list": "a list",
}  # fmt: skip
"""What a value of each type is called in messages."""


@dataclass(frozen=True)
class ColumnType:
    """What a column holds: text, integer, real, boolean, date or list; and how its strings become that.

    `form` says how numbers with commas and dates are written, see `Form`; "" if it is plain.
    """

    kind: str
    parse: Parse | None = None
    form: str = ""

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
        if text.strip().lower() in NOTHING:
            return None
        try:
            return self.parse(text.strip()) if self.parse else text
        except ValueError:
            return text


def decide_type(values: Sequence[Value], textual: bool, known: ColumnType | None = None) -> ColumnType | None:
    """The type of a column from its sampled values, None if all are missing.

    Args:
        values: `natural` values.
        textual: Whether numbers, booleans and lists also come as strings, as in CSV. Dates are looked for in any case.
        known: How the column was written before, which holds if every value is written so.
    """
    present = [value for value in values if value is not None]
    if not present:
        return None
    if known and all(isinstance(value, str) for value in present) and _all_written(present, known):
        return known
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
    present = [text for text in strings if text.lower() not in NOTHING]
    if not present:
        return ColumnType("text")
    parses: tuple[tuple[str, Parse], ...] = (
        (("boolean", boolean), ("integer", integer), ("real", real), ("list", json_list)) if textual else ()
    )
    for kind, parse in (*parses, ("date", iso_date)):
        if parses_all(parse, present):
            return ColumnType(kind, parse)
    if textual and (form := common_number(present)):
        return ColumnType("real", form[1], form[0])
    form = common_date(present) or common_month(present)
    return ColumnType("date", form[1], form[0]) if form else ColumnType("text")


def _all_written(values: Sequence[Value], known: ColumnType) -> bool:
    texts = [text for value in values if (text := str(value).strip()).lower() not in NOTHING]
    return bool(texts) and known.parse is not None and parses_all(known.parse, texts)


_LIKE_A_DATE = re.compile(
    r"(\d{4}([-./])\d{1,2}\2\d{1,2}|\d{1,2}([-./])\d{1,2}\3(\d{4}|\d{2})|\d{1,2}[. -]+[^\W\d_]{3,9}[. -]+\d{2,4}"
    r"|[^\W\d_]{3,9}\.? \d{1,2},? \d{4}|\d{4}年\d{1,2}月\d{1,2}日|\d{4}년 ?\d{1,2}월 ?\d{1,2}일)([ T,].*)?"
)
MOST_DATES = 0.8
"""Share of the values that must look like dates: one may be a slip of the pen."""


def looks_like_dates(values: Sequence[Value]) -> bool:
    """Whether values are strings of which most look like dates or months, in whatever forms; seasons do not."""
    present = [value.strip() for value in values if isinstance(value, str) and value.strip().lower() not in NOTHING]
    if not present or are_seasons(present):
        return False
    return sum(map(looks_like_a_date, present)) >= MOST_DATES * len(present)


def looks_like_a_date(text: str) -> bool:
    """Whether a text looks like a date or a month, in whatever form."""
    return len(text) <= 40 and (_LIKE_A_DATE.fullmatch(text) is not None or looks_like_a_month(text))


_NUMBERED = re.compile(r"\d{1,2}([-./])\d{1,2}\1(\d{4}|\d\d)")


def date_form(text: str) -> str:
    """Return the type that reads a text which looks like a date, such as "date:%d.%m.%Y"; "date" if that is not clear.

    Where the day and the month could be either way round, the day is first.
    """
    for form, parse in (*date_forms(), *month_forms()):
        if parses_all(parse, [text]):
            return form
    found = _NUMBERED.fullmatch(text)
    return f"date:%d{found[1]}%m{found[1]}%{'Y' if len(found[2]) == 4 else 'y'}" if found else "date"

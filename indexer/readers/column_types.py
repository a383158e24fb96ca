"""The type of a column: found from its values, as people would say it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ..document import Value
from .cell_parsers import (
    NOTHING,
    Parse,
    boolean,
    common_date,
    common_number,
    integer,
    iso_date,
    json_list,
    parses_all,
    real,
)
from .months import are_seasons, common_month, looks_like_a_month
from .values import cell_text, natural

NAMED = {
    "text": "text", "integer": "an integer", "real": "a number", "boolean": "true or false", "date": "a date",
    "list": "a list",
}  # fmt: skip
"""What a value of each type is called in messages."""


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
        if text.strip().lower() in NOTHING:
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


_NEARLY = 0.9
_FEWEST = 10
"""Values of a type, as a share and in number, beside which the others of the column look like slips."""


def nearly_type(values: Sequence[Value], textual: bool) -> tuple[str, str] | None:
    """Return the type of nearly all values of a column of text, and the first other value; None if it is mixed.

    Numbers with zeros before them are codes, and no slips.

    Args:
        values: `natural` values.
        textual: See `decide_type`.
    """
    texts = [value.strip() if isinstance(value, str) else value for value in values if value is not None]
    present = [value for value in texts if not (textual and str(value).lower() in NOTHING)]
    others = {
        kind: [value for value in present if not _is_of(value, kind, parse if textual or kind == "date" else None)]
        for kind, parse in _NEAR
    }
    kind = min(others, key=lambda each: len(others[each]))
    odd = [cell_text(value) for value in others[kind]]
    few = len(present) - len(odd) >= max(_FEWEST, _NEARLY * len(present))
    return (kind, odd[0]) if odd and few and not any(map(str.isdigit, odd)) else None


_NEAR: tuple[tuple[str, Parse], ...] = (("boolean", boolean), ("integer", integer), ("real", real), ("date", iso_date))


def _is_of(value: Value, kind: str, parse: Parse | None) -> bool:
    if isinstance(value, str):
        return parse is not None and parses_all(parse, [value])
    return kind_of(value) == kind or (kind == "real" and kind_of(value) == "integer")


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
    if textual and (parse := common_number(present)):
        return ColumnType("real", parse)
    parse = common_date(present) or common_month(present)
    return ColumnType("date", parse) if parse else ColumnType("text")


_LIKE_A_DATE = re.compile(
    r"(\d{4}([-./])\d{1,2}\2\d{1,2}|\d{1,2}([-./])\d{1,2}\3(\d{4}|\d{2})|\d{1,2}[. -]+[^\W\d_]{3,9}[. -]+\d{2,4}"
    r"|[^\W\d_]{3,9}\.? \d{1,2},? \d{4})([ T,].*)?"
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

"""What the sample of a column says that its type does not: values that keep it text, and numbers that become one."""

import re
from collections.abc import Sequence

from ..document import Value
from ..errors import UsageError
from .cell_parsers import NOTHING, usual_sign, without_sign
from .coercion import coerced
from .column_types import kind_of, looks_like_dates
from .values import cell_text

_NEARLY = 0.9
_FEWEST = 10
"""Values of a type, as a share and in number, beside which the others of the column look like slips."""
_CODE = re.compile(r"-?0\d+")
"""A number with zeros before it."""
_GROUPS = re.compile(r"-?[1-9]\d{0,2}\.\d{3}|-?(0|[1-9]\d{0,2})")
"""A number whose point can separate thousands, or one that has none."""


def nearly_type(name: str, values: Sequence[Value]) -> tuple[str, str] | None:
    """Return the type of nearly all values of a column of text, and the first other value; None if it is mixed.

    Args:
        name: Of the column.
        values: A sample of its `natural` values.
    """
    present = [value for value in values if cell_text(value).strip()]
    if any(isinstance(value, str) and _CODE.fullmatch(value.strip()) for value in present):
        return None
    kinds = ("boolean", "integer", "real", "date") if looks_like_dates(values) else ("boolean", "integer", "real")
    others = {kind: odd for kind in kinds if (odd := _others(name, kind, present)) is not None}
    if not others:
        return None
    kind = min(others, key=lambda each: len(others[each]))
    odd = others[kind]
    few = len(present) - len(odd) >= max(_FEWEST, _NEARLY * len(present))
    return (kind, odd[0]) if odd and few else None


def _others(name: str, kind: str, values: Sequence[Value]) -> list[str] | None:
    """Return the values that are not of a type; None if it has several ways to read them."""
    try:
        found = coerced(name, kind, values, signs=False)
    except UsageError:
        return None
    return [cell_text(value).strip() for value in values if kind_of(found.value(value)) != kind]


def two_spellings(values: Sequence[Value]) -> tuple[str, str] | None:
    """Return two strings that are the same real number but for zeros at the end, such as 1.1 and 1.10; None if none."""
    seen: dict[str, str] = {}
    for text in dict.fromkeys(value.strip() for value in values if isinstance(value, str) and "." in value):
        if seen.setdefault(text.rstrip("0"), text) != text:
            return seen[text.rstrip("0")], text
    return None


def in_thousands(values: Sequence[Value]) -> str | None:
    """Return the first string such as 1.234, if the points of all numbers may separate thousands; None otherwise."""
    present = [value for value in values if value is not None and cell_text(value).strip().lower() not in NOTHING]
    texts = [value.strip() for value in present if isinstance(value, str)]
    sign = usual_sign(texts)
    numbers = [without_sign(text, sign) for text in texts] if len(texts) == len(present) else []
    return next((each for each in numbers if "." in each), None) if all(map(_GROUPS.fullmatch, numbers)) else None

"""Ids, queries and texts as users give them: one string is one of them, never a sequence of letters."""

import math
import reprlib
from collections.abc import Iterable, Mapping
from numbers import Integral, Real

from .errors import UsageError

Ids = str | int | Iterable[str | int]
"""One id or several."""
Texts = str | Iterable[str]
"""One text or several."""


def is_finite(value: object) -> bool:
    """Whether a value is a number, and neither NaN nor infinite."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def as_text(value: object, field: str) -> str:
    """Return one text; an integer is taken as its digits.

    Args:
        value: What a user gave.
        field: What it is, for the message: "id", "query", "text" …

    Raises:
        UsageError: It is neither a string nor an integer.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise UsageError(f"{reprlib.repr(value)} is not a valid {field}: give a string", code="wrong-type", value=value)


def as_texts(values: object, field: str) -> list[str]:
    """Return texts as a list; one string, or one integer, is a list of one. See `as_text`.

    Raises:
        UsageError: It is neither one text nor several, or one of them is neither a string nor an integer.
    """
    if isinstance(values, (str, Integral)):
        return [as_text(values, field)]
    if isinstance(values, (Mapping, bytes, bytearray)) or not isinstance(values, Iterable):
        said = f"{reprlib.repr(values)} is not a valid {field}: give a string or a list of strings"
        raise UsageError(said, code="wrong-type", value=values)
    return [as_text(value, field) for value in values]

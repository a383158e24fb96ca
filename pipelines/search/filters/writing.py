"""Filters written by a program: conditions for names and values, whatever signs these hold."""

import math
from collections.abc import Iterable, Sequence
from datetime import date

from sqlglot.dialects.sqlite import SQLite

from ....indexer.document import Value

ESCAPE = "\\"
KEYWORDS = frozenset(word.lower() for word in SQLite.Tokenizer.KEYWORDS)


def among(name: str, type: str, values: Sequence[Value]) -> str:
    """Return the condition that a field, or an item of a list, is one of these values.

    Args:
        name: The field's.
        type: The field's type: "text", "list", "boolean", "integer" or "real".
        values: One or more.
    """
    if type == "list":
        return _either(f"{literal(value)} IN {quoted(name)}" for value in values)
    if type == "boolean":
        return _either(quoted(name) if value else f"NOT {quoted(name)}" for value in values)
    if len(values) == 1:
        return f"{quoted(name)} = {literal(values[0])}"
    return f"{quoted(name)} IN ({', '.join(literal(value) for value in values)})"


def between(name: str, low: Value, high: Value) -> str:
    """Return the condition that a number or a date lies between two, both included; None leaves an end open."""
    ends = [(">=", low), ("<=", high)]
    return " AND ".join(f"{quoted(name)} {sign} {literal(value)}" for sign, value in ends if value is not None)


def containing(name: str, part: str) -> str:
    """Return the condition that a text holds another, without regard to the case of ASCII letters."""
    pattern = "".join(ESCAPE + sign if sign in "%_\\" else sign for sign in part)
    return f"{quoted(name)} ILIKE {literal(f'%{pattern}%')} ESCAPE '{ESCAPE}'"


def every(conditions: Iterable[str]) -> str | None:
    """Return the condition that all of these hold, None if there are none; blank ones do not count."""
    given = [condition.strip() for condition in conditions if condition.strip()]
    return " AND ".join(f"({condition})" for condition in given) if len(given) > 1 else given[0] if given else None


def quoted(name: str) -> str:
    """Return a field's name as a filter writes it: in double quotes unless it is a plain word."""
    doubled = name.replace('"', '""')
    simple = name.isascii() and name.isidentifier() and name.islower() and name not in KEYWORDS
    return name if simple else f'"{doubled}"'


def literal(value: Value) -> str:
    """Return a value as a filter writes it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    return "'" + text.replace("'", "''") + "'"


def _either(conditions: Iterable[str]) -> str:
    given = list(conditions)
    return f"({' OR '.join(given)})" if len(given) > 1 else given[0]

"""One field compared with values, by the field's type."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ....indexer.errors import UsageError
from ....indexer.store.columns import any_item
from .sql import ARTICLES, ESCAPE, Fragment, Operand, Period, glob, join_fragments, like_condition, period, shown

Value = str | int | float | bool
Operator = Literal["=", "<", "<=", ">", ">=", "IN", "BETWEEN", "LIKE", "ILIKE"]

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_ITEM_TYPES = {"text": "('text')", "real": "('integer', 'real')", "boolean": "('true', 'false')"}


@dataclass(frozen=True, slots=True)
class Test:
    """What is asked of a field: an operator and its values, two for BETWEEN, any number for IN, else one."""

    operator: Operator
    values: Sequence[Value]
    escape: str | None = None


def condition(operand: Operand, test: Test) -> Fragment:
    """Compile one test; it is NULL, hence not met, where the field is.

    Raises:
        UsageError: The field's type does not allow the operator or a value; the message names both.
    """
    if operand.type == "list":
        return _any_item(operand, test)
    if test.operator in ("LIKE", "ILIKE"):
        return _pattern(operand, test)
    if operand.type == "date":
        return _date(operand, test)
    if operand.type == "boolean" and test.operator not in ("=", "IN"):
        raise UsageError(f"{operand.name} is a boolean and has no order: compare it with = TRUE or = FALSE")
    return _scalar(operand, test, [_converted(operand, value) for value in test.values])


def _scalar(operand: Operand, test: Test, values: Sequence[str | int | float]) -> Fragment:
    if test.operator == "IN":
        return Fragment(f"{operand.sql} IN ({', '.join('?' * len(values))})", tuple(values))
    if test.operator == "BETWEEN":
        return Fragment(f"{operand.sql} BETWEEN ? AND ?", tuple(values))
    return Fragment(f"{operand.sql} {test.operator} ?", tuple(values))


def _converted(operand: Operand, value: Value) -> str | int | float:
    says = f"{operand.name} is {ARTICLES[operand.type]}"
    if operand.type == "boolean":
        if not isinstance(value, bool):
            raise UsageError(f"{says}: compare it with TRUE or FALSE, not {_written(value)}")
        return int(value)
    if operand.type == "text":
        if not isinstance(value, str):
            raise UsageError(f"{says}: write '{_written(value)}' with single quotes")
        return value
    if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
        raise UsageError(f"{says}; {_written(value)} is not a number")
    return number(value.strip()) if isinstance(value, str) else value


def number(text: str) -> int | float:
    """Return a number as SQLite can hold it: an integer of 64 bits where it is one, else a float."""
    digits = text.lstrip("+-")
    if digits.isdecimal() and len(digits) < 20 and -(2**63) <= int(text) < 2**63:
        return int(text)
    return float(text)


def _pattern(operand: Operand, test: Test) -> Fragment:
    if operand.type != "text":
        raise UsageError(f"{operand.name} is {ARTICLES[operand.type]}, and {test.operator} needs text")
    pattern = test.values[0]
    if not isinstance(pattern, str):
        raise UsageError(f"{test.operator} needs a pattern in single quotes, not {_written(pattern)}")
    if test.operator == "LIKE":
        return Fragment(f"{operand.sql} GLOB ?", (glob(pattern, test.escape),))
    return Fragment(f"{operand.sql} LIKE ? ESCAPE ?", (like_condition(pattern, test.escape), ESCAPE))


def _date(operand: Operand, test: Test) -> Fragment:
    periods = [_period(operand, value) for value in test.values]
    first, last = periods[0], periods[-1]
    if test.operator in ("=", "IN"):
        return join_fragments([_between(operand, one.start, one.end) for one in periods], "OR")
    if test.operator == "BETWEEN":
        return _between(operand, first.start, last.end)
    # At or after a period starts with it; later starts behind it, and likewise for earlier.
    sql, bound = {
        "<": ("<", first.start), "<=": ("<", first.end), ">": (">=", first.end), ">=": (">=", first.start)
    }[test.operator]  # fmt: skip
    return Fragment(f"{operand.sql} {sql} ?", (bound,))


def _between(operand: Operand, start: str, end: str) -> Fragment:
    return Fragment(f"({operand.sql} >= ? AND {operand.sql} < ?)", (start, end))


def _period(operand: Operand, value: Value) -> Period:
    found = None if isinstance(value, (bool, float)) else period(str(value))
    if found is None:
        says = f"{operand.name} is a date; {_written(value)} is not"
        raise UsageError(f"{says}: write '2024-03-01' or '2024-03-01T12:00'")
    return found


def _any_item(operand: Operand, test: Test) -> Fragment:
    """Compile "some item of the list passes the test"; numbers, texts and booleans never equal one another."""
    if test.operator == "IN":
        return join_fragments([_any_item(operand, Test("=", [value])) for value in test.values], "OR")
    kinds = {_kind(value) for value in test.values}
    if len(kinds) > 1:
        raise UsageError(f"BETWEEN needs two values of one kind, not {' and '.join(map(_written, test.values))}")
    kind = kinds.pop()
    sql = "item.type = 'true'" if kind == "boolean" else "item.value"
    inner = condition(Operand(sql, kind, f"an item of {operand.name}"), test)
    return Fragment(any_item(operand.sql, _ITEM_TYPES[kind], inner.sql), inner.parameters)


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return shown(value) if isinstance(value, str) else str(value)


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "real"


def compare_fields(left: Operand, operator: str, right: Operand) -> Fragment:
    """Compare two fields of the same type, or two numbers.

    Raises:
        UsageError: Their types cannot be compared so.
    """
    kinds = {"real" if operand.type == "integer" else operand.type for operand in (left, right)}
    if len(kinds) > 1 or "list" in kinds or (kinds == {"boolean"} and operator not in ("=", "!=")):
        says = " and ".join(f"{operand.name} is {ARTICLES[operand.type]}" for operand in (left, right))
        raise UsageError(f"{says}: they cannot be compared by {operator}")
    sides = [_moment(operand.sql) if operand.type == "date" else operand.sql for operand in (left, right)]
    return Fragment(f"{sides[0]} {operator} {sides[1]}")


def _moment(sql: str) -> str:
    return f"({sql} || CASE length({sql}) WHEN 10 THEN 'T00:00:00' ELSE '' END)"

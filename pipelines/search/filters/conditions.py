"""One comparison of a filter: its operands, and the condition that the type of the field allows."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal

from sqlglot import exp

from ....indexer.document import composed, spellings
from ....indexer.errors import UsageError, give_type
from ....indexer.readers.coercion import fitting_type
from ....indexer.readers.column_types import date_form, looks_like_a_date
from ....indexer.store.documents import any_item
from ....indexer.store.fields import first_day
from .sql import (
    ARTICLES,
    ESCAPE,
    LIST_COST,
    TEXT_COST,
    FieldNames,
    Fragment,
    Operand,
    Span,
    any_of,
    glob,
    like_condition,
    period,
    shown,
)

Value = str | int | float | bool
Texts = Callable[[Operand], Iterable[str]]
"""Gives some texts of a field, among them such as are dates in other forms than ISO's."""
SUPPORTED = (
    "a filter takes fields compared with values by =, !=, <, <=, >, >=, IN, BETWEEN, LIKE, ILIKE and IS NULL, "
    "joined by AND, OR, NOT and parentheses, and the functions LOWER, UPPER, LENGTH and CONTAINS"
)
_UNQUOTED_DATE = re.compile(r"\d{4}-\d{1,2}(-\d{1,2})?")
_OTHER_FORMS = ("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d")
_DATES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.DATETIME)


def only(node: exp.Expr, *known: str) -> exp.Expr:
    """Return the node if it has no parts but these, so that no syntax is silently left out.

    Raises:
        UsageError: It has others.
    """
    if any(value for part, value in node.args.items() if part not in known):
        raise unsupported(node)
    return node


def unsupported(node: exp.Expr) -> UsageError:
    """Return the error for syntax that filters do not have."""
    return UsageError(f"{shown(node.sql('sqlite'))} is not supported: {SUPPORTED}")


def unquoted(node: exp.Column, before: str = "") -> UsageError:
    """Return the error for a name where a text was probably meant; `before` is what stands on its left."""
    written = ".".join(part.name for part in node.parts)
    text = written.replace("'", "''")
    said = f"{shown(written)} is not a field: put text in single quotes, as in: {before}'{text}'"
    return UsageError(said, code="not-found")


class Operands:
    """Reads nodes as fields or as values, and remembers the fields that were read."""

    def __init__(self, names: FieldNames, texts: Texts | None = None, common: Texts | None = None) -> None:
        self._names = names
        self._texts = texts
        self._common = common
        self.used: dict[str, None] = {}

    def field(self, node: exp.Expr) -> Operand | None:
        """Return the field, or the function of a field, that a node is; None if it is anything else.

        Raises:
            UsageError: There is no such field, or the function does not take its type.
        """
        if isinstance(node, exp.Paren):
            return self.field(only(node, "this").this)
        if isinstance(node, (exp.Column, exp.Dot)):
            return self._named(node)
        for kinds, apply in _FUNCTIONS.items():
            if isinstance(node, kinds):
                argument = self.field(only(node, "this").this)
                return apply(argument) if argument else None
        return None

    def other_side(self, left: Operand | None, node: exp.Expr, operator: str) -> Operand | None:
        """Return the field on the right of a comparison, None if there is a value.

        Raises:
            UsageError: A name is no field: probably a text without single quotes.
        """
        try:
            return self.field(node)
        except UsageError as error:
            if (
                left
                and left.type in ("text", "list", "date")
                and isinstance(node, exp.Column)
                and error.code == "not-found"
            ):
                raise unquoted(node, f"{left.written} {operator} ") from None
            raise

    def value(self, node: exp.Expr) -> Value:
        """Return the value of a literal.

        Raises:
            UsageError: The node is no literal.
        """
        if isinstance(node, exp.Paren):
            return self.value(only(node, "this").this)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal):
            return node.name if node.is_string else number(node.name)
        if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Neg):
            return self._negative(node)
        if isinstance(node, exp.Null):
            raise UsageError("a comparison with NULL is never true: write IS NULL or IS NOT NULL")
        if isinstance(node, exp.Cast) and node.to.this in _DATES and isinstance(node.this, exp.Literal):
            return only(node, "this", "to").this.name
        if isinstance(node, exp.Column) and not self._names.has(node.name):
            raise unquoted(node)
        if isinstance(node, exp.Sub) and _UNQUOTED_DATE.fullmatch(text := node.sql("sqlite").replace(" ", "")):
            raise UsageError(f"{text} without quotes is a subtraction: put dates in single quotes, as in: '{text}'")
        words = [] if isinstance(node, exp.Column) else list(node.find_all(exp.Column))
        if words and isinstance(node, exp.Binary) and not any(self._names.has(word.name) for word in words):
            raise UsageError(f"{shown(node.sql('sqlite'))} is not a value: put text in single quotes")
        raise unsupported(node)

    def check_order(self, operand: Operand, test: "Test") -> None:
        """Check that neither numbers nor dates are put in the order of texts.

        Raises:
            UsageError: The field is text and a value of the test is a number. Or a value is a date, and the field has
                dates that are not in ISO's form, whose order as texts is that of time.
        """
        if self._texts is None or not operand.column or operand.type != "text" or test.operator not in ORDER:
            return
        if not all(isinstance(value, str) for value in test.values):
            raise _no_number(operand, test, self._texts(operand))
        literal = next((value for value in test.values if _is_date(value)), None)
        if literal is None:
            return
        odd = next(
            (text for text in self._texts(operand) if looks_like_a_date(text.strip()) and not first_day(text)), ""
        )
        if odd:
            said = f"{operand.name} is stored as text, so it cannot be compared with the date {_written(literal)}"
            why = f"it holds {shown(odd)}, and texts are compared letter by letter"
            raise UsageError(f"{said}: {why}; {give_type(operand.column, date_form(odd.strip()))}")

    def boolean_advice(self, operand: Operand) -> str:
        """Return the advice to make the column of a field boolean; "" if it has none, or none of its values fits."""
        fits = self._common is None or fitting_type(operand.column, ["boolean"], [*self._common(operand)])
        return give_type(operand.column, "boolean") if operand.column and fits else ""

    def _named(self, node: exp.Column | exp.Dot) -> Operand:
        only(node, "this", "table", "db", "catalog", "expression")
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            raise unsupported(node)
        # A name with dots need not be quoted: nested JSON makes such names.
        name = ".".join(part.name for part in parts)
        operand = self._names.find(name, quoted=all(part.args.get("quoted") for part in parts))
        self.used[operand.name] = None
        return operand

    def _negative(self, node: exp.Neg) -> Value:
        value = self.value(only(node, "this").this)
        if isinstance(value, (bool, str)):
            raise unsupported(node)
        return -value


def _letters(function: str) -> Callable[[Operand], Operand]:
    def apply(argument: Operand) -> Operand:
        if argument.type != "text":
            raise UsageError(f"{argument.name} is {ARTICLES[argument.type]}, and {function} needs text")
        return argument.applied(function, "text", function)

    return apply


def _length(argument: Operand) -> Operand:
    functions = {"text": "length", "list": "json_array_length"}
    if argument.type not in functions:
        raise UsageError(f"{argument.name} is {ARTICLES[argument.type]}, and LENGTH needs text or a list")
    return argument.applied(functions[argument.type], "integer", "LENGTH")


_FUNCTIONS: dict[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[[Operand], Operand]] = {
    exp.Lower: _letters("LOWER"),
    exp.Upper: _letters("UPPER"),
    (exp.Length, exp.ArraySize): _length,
}


ORDER = ("<", "<=", ">", ">=", "BETWEEN")
Operator = Literal["=", "<", "<=", ">", ">=", "IN", "BETWEEN", "LIKE", "ILIKE"]

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_ITEM_TYPES = {"text": "('text')", "real": "('integer', 'real')", "boolean": "('true', 'false')"}


@dataclass(frozen=True, slots=True)
class Test:
    """What is asked of a field: an operator and its values, two for BETWEEN, any number for IN, else one."""

    operator: Operator
    values: Sequence[Value]
    escape: str | None = None


def _is_date(value: Value) -> bool:
    """Whether a value is text and names a day, a month or a year, in a form that no version number has."""
    if not isinstance(value, str):
        return False
    return first_day(value) is not None or (looks_like_a_date(value.strip()) and bool(re.search(r"\d{4}", value)))


def condition(operand: Operand, test: Test) -> Fragment:
    """Compile one test; it is NULL, hence not met, where the field is.

    Raises:
        UsageError: The field's type does not allow the operator or a value; the message names both.
    """
    if operand.type == "list":
        return _any_item(operand, test)
    if texts := _names_of_groups(operand, test):
        named = condition(replace(operand, type="text", own=operand.named, named=""), replace(test, values=texts))
        numbers = [value for value in test.values if value not in texts]
        return any_of([named, condition(operand, Test("IN", numbers))]) if numbers else named
    if operand.inside:
        group = _single(replace(operand, sql=operand.own, inside=""), test)
        return Fragment(operand.inside.format("", group.sql), group.parameters, TEXT_COST)
    found = _single(operand, test)
    costly = test.operator in ("LIKE", "ILIKE") or "(" in operand.sql
    return replace(found, cost=max(operand.cost, TEXT_COST if costly else found.cost))


def _names_of_groups(operand: Operand, test: Test) -> list[Value]:
    """Return the values of a test of the numbers of groups that are names or paths, or a pattern of them."""
    if not operand.named or test.operator not in ("=", "IN", "LIKE", "ILIKE"):
        return []
    pattern = test.operator in ("LIKE", "ILIKE")
    return [value for value in test.values if isinstance(value, str) and (pattern or not _WHOLE.fullmatch(value))]


def _single(operand: Operand, test: Test) -> Fragment:
    forms = _spelled(test) if operand.type == "text" else [test]
    found = [_plain(operand, form) for form in forms]
    return replace(any_of(found), cost=found[0].cost)


def _spelled(test: Test) -> list[Test]:
    """Return a test for each form that accents of its text may have: metadata is composed, texts stay as they came."""
    forms = [form for value in test.values for form in (spellings(value) if isinstance(value, str) else (value,))]
    if test.operator == "IN":
        return [replace(test, values=forms)]
    if test.operator in ("=", "LIKE", "ILIKE"):
        return [replace(test, values=[form]) for form in forms]
    return [replace(test, values=[composed(value) if isinstance(value, str) else value for value in test.values])]


def _plain(operand: Operand, test: Test) -> Fragment:
    if test.operator in ("LIKE", "ILIKE"):
        return _pattern(operand, test)
    if operand.type == "date":
        return _date(operand, test)
    if operand.type == "text" and test.operator in ORDER and not all(isinstance(each, str) for each in test.values):
        raise _no_number(operand, test)
    if operand.type == "boolean" and test.operator not in ("=", "IN"):
        raise UsageError(f"{operand.name} is a boolean and has no order: compare it with = TRUE or = FALSE")
    return _scalar(operand, test, [_converted(operand, value) for value in test.values])


def _no_number(operand: Operand, test: Test, texts: Iterable[str] | None = None) -> UsageError:
    """Return the error for an order of texts and a number, and what to do; `texts` are some of the field."""
    value = next(each for each in test.values if not isinstance(each, str))
    operator = ">=" if test.operator == "BETWEEN" else test.operator
    said = f"{operand.name} is stored as text, so it cannot be compared as a number"
    way = f"compare it with a text, such as {operand.written} {operator} '{_written(value)}', letter by letter"
    kind = "real" if isinstance(value, float) else "integer"
    kind = kind if texts is None else fitting_type(operand.column, ("integer", "real"), [*texts])
    if operand.column and kind:
        way = f"{give_type(operand.column, kind)}, or correct the values that are not numbers; or {way}"
    return UsageError(f"{said}: {way}")


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
    if not pattern.isascii():  # LIKE of SQLite knows the case of the letters A to Z alone
        return Fragment(f"{operand.sql} GLOB ?", (glob(pattern, test.escape, any_case=True),))
    return Fragment(f"{operand.sql} LIKE ? ESCAPE ?", (like_condition(pattern, test.escape), ESCAPE))


def _date(operand: Operand, test: Test) -> Fragment:
    periods = [_period(operand, value) for value in test.values]
    first, last = periods[0], periods[-1]
    if test.operator in ("=", "IN"):
        return any_of([_between(operand, one.start, one.end) for one in periods])
    if test.operator == "BETWEEN":
        return _between(operand, first.start, last.end)
    # At or after a period starts with it; later starts behind it, and likewise for earlier.
    sql, bound = {
        "<": ("<", first.start), "<=": ("<", first.end), ">": (">=", first.end), ">=": (">=", first.start)
    }[test.operator]  # fmt: skip
    return Fragment(f"{operand.sql} {sql} ?", (bound,))


def _between(operand: Operand, start: str, end: str) -> Fragment:
    return Fragment(f"({operand.sql} >= ? AND {operand.sql} < ?)", (start, end))


def _period(operand: Operand, value: Value) -> Span:
    found = None if isinstance(value, (bool, float)) else period(str(value))
    if found is None:
        days = {day for form in _OTHER_FORMS if (day := _day(str(value), form))}
        way = f"'{days.pop()}'" if len(days) == 1 else "'2024-03-01', '2024-03' or '2024-03-01T12:00'"
        raise UsageError(f"{operand.name} is a date, and {_written(value)} is not one that can be read: write {way}")
    return found


def _day(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text.strip(), form).date()
    except ValueError:
        return None


def _any_item(operand: Operand, test: Test) -> Fragment:
    """Compile "some item of the list passes the test"; numbers, texts and booleans never equal one another."""
    if test.operator == "IN":
        return any_of([_any_item(operand, Test("=", [value])) for value in test.values])
    kinds = {_kind(value) for value in test.values}
    if len(kinds) > 1:
        raise UsageError(f"BETWEEN needs two values of one kind, not {' and '.join(map(_written, test.values))}")
    kind = kinds.pop()
    sql = "item.type = 'true'" if kind == "boolean" else "item.value"
    inner = condition(Operand(sql, kind, f"an item of {operand.name}"), test)
    return Fragment(any_item(operand.sql, _ITEM_TYPES[kind], inner.sql), inner.parameters, LIST_COST)


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return shown(value) if isinstance(value, str) else str(value)


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "real"

"""Random filters over random documents find what a plain evaluation in Python, with SQL's three values, finds."""

import re
import sqlite3
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.indexer.document import Value
from sonde.indexer.store.fields import Field, store
from sonde.pipelines.search.filters.compile import compile_filter

TYPES = {
    "n": "integer", "m": "integer", "r": "real", "b": "boolean", "d": "date", "e": "date", "s": "text", "l": "list"
}  # fmt: skip
FIELDS = {name: Field(name, f"c{number}", kind) for number, (name, kind) in enumerate(TYPES.items())}

integers = st.integers(-1, 1) | st.sampled_from([-(2**63), -7, 7, 2**63 - 1])
reals = st.sampled_from([-1.0, 0.0, 0.5, 1.0]) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text("aAbéß%_*?[]\\'", max_size=3)
days = st.dates(date(2023, 12, 31), date(2024, 1, 1))
moments = st.builds(
    lambda day, second, micro: datetime.combine(day, time()) + timedelta(seconds=second, microseconds=micro),
    days, st.sampled_from([0, 43_200]), st.sampled_from([0, 500_000]),
)  # fmt: skip
dates = days | moments
items = st.one_of(st.integers(-2, 2), st.sampled_from([0.5, 1.0]), texts, st.booleans())
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": integers, "real": reals, "boolean": st.booleans(), "date": dates, "text": texts,
    "list": st.lists(items, max_size=3),
}  # fmt: skip
rows = st.fixed_dictionaries({name: st.none() | VALUES[kind] for name, kind in TYPES.items()})

Row = dict[str, Any]
Answer = bool | None
Predicate = tuple[str, Callable[[Row], Answer]]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def literal(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def known(name: str, test: Callable[[Any], Answer]) -> Callable[[Row], Answer]:
    return lambda row: None if row[name] is None else test(row[name])


@st.composite
def comparisons(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(["n", "r", "s"]))
    value = draw(texts if name == "s" else integers | reals)
    operator = draw(st.sampled_from(list(OPERATORS)))
    if draw(st.booleans()):
        return f"{literal(value)} {MIRRORED[operator]} {name}", known(name, lambda x: OPERATORS[operator](x, value))
    return f"{name} {operator} {literal(value)}", known(name, lambda x: OPERATORS[operator](x, value))


@st.composite
def ranges(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(["n", "r", "s"]))
    values = draw(st.lists(texts if name == "s" else integers | reals, min_size=2, max_size=4))
    word = draw(st.sampled_from(["", "NOT "]))
    if draw(st.booleans()):
        low, high = values[:2]
        sql = f"{name} {word}BETWEEN {literal(low)} AND {literal(high)}"
        return sql, known(name, lambda x: (low <= x <= high) != bool(word))
    return f"{name} {word}IN ({', '.join(map(literal, values))})", known(name, lambda x: (x in values) != bool(word))


def like(pattern: str, escape: str | None, flags: int) -> re.Pattern[str]:
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), flags | re.DOTALL)


@st.composite
def patterns(draw: st.DrawFn) -> Predicate:
    word = draw(st.sampled_from(["LIKE", "ILIKE", "NOT LIKE", "NOT ILIKE"]))
    escape = draw(st.sampled_from([None, "\\", "b"]))
    pieces = st.sampled_from(["%", "_", "a", "A", "é", "*", "?", "[", "]"])
    pieces |= st.sampled_from([f"{escape}%", f"{escape}_", f"{escape}{escape}"]) if escape else st.just("\\")
    pattern = "".join(draw(st.lists(pieces, max_size=4)))
    # Only the case of ASCII letters is ignored, as SQLite does it, and the test's letters have no other cases.
    compiled = like(pattern, escape, re.IGNORECASE if "ILIKE" in word else 0)
    sql = f"s {word} {literal(pattern)}" + (f" ESCAPE {literal(escape)}" if escape else "")
    return sql, known("s", lambda x: bool(compiled.fullmatch(x)) != word.startswith("NOT"))


def ends(text: str, exact: bool) -> tuple[datetime, datetime]:
    """The first moment that a date literal covers, and the first after it."""
    if exact:
        moment = datetime.fromisoformat(text)
        return moment, moment + timedelta(microseconds=1)
    parts = [int(part) for part in text.split("-")]
    year, month, day = parts + [1] * (3 - len(parts))
    start = datetime(year, month, day)
    if len(parts) == 3:
        return start, start + timedelta(days=1)
    later, month = divmod(month if len(parts) == 2 else 12, 12)
    return start, datetime(year + later, month + 1, 1)


@st.composite
def date_tests(draw: st.DrawFn) -> Predicate:
    day = draw(dates)
    exact = isinstance(day, datetime)
    text = day.isoformat() if exact else day.isoformat()[: draw(st.sampled_from([4, 7, 10]))]
    start, end = ends(text, exact)
    operator = draw(st.sampled_from(list(OPERATORS)))
    meaning: dict[str, Callable[[datetime], bool]] = {
        "=": lambda x: start <= x < end, "!=": lambda x: not start <= x < end, "<": lambda x: x < start,
        "<=": lambda x: x < end, ">": lambda x: x >= end, ">=": lambda x: x >= start,
    }  # fmt: skip
    return f"d {operator} '{text}'", known("d", lambda x: meaning[operator](moment(x)))


def moment(value: date | datetime) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


@st.composite
def list_tests(draw: st.DrawFn) -> Predicate:
    value = draw(items)
    operator = draw(st.sampled_from(["=", "!=", "IN", "CONTAINS"] + ([] if isinstance(value, bool) else ["<", ">="])))

    def one(item: Value) -> bool:
        kinds = [bool if isinstance(x, bool) else str if isinstance(x, str) else float for x in (item, value)]
        return kinds[0] is kinds[1] and OPERATORS[operator if operator in ("<", ">=") else "="](item, value)

    sql = {"IN": f"{literal(value)} IN l", "CONTAINS": f"CONTAINS(l, {literal(value)})"}
    sql = sql.get(operator, f"l {operator} {literal(value)}")
    return sql, known("l", lambda x: any(map(one, x)) != (operator == "!="))


@st.composite
def two_fields(draw: st.DrawFn) -> Predicate:
    left, right = draw(st.sampled_from([("n", "m"), ("n", "r"), ("d", "e"), ("s", "s")]))
    operator = draw(st.sampled_from(list(OPERATORS)))

    def meaning(row: Row) -> Answer:
        if row[left] is None or row[right] is None:
            return None
        sides = [moment(row[name]) if name in "de" else row[name] for name in (left, right)]
        return OPERATORS[operator](*sides)

    return f"{left} {operator} {right}", meaning


SIMPLE: list[Predicate] = [
    ("b", lambda row: row["b"]),
    ("b = FALSE", known("b", lambda x: not x)),
    ("b IS TRUE", lambda row: row["b"] is True),
    ("b IS NOT FALSE", lambda row: row["b"] is not False),
    ("n IS NULL", lambda row: row["n"] is None),
    ("l IS NOT NULL", lambda row: row["l"] is not None),
    ("LENGTH(l) > 1", known("l", lambda x: len(x) > 1)),
    ("LENGTH(s) = 2", known("s", lambda x: len(x) == 2)),
    ("UPPER(s) = 'AB'", known("s", lambda x: x in ("ab", "Ab", "aB", "AB"))),
]
leaves = st.one_of(
    comparisons(), ranges(), patterns(), date_tests(), list_tests(), two_fields(), st.sampled_from(SIMPLE)
)


def negation(predicate: Predicate) -> Predicate:
    sql, meaning = predicate

    def negated(row: Row) -> Answer:
        answer = meaning(row)
        return None if answer is None else not answer

    return f"NOT ({sql})", negated


def connected(parts: list[Predicate], word: str) -> Predicate:
    decisive = word == "OR"

    def meaning(row: Row) -> Answer:
        answers = [part[1](row) for part in parts]
        return decisive if decisive in answers else None if None in answers else not decisive

    return "(" + f" {word} ".join(part[0] for part in parts) + ")", meaning


predicates = st.recursive(
    leaves,
    lambda inner: (
        st.builds(negation, inner)
        | st.builds(connected, st.lists(inner, min_size=2, max_size=3), st.sampled_from(["AND", "OR"]))
    ),
    max_leaves=5,
)


@settings(max_examples=4 * settings().max_examples)
@given(predicates, st.lists(rows, min_size=8, max_size=24))
def test_the_same_documents_as_a_plain_evaluation(predicate: Predicate, documents: list[Row]):
    where, meaning = predicate
    connection = sqlite3.connect(":memory:")
    connection.execute(
        f"CREATE TABLE metadata(doc INTEGER PRIMARY KEY, {', '.join(f.column for f in FIELDS.values())})"
    )
    for doc, row in enumerate(documents):
        stored = [store(row[name], field.type) for name, field in FIELDS.items()]
        connection.execute(f"INSERT INTO metadata VALUES (?{', ?' * len(stored)})", (doc, *stored))
    compiled = compile_filter(where, FIELDS)
    found = connection.execute(f"SELECT doc FROM metadata m WHERE {compiled.sql} ORDER BY doc", compiled.parameters)
    expected = [doc for doc, row in enumerate(documents) if meaning(row) is True]
    assert [doc for (doc,) in found] == expected, (where, compiled)

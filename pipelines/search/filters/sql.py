"""Pieces of SQL that carry their bound parameters: fields, fragments, LIKE patterns, dates."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import Enum

from sqlglot.dialects.sqlite import SQLite

from ....indexer.document import composed, spellings
from ....indexer.errors import UsageError, nearest
from ....indexer.store.fields import Field
from ....indexer.store.kinds import KINDS, TAG

SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fragment:
    """A SQL expression, the values of its question marks, in order, and what it costs for each document.

    `cost` counts comparisons: 1 for one with a value, more for those that take longer; see `LIST_COST`.
    """

    sql: str
    parameters: tuple[str | int | float, ...] = ()
    cost: int = 1

    def negated(self) -> "Fragment":
        """Return NOT of this; what is NULL stays NULL."""
        return Fragment(f"NOT ({self.sql})", self.parameters, self.cost)


LIST_COST, TEXT_COST, WHOLE_TEXT_COST = 10, 2, 10
"""Costs of a comparison of a list's items, of one with a pattern or a function, and of any that reads whole texts. For
100,000 documents, a plain comparison took 2 to 6 ms, those with a pattern 5 to 17, and those of lists about 110. A
pattern on texts of 160 characters took 36 ms, on texts of 3,300 characters 760."""
_EQUAL = re.compile(r"(?<![<>!])= \?")


def any_of(parts: Sequence[Fragment]) -> Fragment:
    """Join conditions by OR; those that compare the same field with one value each become one look-up in a set."""
    by_sql: dict[str, list[Fragment]] = {}
    for part in parts:
        by_sql.setdefault(part.sql, []).append(part)
    return join_fragments([_as_set(same) for same in by_sql.values()], "OR")


def _as_set(same: Sequence[Fragment]) -> Fragment:
    """Return OR of conditions with the same SQL."""
    one = same[0]
    values = tuple(value for part in same for value in part.parameters)
    if len(same) == 1 or not values:
        return one
    if len(one.parameters) > 1 or not _EQUAL.search(one.sql) or "NOT (" in one.sql:
        return join_fragments(same, "OR")
    return Fragment(_EQUAL.sub(f"IN ({', '.join('?' * len(values))})", one.sql), values, one.cost)


def join_fragments(parts: Sequence[Fragment], operator: str) -> Fragment:
    """Join conditions by AND or OR as a balanced tree, because SQLite limits the depth of an expression to 1,000."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    left, right = join_fragments(parts[:middle], operator), join_fragments(parts[middle:], operator)
    sql = f"({left.sql} {operator} {right.sql})"
    return Fragment(sql, left.parameters + right.parameters, left.cost + right.cost)


KEYWORDS = frozenset(word.lower() for word in SQLite.Tokenizer.KEYWORDS)


def quoted(name: str) -> str:
    """Return a field's name as a filter writes it: in double quotes unless it is a plain word."""
    doubled = name.replace('"', '""')
    simple = name.isascii() and name.isidentifier() and name.islower() and name not in KEYWORDS
    return name if simple else f'"{doubled}"'


def shown(text: str) -> str:
    """Quote a text for a message, cut to one short line."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


NAMES_SHOWN = 30
ARTICLES = {
    "integer": "an integer", "real": "a number", "boolean": "a boolean", "date": "a date", "list": "a list",
    "text": "text",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operand:
    """What a comparison reads.

    Attributes:
        sql: Its SQL, over `documents d` and `metadata m`.
        type: "text", "list", "boolean", "integer", "real" or "date".
        name: How a message calls it.
        own: For groups that lie under others, the SQL of the value of one group, of which there may be several: a
            document passes a test if its group, or one above it, does.
        inside: SQL that is true for the documents inside a group that passes `{1}`.
        named: For numbers of groups that lie under others, the SQL of a group's name, with which texts are compared.
        run: Number of the run that it reads if its groups lie under others, else 0.
        cost: The least that a comparison of it costs; see `Fragment`.
        call: How a filter writes it, if it is a function of a field.
        column: The column of the source that it reads, "" for functions and for what is not metadata.
    """

    sql: str
    type: str
    name: str
    own: str = ""
    inside: str = ""
    named: str = ""
    run: int = 0
    cost: int = 1
    call: str = ""
    column: str = ""

    @property
    def written(self) -> str:
        """How a filter writes it: a name that is no plain word in double quotes."""
        return self.call or quoted(self.name)

    def applied(self, function: str, type: str, call: str) -> "Operand":
        """Return what a function in SQL, which a filter writes as `call`, makes of it."""
        sql, own = f"{function}({self.sql})", self.own and f"{function}({self.own})"
        name = f"{call}({self.name})"
        return Operand(
            sql, type, name, own, self.inside, run=self.run, cost=self.cost, call=f"{call}({self.written})"
        )  # fmt: skip


BUILT_IN = {
    "id": Operand("d.key", "text", "id"),
    "title": Operand("nullif(d.title, '')", "text", "title"),
    "text": Operand("d.text", "text", "text", cost=WHOLE_TEXT_COST),
    "length": Operand("d.length", "integer", "length"),
    "language": Operand("d.language", "text", "language"),
}
"""The fields that every document has."""


_RESERVED = frozenset(
    ("from", "select", "case", "when", "then", "else", "where", "join", "as", "on", "having", "union", "with", "any")
)
"""Words that SQL does not take for a column without quotes, and that no condition needs."""


class FieldNames:
    """Finds fields by name; those of the metadata hide built-in and further ones of the same name."""

    def __init__(self, fields: Mapping[str, Field], further: Mapping[str, Operand] | None = None) -> None:
        own = {
            name: Operand(f"m.{_quoted(field.column)}", field.type, name, column=name) for name, field in fields.items()
        }
        self._operands = {**BUILT_IN, **(further or {}), **own}
        self._own = own

    def has(self, name: str) -> bool:
        """Whether a field has this name, in any case."""
        return _folded(name) in map(_folded, self._operands)

    def lacks_quotes(self, where: str) -> str | None:
        """Return the longest name in a text that needs double quotes in a filter, in these quotes; None without one."""
        folded = where.casefold()
        words = _RESERVED & {*re.findall(r"\w+", folded)}
        needing = [
            name
            for name in self._operands
            if (name.casefold() in words if re.fullmatch(r"[\w.]+", name) else name.casefold() in folded)
        ]
        return _quoted(max(needing, key=len)) if needing else None

    def find(self, name: str, quoted: bool) -> Operand:
        """Return the field of this name, in the same case or, if only one fits, in another; accents in either form.

        Raises:
            UsageError: No field has the name, or several have it in other cases.
        """
        if known := next((each for each in spellings(name) if each in self._operands), None):
            return self._operands[known]
        for names in (self._own, self._operands):
            similar = [known for known in names if _folded(known) == _folded(name)]
            if len(similar) == 1:
                return names[similar[0]]
            if similar:
                said = f"{name!r} can mean {_listed(similar)}: write the name as it is, in double quotes"
                raise UsageError(said, code="ambiguous", alternatives=similar)
        raise self._unknown(name, quoted)

    def _unknown(self, name: str, quoted: bool) -> UsageError:
        kind, colon, rest = name.partition(":")
        if colon and kind in KINDS and rest:
            return self._no_run(kind, rest)
        near = nearest(name, self._operands)
        hint = f" (did you mean {near!r}?)" if near else "; put text in single quotes" if quoted else ""
        said = f"there is no field {shown(name)} to filter by{hint}; the fields are: {_listed(self._operands)}"
        return UsageError(said, code="not-found", alternatives=[near] if near else self._operands)

    def _no_run(self, kind: str, rest: str) -> UsageError:
        """Return the error for the column of a tag, or of another run, that does not exist."""
        what = str(TAG) if kind == TAG else f"{kind} run"
        known = [name for name in self._operands if name.startswith(f"{kind}:")]
        near = nearest(f"{kind}:{rest}", known)
        said = f"there is no {what} {shown(rest)}"
        if near:
            said += f" (did you mean {quoted(near)}?)"
        said += f"; the columns of {what}s are: {_listed(map(quoted, known))}" if known else f": there are no {what}s"
        return UsageError(said, code="not-found", alternatives=[near] if near else known)


def _folded(name: str) -> str:
    return composed(name).lower()


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _quoted(column: str) -> str:
    doubled = column.replace('"', '""')
    return column if column.isidentifier() and column.casefold() not in _RESERVED else f'"{doubled}"'


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
    return Fragment(f"{sides[0]} {operator} {sides[1]}", cost=max(left.cost, right.cost))


def _moment(sql: str) -> str:
    return f"({sql} || CASE length({sql}) WHEN 10 THEN 'T00:00:00' ELSE '' END)"


LONGEST_PATTERN = 1_000
ESCAPE = "\\"


class Wildcard(Enum):
    """The two wildcards of LIKE."""

    ANY = "%"
    ONE = "_"


def glob(pattern: str, escape: str | None, any_case: bool = False) -> str:
    """Return the GLOB pattern that matches as LIKE does in standard SQL: with regard to case, unless `any_case`."""
    signs = {Wildcard.ANY: "*", Wildcard.ONE: "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    cased = _any_case if any_case else str
    return "".join(signs.get(part) or cased(str(part)) for part in _parts(pattern, escape))


def _any_case(letter: str) -> str:
    """Return what matches a letter in GLOB in any case, as far as that is one letter: [éÉ]; σ, ς and Σ are the same."""
    upper = letter.upper()
    cases = dict.fromkeys((letter, letter.lower(), upper, upper.lower(), letter.casefold()))
    single = [case for case in cases if len(case) == 1]
    return f"[{''.join(single)}]" if len(single) > 1 else letter


def like_condition(pattern: str, escape: str | None) -> str:
    """Return the pattern for SQLite's LIKE, which ignores the case of ASCII letters, with `ESCAPE` as its escape."""
    parts = _parts(pattern, escape)
    return "".join(
        part.value if isinstance(part, Wildcard) else ESCAPE + part if part in "%_\\" else part for part in parts
    )


def _parts(pattern: str, escape: str | None) -> Iterator[str | Wildcard]:
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(f"a LIKE pattern has {len(pattern):,} characters; at most {LONGEST_PATTERN:,} are possible")
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise UsageError(f"the LIKE pattern {shown(pattern)} ends with its escape character {escape!r}")
            yield following
        else:
            yield Wildcard(character) if character in ("%", "_") else character


_YEAR_OR_MONTH = re.compile(r"\d{4}(-(0[1-9]|1[0-2]))?")
# Sorts after everything that can continue a date, and before everything that can follow it in time.
AFTER_PERIOD = "~"
# Sorts between a whole second and its fractions.
AFTER_INSTANT = "!"


@dataclass(frozen=True, slots=True)
class Span:
    """The stored texts from `start` up to, but without, `end`."""

    start: str
    end: str


def period(literal: str) -> Span | None:
    """Return what a date literal stands for: a year, a month, a day, or an instant; None if it is not a date.

    A stored day counts as its midnight, so "2024-03-01T00:00" is equal to it.
    """
    text = literal.strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        return Span(text, text + AFTER_PERIOD)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return _instant(text)
    return Span(day.isoformat(), day.isoformat() + AFTER_PERIOD)


def _instant(text: str) -> Span | None:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return None
    stored = moment.isoformat()
    start = moment.date().isoformat() if moment.time() == time() else stored
    return Span(start, stored + AFTER_INSTANT)

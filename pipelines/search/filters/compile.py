"""Filters: compiled from text to SQL, and written by programs for names and values of any characters."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from ....indexer.document import Value
from ....indexer.errors import NOT_UNICODE, UsageError, is_unicode
from ....indexer.store.catalog import ID_COLUMN, Catalog
from ....indexer.store.fields import Field
from ....indexer.store.kinds import KINDS, Column
from ....indexer.store.members import ALL_NAMES, INSIDE, LEVEL, NAME, NUMBER, OWN, SCORE, TAGGED, TEST_OF, lineages
from ....indexer.store.runs import Run, columns_by_run, depth_of, list_runs, run_columns
from .conditions import Operands, Texts
from .expression import Expressions
from .sql import BUILT_IN, ESCAPE, LIST_COST, TEXT_COST, FieldNames, Fragment, Operand, quoted, shown


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


LONGEST = 1_000_000


def parse(where: str) -> exp.Expr:
    """Parse one condition.

    Raises:
        UsageError: The text is empty, too long, nested too deeply, or no single condition.
    """
    if len(where) > LONGEST:
        raise UsageError(f"the filter has {len(where):,} characters, and at most {LONGEST:,} are read: shorten it")
    if not is_unicode(where):
        raise UsageError(f"the filter {shown(where)} {NOT_UNICODE}")
    if not where.isascii() and (curly := _CURLY.search(_QUOTED.sub("", where))):
        raise UsageError(
            f"the filter {shown(where)} has the quotation mark {curly[0]}: put text in straight single quotes ('…'), "
            'and a column name in straight double quotes ("…")'
        )
    try:
        parsed = Dialect.get_or_raise("sqlite").parse_into(exp.Condition, where)
    except ParseError as error:
        raise UsageError(_sentence(where, error)) from None
    except TokenError:
        raise UsageError(
            f"the filter {shown(where)} cannot be read: a quote or a comment in it is not closed"
        ) from None
    conditions = [condition for condition in parsed if condition is not None]
    if not conditions:
        raise UsageError("the filter is empty: write a condition, such as: year >= 2020 AND city = 'Rome'")
    if len(conditions) > 1:
        raise UsageError(
            f"the filter {shown(where)} holds {len(conditions)} statements: write one condition without ';'"
        )
    return conditions[0]


_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_CURLY = re.compile("[‘’‚“”„«»‹›]")
"""Quotation marks that word processors and chats write."""
_RUN_COLUMN = re.compile(rf"\b(?:{'|'.join(KINDS)}):[\w:-]+")


_COMMA = re.compile(r"\d[\d.]*,\d[\d.,]*")
"""A number as many languages write it: 1.234,5."""
_BARE_DATE = re.compile(r"\b\d{4}-\d{1,2}-\d{1,2}\b")
_CALLS = re.compile(r"""(\b\w++|"[^"]+")\s++(?:contains?|includes?|has|matches)\s++'([^']*)'""", re.IGNORECASE)
"""Operators that other languages have: `title contains 'refund'`. Nothing is tried twice, however long a word is."""


def _sentence(where: str, error: ParseError) -> str:
    details = error.errors[0] if error.errors else {}
    line, end, found = details.get("line", 1), details.get("col", 0), details.get("highlight") or ""
    place = f"character {max(1, end - len(found) + 1)}" + (f" of line {line}" if "\n" in where.strip() else "")
    near = f" ({shown(found)})" if found else ""
    if column := _RUN_COLUMN.search(_QUOTED.sub("", where)):
        return f'the filter {shown(where)} cannot be read: write the column in double quotes: "{column[0]}" = …'
    if found == "," and (comma := _COMMA.search(_QUOTED.sub("", where))):
        said = f"the filter {shown(where)} cannot be read: write {comma[0]} with a decimal point"
        return f"{said} and nothing between thousands, as in 1234.5"
    hint = "text takes single quotes, and a column name with spaces or colons, or that is an SQL word, double quotes"
    if date := _BARE_DATE.search(_QUOTED.sub("", where)):
        hint = f"put dates in single quotes, as in: '{date[0]}'; {hint}"
    if said := _CALLS.search(where):
        hint = f"write {said[1]} LIKE '%{said[2]}%' for a text that contains this, and 'x' IN {said[1]} for a list"
    return f"the filter {shown(where)} cannot be read from {place}{near} on: {hint}"


MOST_PARAMETERS = 30_000
MOST_COST = 60
"""The most expensive filter takes about a second for 100,000 documents, or a few if it reads long texts; see
`Fragment.cost`. A set of values is one comparison, however many it has."""


@dataclass(frozen=True, slots=True)
class CompiledFilter:
    """A condition over `documents d JOIN metadata m`, the values of its question marks, and the fields it reads."""

    sql: str
    parameters: tuple[str | int | float, ...]
    fields: tuple[str, ...]


def compile_filter(
    where: str,
    fields: Mapping[str, Field],
    further: Mapping[str, Operand] | None = None,
    texts: Texts | None = None,
    common: Texts | None = None,
) -> CompiledFilter:
    """Compile the text of a SQL WHERE clause into a condition with bound parameters.

    As in SQL, a comparison with a missing value is neither true nor false: `stars != 3` does not find documents without
    stars, `stars != 3 OR stars IS NULL` does. LIKE regards case, ILIKE does not. A date literal
    stands for its whole year, month or day: `date <= '2024-03'` includes all of March. A list meets a comparison when
    one of its items does: `tags = 'x'`, `'x' IN tags` and `CONTAINS(tags, 'x')` are the same, and LENGTH counts items.

    Args:
        where: Such as `stars >= 4 AND "made in" IN ('Italy', 'Spain')`; names match in any case if only one fits.
        fields: The metadata by name. `id`, `title`, `text`, `length` (characters) and `language` are there too,
            unless a metadata field has the same name.
        further: What else a filter can ask of, by name, as `further_operands` gives it.
        texts: Gives some texts of a field. With it, an order of dates in a text column that holds dates of other forms
            than ISO's is refused.
        common: Gives the most frequent texts of a field, for advice on its type.

    Raises:
        UsageError: The text is no condition, names a field that does not exist, compares a field with a value of
            another type, or uses anything that is not supported.

    Example:
        >>> from sonde.indexer.store.fields import Field
        >>> compile_filter("stars >= 4", {"stars": Field("stars", "c0", "integer")})
        CompiledFilter(sql='m.c0 >= ?', parameters=(4,), fields=('stars',))
    """
    names = FieldNames(fields, further)
    operands = Operands(names, texts, common)
    try:
        found = _condition(where, operands)
    except UsageError as error:
        if name := names.lacks_quotes(_QUOTED.sub("", where)):
            said = f"the filter {shown(where)} cannot be read: write the column in double quotes: {name} = …"
            raise UsageError(said, field="where", value=where) from None
        error.field, error.value = "where", where
        raise
    return CompiledFilter(found.sql, found.parameters, tuple(operands.used))


def _condition(where: str, operands: Operands) -> Fragment:
    try:
        found = Expressions(operands).condition(parse(where))
    except RecursionError:
        raise UsageError(f"the filter {shown(where)} is nested too deeply: use fewer parentheses") from None
    if (count := len(found.parameters)) > MOST_PARAMETERS:
        raise UsageError(f"the filter has {count:,} values, and at most {MOST_PARAMETERS:,} are possible")
    if found.cost > MOST_COST:
        raise UsageError(
            f"the filter has too many comparisons: they count {found.cost:,}, and at most {MOST_COST} are possible "
            f"(a pattern or function counts {TEXT_COST}, a list or the text {LIST_COST}); "
            "for many values, write field IN (…)"
        )
    return found


def further_operands(catalog: Catalog, where: str) -> dict[str, Operand]:
    """Return what the filter `where` can ask of beside metadata: the ids under their column's name, and runs."""
    name = catalog.get(ID_COLUMN)
    ids = {name: replace(BUILT_IN["id"], name=name)} if name and name.lower() not in BUILT_IN else {}
    return ids | run_operands(catalog) if ":" in where else ids


def run_operands(catalog: Catalog) -> dict[str, Operand]:
    """Return what a filter can ask of runs, by the names of their columns in an export.

    `"cluster:RUN"` and `"topic:RUN"` are numbers, `"cluster:RUN name"` and `"topic:RUN name"` texts; `"label:RUN"` and
    `"correction:RUN"` are names, or lists of names where a text may have several; `"label:RUN probability"` is a
    number; `"tag:NAME"` is true or false. A test of `"taxonomy:RUN"`, `"taxonomy:RUN name"` or `"taxonomy:RUN path"`
    holds for the groups that pass it and for all groups under them. The columns of its levels are texts.
    """
    runs = [run for run in list_runs(catalog, count=False) if run.complete and run.kind.payload == "run_documents"]
    mains = run_columns(runs)
    depths = {run.number: depth_of(lineages(catalog, run)) for run in runs if run.kind.nested}
    columns = columns_by_run(runs, mains, depths)
    return {column.name: _operand(run, column) for run in runs for column in columns[run.number] if column.operand}


_READING = {
    "number": NUMBER, "name": NAME, "names": ALL_NAMES, "member": TAGGED, "path": NAME, "level": LEVEL, "score": SCORE,
}  # fmt: skip


def _operand(run: Run, column: Column) -> Operand:
    """Return what a filter reads for a column of a run."""
    sql = _READING[column.value].format(run.number, column.level)
    if not run.kind.nested:
        return Operand(sql, column.operand or "", column.name)
    if column.value not in OWN:
        return Operand(sql, column.operand or "", column.name, cost=LIST_COST)
    inside = INSIDE.format(run.number, TEST_OF[column.value])
    named = OWN["name"] if column.value == "number" else ""
    return Operand(sql, column.operand or "", column.name, OWN[column.value], inside, named, run.number)

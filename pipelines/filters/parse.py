"""From the text of a filter to sqlglot's expression, or one line that says where the text stops making sense."""

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from ...indexer.errors import UsageError
from .fragment import shown

LONGEST = 1_000_000


def parse(where: str) -> exp.Expr:
    """Parse one condition.

    Raises:
        UsageError: The text is empty, too long, nested too deeply, or no single condition.
    """
    if len(where) > LONGEST:
        raise UsageError(f"the filter has {len(where):,} characters, and at most {LONGEST:,} are read: shorten it")
    if not where.isascii() and any("\ud800" <= character <= "\udfff" for character in where):
        raise UsageError(f"the filter {shown(where)} is not valid Unicode: write it in UTF-8")
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
        raise UsageError("the filter is empty: write a condition, such as: year >= 2020 AND language = 'en'")
    if len(conditions) > 1:
        raise UsageError(
            f"the filter {shown(where)} holds {len(conditions)} statements: write one condition without ';'"
        )
    return conditions[0]


def _sentence(where: str, error: ParseError) -> str:
    details = error.errors[0] if error.errors else {}
    line, end, found = details.get("line", 1), details.get("col", 0), details.get("highlight") or ""
    place = f"character {max(1, end - len(found) + 1)}" + (f" of line {line}" if "\n" in where.strip() else "")
    near = f" ({shown(found)})" if found else ""
    hint = "; a name that SQL reserves, or one with spaces or colons, takes double quotes, a text single ones"
    return f"the filter {shown(where)} cannot be read from {place}{near} on{hint}"

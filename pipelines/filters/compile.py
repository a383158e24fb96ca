"""Compiling a filter: parse, check against the fields, bind every value."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...indexer.errors import UsageError
from ...indexer.fields import Field
from .expression import Expressions
from .fields import FieldNames, Operand
from .fragment import shown
from .operands import Operands
from .parse import parse

MOST_PARAMETERS = 30_000


@dataclass(frozen=True, slots=True)
class CompiledFilter:
    """A condition over `documents d JOIN metadata m`, the values of its question marks, and the fields it reads."""

    sql: str
    parameters: tuple[str | int | float, ...]
    fields: tuple[str, ...]


def compile_filter(
    where: str, fields: Mapping[str, Field], runs: Mapping[str, Operand] | None = None
) -> CompiledFilter:
    """Compile the text of a SQL WHERE clause into a condition with bound parameters.

    As in SQL, a comparison with a missing value is neither true nor false: `stars != 3` does not find documents without
    stars, `stars != 3 OR stars IS NULL` does. LIKE regards case, ILIKE ignores that of ASCII letters. A date literal
    stands for its whole year, month or day: `date <= '2024-03'` includes all of March. A list meets a comparison when
    one of its items does: `tags = 'x'`, `'x' IN tags` and `CONTAINS(tags, 'x')` are the same, and LENGTH counts items.

    Args:
        where: Such as `stars >= 4 AND "made in" IN ('Italy', 'Spain')`; names match in any case if only one fits.
        fields: The metadata by name. `id`, `title`, `length` (characters) and `language` are there too, unless a
            metadata field has the same name.
        runs: What runs say of documents, under the names that their columns have in an export, as `run_operands` gives
            them.

    Raises:
        UsageError: The text is no condition, names a field that does not exist, compares a field with a value of
            another type, or uses anything that is not supported.

    Example:
        >>> from sonde.indexer.fields import Field
        >>> compile_filter("stars >= 4", {"stars": Field("stars", "c0", "integer")})
        CompiledFilter(sql='m.c0 >= ?', parameters=(4,), fields=('stars',))
    """
    operands = Operands(FieldNames(fields, runs))
    try:
        found = Expressions(operands).condition(parse(where))
    except RecursionError:
        raise UsageError(f"the filter {shown(where)} is nested too deeply: use fewer parentheses") from None
    if (count := len(found.parameters)) > MOST_PARAMETERS:
        raise UsageError(f"the filter has {count:,} values, and at most {MOST_PARAMETERS:,} are possible")
    return CompiledFilter(found.sql, found.parameters, tuple(operands.used))

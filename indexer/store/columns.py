"""Metadata columns in the catalog: the values of one column, and how often each occurs."""

from typing import Any, NamedTuple

from ..document import Value
from .catalog import Catalog
from .fields import Field, load_value


class ColumnSummary(NamedTuple):
    """What a column holds.

    Attributes:
        documents: How many documents have a value.
        distinct: How many different values there are.
        low: The least stored value; None where there is none.
        high: The greatest stored value.
    """

    documents: int
    distinct: int
    low: Any
    high: Any


def column_values(catalog: Catalog, field: Field) -> dict[int, Any]:
    """Return a column as it is stored, by document number, None where a value is missing.

    `fields.load_value` turns a stored value into a Python value.
    """
    return dict(catalog.connection.execute(f"SELECT doc, {field.column} FROM metadata"))


def summary_of(catalog: Catalog, field: Field) -> ColumnSummary:
    """Return how many values a column has, how many of them differ, and the range they are in."""
    column = field.column
    sql = f"SELECT count({column}), count(DISTINCT {column}), min({column}), max({column}) FROM metadata"
    return ColumnSummary(*catalog.connection.execute(sql).fetchone())


def value_counts(catalog: Catalog, field: Field) -> list[tuple[Value, int]]:
    """Return the values of a column with their numbers of documents, in no particular order."""
    sql = f"SELECT {field.column}, count(*) FROM metadata WHERE {field.column} IS NOT NULL GROUP BY 1"
    return [(load_value(value, field.type), count) for value, count in catalog.connection.execute(sql)]


def list_item_counts(catalog: Catalog, field: Field, most: int) -> list[tuple[Any, int]]:
    """Return up to `most` items of a column of lists with their numbers of documents, the commonest first."""
    sql = (
        f"SELECT j.value, count(DISTINCT m.doc) FROM metadata m, json_each(m.{field.column}) j GROUP BY 1 "
        f"ORDER BY 2 DESC, 1 LIMIT {int(most)}"
    )
    return catalog.connection.execute(sql).fetchall()


def distinct_beginnings(catalog: Catalog, field: Field, length: int) -> int:
    """Return how many different beginnings of `length` characters the values of a column have, such as years."""
    sql = f"SELECT count(DISTINCT substr({field.column}, 1, {int(length)})) FROM metadata"
    return catalog.connection.execute(sql).fetchone()[0]


def any_item(column: str, types: str, condition: str) -> str:
    """Return SQL that is true where an item of a list passes a condition, and NULL where there is no list.

    Args:
        column: SQL of the list.
        types: SQL of the JSON types that the item may have, such as `('integer', 'real')`.
        condition: SQL over `item.value` and `item.type`.
    """
    items = f"SELECT 1 FROM json_each({column}) AS item WHERE item.type IN {types} AND {condition}"
    return f"CASE WHEN {column} IS NOT NULL THEN EXISTS ({items}) END"

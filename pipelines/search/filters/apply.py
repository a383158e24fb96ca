"""Filters of a collection: checked, or run. The parser is loaded only when there is a filter."""

from typing import TYPE_CHECKING

import numpy as np

from ....indexer.store.catalog import Catalog
from ....indexer.store.collection import StoredCollection
from ....indexer.store.documents import frequent_texts, unusual_texts
from ....indexer.wording import counted

if TYPE_CHECKING:
    from .compile import CompiledFilter
    from .sql import Operand

MOST_TEXTS = 2_000
"""Different texts of a column in which dates are looked for."""


def check_filter(collection: StoredCollection, where: str | None) -> None:
    """Compile a filter without running it, so that a mistake is found before anything slow begins.

    Raises:
        UsageError: The filter is not valid: its syntax, a name, an operator or a value.
    """
    if where is not None:
        with collection.view() as view:
            _compiled(view.catalog, where)


def documents_where(catalog: Catalog, where: str) -> np.ndarray:
    """Return int64 numbers of the documents that pass a filter over metadata and runs, ascending.

    Raises:
        UsageError: The filter is not valid: its syntax, a name, an operator or a value.
    """
    compiled = _compiled(catalog, where)
    return catalog.documents_where(compiled.sql, compiled.parameters)


def empty_hint(catalog: Catalog, where: str) -> str:
    """Return what explains that no document passes a filter, such as the value that was probably meant; or ""."""
    from .empty import hint

    return hint(catalog, where)


def explain_filter(collection: StoredCollection, where: str) -> str:
    """Return how many documents of a collection pass a filter, and if none does, what was probably meant."""
    with collection.view() as view:
        if passing := len(documents_where(view.catalog, where)):
            return f"{counted(passing, 'document')} {'passes' if passing == 1 else 'pass'} the filter"
        return f"no document passes the filter{empty_hint(view.catalog, where)}"


def _compiled(catalog: Catalog, where: str) -> "CompiledFilter":
    from .compile import compile_filter, further_operands

    def texts(operand: "Operand") -> list[str]:
        return unusual_texts(catalog, operand.sql, MOST_TEXTS)

    def common(operand: "Operand") -> list[str]:
        return frequent_texts(catalog, operand.sql, operand.type == "list", MOST_TEXTS)

    return compile_filter(where, catalog.fields(), further_operands(catalog, where), texts, common)

"""Which passages a search may return: those of live documents which pass the filter."""

import numpy as np

from ..indexer.view import View
from .filters import documents_where


def allowed_rows(view: View, where: str | None) -> np.ndarray | None:
    """Return bool [rows], or None where every row may be returned.

    Raises:
        UsageError: The filter cannot be right: its syntax, a column, an operator or a value.
    """
    generation = view.generation
    if where is None:
        return generation.alive if generation.tombstones else None
    docs = documents_where(view.catalog, where)
    passing = np.zeros(int(generation.owners.max(initial=0)) + 1, dtype=bool)
    passing[docs] = True
    # A tombstone's owner is -1, which would look up the last document: only live rows are asked.
    allowed = generation.alive.copy()
    allowed[allowed] = passing[generation.owners[allowed]]
    return allowed

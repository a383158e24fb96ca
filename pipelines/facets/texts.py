"""The texts of a table's documents, in blocks of about the same size, for a page that holds them all."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...indexer.store.catalog import in_slices
from ...indexer.store.documents import chosen_texts
from ...indexer.store.fields import stored_text
from ...indexer.store.view import View

BLOCK = 1_000_000
"""Characters of a block, about."""
AT_ONCE = 2_000

Document = tuple[str, str, str, dict[str, Any]]


def text_blocks(view: View, docs: np.ndarray, known: set[str], length: int | None = None) -> Iterator[list[Document]]:
    """Yield id, title, text and metadata of documents in their order.

    Args:
        view: Where they are.
        docs: int64 [n] document numbers, ascending.
        known: Metadata fields to leave out, because the table has them.
        length: Characters of a text, at most; None for all.
    """
    block: list[Document] = []
    size = 0
    for some in in_slices(docs.tolist(), AT_ONCE):
        metadata = view.catalog.metadata(some)
        for each in chosen_texts(view.catalog, some, length):
            facts = metadata.get(each.doc, {}).items()
            rest = {name: stored_text(value) for name, value in facts if name not in known}
            block.append((each.id, each.title, each.text, rest))
            size += len(each.text) + len(each.title)
            if size >= BLOCK:
                yield block
                block, size = [], 0
    if block:
        yield block

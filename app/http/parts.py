"""Documents that are sent in several requests, each of which a service reads."""

import json
from collections.abc import Iterator, Sequence

from ...indexer.document import Document

AT_ONCE = 500
"""Number of documents to write in one request."""
MOST_BYTES = 2_000_000
"""Bytes of the documents in one request; a service reads 4,000,000 unless it was told otherwise."""


def parts_of(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """Yield documents for one request each: at most `AT_ONCE`, and `MOST_BYTES` as JSON unless one has more."""
    part: list[Document] = []
    held = 0
    for each in documents:
        size = len(json.dumps([each.text, each.title, each.key, each.metadata], default=str))
        if part and (len(part) == AT_ONCE or held + size > MOST_BYTES):
            yield part
            part, held = [], 0
        part.append(each)
        held += size
    if part or not documents:
        yield part

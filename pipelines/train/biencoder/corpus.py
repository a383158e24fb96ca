"""Pairs from a collection's own texts: a title and its text, a passage and the one that follows it."""

from collections.abc import Iterator

import numpy as np

from ....indexer.collection import Collection
from ....indexer.errors import SondeError
from .examples import FEWEST, Examples

SOURCES = ("titles", "neighbours", "both")
SHORTEST = 40
"""Characters below which a passage says too little to be a neighbour."""
MOST = 100_000
"""Pairs at most; of more documents, some are taken by chance."""


def pairs_of_collection(collection: Collection, made_of: str = "both", seed: int = 0) -> Examples:
    """Return pairs of titles with the first passage of their text, and of neighbouring passages.

    The pairs of one document are one group, and documents of the same title or the same passage share it.

    Raises:
        SondeError: The collection has too few titles or long documents.
    """
    rows = list(_rows(collection, made_of))
    if len(rows) < FEWEST:
        raise SondeError(
            f"{collection.path} gives {len(rows)} pairs of {made_of}: at least {FEWEST} are needed; "
            "give a file of examples, or a collection with titles or longer texts"
        )
    if len(rows) > MOST:
        rows = [rows[place] for place in np.sort(np.random.default_rng(seed).choice(len(rows), MOST, replace=False))]
    numbers = np.unique([doc for doc, _, _ in rows], return_inverse=True)[1]
    return Examples(
        "pairs", tuple(row[1] for row in rows), tuple(row[2] for row in rows), groups=numbers.astype(np.int64)
    )


def _rows(collection: Collection, made_of: str) -> Iterator[tuple[int, str, str]]:
    """Yield document, query and passage; texts that came before are passed over."""
    seen: set[str] = set()
    with collection.view() as view:
        sql = "SELECT d.doc, d.title, d.text, p.start, p.end FROM documents d JOIN passages p ON p.doc = d.doc"
        before: tuple[int, str] = (-1, "")
        for doc, title, text, start, end in view.catalog.connection.execute(f"{sql} ORDER BY d.doc, p.start"):
            passage = text[start:end].strip()
            first, previous = doc != before[0], before[1]
            before = (doc, passage)
            if passage in seen or not passage:
                continue
            seen.add(passage)
            if first and title.strip() and made_of != "neighbours" and len(passage) >= SHORTEST:
                yield doc, title.strip(), passage
            if not first and made_of != "titles" and min(len(previous), len(passage)) >= SHORTEST:
                yield doc, previous, passage

"""Whether the stored passages are those of their documents: they cover the text, and each has its digest."""

import json
from collections.abc import Iterator, Sequence

from .catalog import Catalog
from .chunker import passage_text
from .writing import digest

Span = tuple[int, int, bytes]


def astray(catalog: Catalog, fingerprint: str) -> Iterator[tuple[int, str]]:
    """Yield (document, problem) for every document whose passages are not those that were made of its text.

    Args:
        catalog: An open catalog, best in a transaction.
        fingerprint: Of the collection's model, which is part of a passage's digest.
    """
    sql = (
        "SELECT doc, title, text, (SELECT json_group_array(json_array(start, end, hex(digest))) "
        "FROM passages p WHERE p.doc = d.doc) FROM documents d"
    )
    for doc, title, text, stored in catalog.connection.execute(sql):
        spans = sorted((start, end, bytes.fromhex(digest)) for start, end, digest in json.loads(stored))
        if problem := _problem(title, text, spans, fingerprint):
            yield doc, problem


def _problem(title: str, text: str, spans: Sequence[Span], fingerprint: str) -> str | None:
    if not spans:
        return "have no passage"
    if any(not 0 <= start <= end <= len(text) for start, end, _ in spans):
        return "have passages beyond their text"
    covered = 0
    for start, end, _ in [*spans, (len(text), len(text), b"")]:
        if text[covered:start].strip():
            return "have text that no passage holds"
        covered = max(covered, end)
    if not all(_digest_fits(title, text[start:end], stored, fingerprint) for start, end, stored in spans):
        return "have passages of another text"
    return None


def _digest_fits(title: str, text: str, stored: bytes, fingerprint: str) -> bool:
    # A title too long for the model's window was cut; where, only the model's tokenizer knows.
    return any(
        digest(fingerprint, passage_text(title[:end].rstrip() if end < len(title) else title, text)) == stored
        for end in range(len(title), -1, -1)
    )

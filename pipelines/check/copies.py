"""Copies of documents, and leaks: copies in several parts of a split column."""

from collections import defaultdict
from collections.abc import Mapping

from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ..duplicates import Duplicates, DuplicateSettings, find_duplicates
from .settings import CheckSettings

Copy = tuple[str, float, str]
"""Id of a document, its similarity to the document that it repeats, and why it is named."""


def find_copies(collection: StoredCollection, settings: CheckSettings, notify: Notify = silent) -> Duplicates:
    """Return the groups of copies: exact, near and by meaning."""
    chosen = DuplicateSettings(near=settings.near, meaning=settings.meaning)
    return find_duplicates(collection, chosen, notify)


def duplicates(found: Duplicates) -> list[Copy]:
    """Return the documents that can be removed, the most similar first."""
    copies = [
        (each.id, each.similarity, f"{each.kind}: {group.representative}")
        for group in found.groups
        for each in group.duplicates
    ]
    return sorted(copies, key=lambda copy: -copy[1])


def leaks(found: Duplicates, parts: Mapping[str, str]) -> list[Copy]:
    """Return the documents with a copy in another part, the most similar first.

    Args:
        found: The groups of copies.
        parts: The part of each document by id, such as "train"; documents without one are left out.
    """
    copies = []
    for group in found.groups:
        similar = {group.representative: 1.0} | {each.id: each.similarity for each in group.duplicates}
        by_part: dict[str, list[str]] = defaultdict(list)
        for id in similar:
            if id in parts:
                by_part[parts[id]].append(id)
        for part, ids in by_part.items() if len(by_part) > 1 else ():
            other = next(ids for name, ids in by_part.items() if name != part)[0]
            copies += [(id, min(similar[id], similar[other]), f"{part}; {parts[other]}: {other}") for id in ids]
    return sorted(copies, key=lambda copy: -copy[1])

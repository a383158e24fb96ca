"""Documents as an analysis takes them: distinct vectors with their owners, and texts."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...indexer.store.documents import chosen_texts
from ...indexer.store.run_writing import Snapshot
from ...indexer.store.view import View, document_vectors, normalized

TEXT_LENGTH = 5_000
"""Characters of a document that its terms are taken from."""
DOCUMENTS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents of a collection and their distinct directions.

    Documents with the same title and text, or with equal vectors, share one: whatever is decided for it holds for all.

    Attributes:
        snapshot: The documents.
        vectors: float32 [m, d], of length 1, each at the first document that has it.
        group: int64 [n], for each document the row of its vector.
        first: int64 [m], for each vector the place of its first document.
    """

    snapshot: Snapshot
    vectors: np.ndarray
    group: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, view: View, docs: np.ndarray | None = None) -> "Corpus":
        """Read all documents of a view, or those with the given numbers."""
        snapshot = Snapshot.of(view)
        if docs is not None:
            kept = np.flatnonzero(np.isin(snapshot.docs, docs))
            contents = [snapshot.contents[place] for place in kept]
            snapshot = Snapshot(snapshot.generation, snapshot.docs[kept], contents)
        vectors = _vectors(view, snapshot.docs)
        group, first = distinct(vectors, snapshot.contents)
        return cls(snapshot, vectors if len(first) == len(vectors) else vectors[first], group, first)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.group)

    @property
    def counts(self) -> np.ndarray:
        """int64 [m]: how many documents share each vector."""
        return np.bincount(self.group, minlength=len(self.first))


def _vectors(view: View, docs: np.ndarray) -> np.ndarray:
    found = np.empty((len(docs), view.generation.segments.dimension), np.float32)
    for start in range(0, len(docs), DOCUMENTS_AT_ONCE):
        some = slice(start, start + DOCUMENTS_AT_ONCE)
        found[some] = normalized(document_vectors(view, docs[some]))
    return found


def distinct(vectors: np.ndarray, contents: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return which documents share a vector: int64 [n] group of each, and int64 [m] first document of each group.

    Equal contents and equal vectors both join documents. Groups are numbered in the order of their first documents.
    """
    known: dict[bytes, int] = {}
    group, first = np.empty(len(vectors), np.int64), []
    for place, (vector, content) in enumerate(zip(vectors, contents, strict=True)):
        digest = b"v" + hashlib.blake2b(vector.tobytes(), digest_size=16).digest()
        number = known.get(content, known.get(digest))
        if number is None:
            number = len(first)
            first.append(place)
        known.setdefault(content, number)
        known.setdefault(digest, number)
        group[place] = number
    return group, np.array(first, np.int64)


def texts_of(view: View, docs: np.ndarray) -> list[str]:
    """Return title and beginning of the text of each document, in the order of `docs`."""
    chosen = chosen_texts(view.catalog, docs.tolist(), TEXT_LENGTH)
    found = {each.doc: f"{each.title}\n{each.text}".strip() for each in chosen}
    return [found[doc] for doc in docs.tolist()]

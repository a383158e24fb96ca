"""One consistent generation of a collection, and one embedding for each of its documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..document import Value
from ..encoder import ModelSpec
from .catalog import Catalog
from .derived import Loaded
from .documents import numbers_by_id
from .elsewhere import Elsewhere
from .fields import Field, check_text
from .late import is_wanted
from .segments import Segments

if TYPE_CHECKING:
    from ..ann import AnnIndex
    from ..late import LateIndex
    from ..lexical import LexicalIndex
    from .collection import StoredCollection


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage: its vector's row, its document, and its character offsets in the document's text."""

    row: int
    doc: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the catalog holds it."""

    doc: int
    id: str
    title: str
    text: str
    language: str | None
    metadata: dict[str, Value]


class Generation:
    """What is loaded once per generation and shared by its readers: model, row owners, vectors, both indexes."""

    def __init__(
        self, number: int, epoch: int, spec: ModelSpec, owners: np.ndarray, segments: Segments, loaded: Loaded
    ) -> None:
        self.number = number
        self.spec = spec
        self.epoch = epoch
        self.owners = owners
        self.segments = segments
        self.loaded = loaded

    @classmethod
    def load(cls, folder: Path, catalog: Catalog, spec: ModelSpec, loaded: Loaded) -> "Generation":
        """Load the generation that the catalog's open transaction sees; `spec` is the model that it names."""
        segments = Segments(folder / "vectors", catalog.segments(), spec.dimension, normalized=spec.normalize)
        number, epoch = catalog.get("generation", 0), catalog.epoch()
        return cls(number, epoch, spec, catalog.document_of_row(), segments, loaded)

    @cached_property
    def alive(self) -> np.ndarray:
        """Bool [rows]: False for tombstones; read-only, so that FAISS's form of it is prepared once."""
        alive = self.owners >= 0
        alive.flags.writeable = False
        return alive

    @cached_property
    def tombstones(self) -> int:
        """How many rows are tombstones."""
        return int(len(self.owners) - self.alive.sum())

    def owned_by(self, docs: np.ndarray) -> np.ndarray:
        """Return bool [rows]: whether each row is a passage of one of these documents (int64 [n])."""
        wanted = np.zeros(int(self.owners.max(initial=0)) + 1, dtype=bool)
        wanted[docs] = True
        # A tombstone's owner is -1, which would index the last document, so only live rows are looked up.
        found = self.alive.copy()
        found[found] = wanted[self.owners[found]]
        return found

    @cached_property
    def ann(self) -> "AnnIndex | None":
        """The FAISS index, or None where the collection has none that can be read: searches then scan exactly."""
        return self.loaded.ann(self.epoch)

    @cached_property
    def lexical(self) -> "LexicalIndex | None":
        """The Tantivy index, or None where the collection has none that can be read."""
        return self.loaded.lexical(self.epoch)


class View:
    """A generation together with the catalog transaction that it was read in.

    Attributes:
        parts: The shards of a sharded collection, each a view and int64 [rows], the rows of this view that its own
            rows are, ascending; none for an ordinary collection.
        elsewhere: What searches the embeddings of the shards in other processes; None if this process does.
    """

    parts: "Sequence[tuple[View, np.ndarray]]" = ()
    elsewhere: "Elsewhere | None" = None

    def __init__(self, collection: "StoredCollection", catalog: Catalog, generation: Generation) -> None:
        self.collection = collection
        self.catalog = catalog
        self.generation = generation

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Metadata fields by name."""
        return self.catalog.fields()

    @cached_property
    def late(self) -> "LateIndex | None":
        """The late index, or None where the collection keeps none, or none that can be read."""
        if not is_wanted(self.catalog):
            return None
        return self.generation.loaded.late(self.generation.epoch, self.collection.spec.fingerprint)

    def digests(self, rows: Sequence[int]) -> list[bytes]:
        """Return the digest of each passage, by row: of its text and the model; rows must exist."""
        found = dict(self.catalog.select_in("SELECT row, digest FROM passages WHERE row IN (?)", list(rows)))
        return [found[row] for row in rows]

    def passages(self, rows: Sequence[int]) -> dict[int, StoredPassage]:
        """Return live passages by row."""
        sql = "SELECT row, doc, start, end FROM passages WHERE doc IS NOT NULL AND row IN (?)"
        return {found[0]: StoredPassage(*found) for found in self.catalog.select_in(sql, list(rows))}

    def rows_of(self, doc: int) -> list[int]:
        """Return the passage rows of one document, in text order."""
        found = self.catalog.select_in("SELECT row FROM passages WHERE doc IN (?) ORDER BY start, row", [doc])
        return [row for (row,) in found]

    def documents(self, docs: Sequence[int]) -> dict[int, StoredDocument]:
        """Return documents with their metadata by document number."""
        metadata = self.catalog.metadata(list(docs))
        sql = "SELECT doc, key, title, text, language FROM documents WHERE doc IN (?)"
        documents = {}
        for found in self.catalog.select_in(sql, list(docs)):
            check_text(*found)
            documents[found[0]] = StoredDocument(*found, metadata=metadata.get(found[0], {}))
        return documents

    def document_number(self, key: str) -> int | None:
        """Return the number of the document with this id, None if there is none."""
        return numbers_by_id(self.catalog, [key]).get(key)


ROWS_AT_ONCE = 65_536
FEW = 20
"""Below this part of the rows, passages are looked up by document instead of by a scan of all owners."""


def document_vectors(view: View, docs: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return float32 [n, d]: for each document the mean of its passages' vectors, normalised if the model's are."""
    docs = np.asarray(docs, dtype=np.int64)
    sums = np.zeros((len(docs), view.generation.segments.dimension), dtype=np.float32)
    if not len(docs):
        return sums
    rows, places = _passages(view, docs)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        owners, first = np.unique(places[some], return_index=True)
        sums[owners] += np.add.reduceat(view.generation.segments.read(rows[some]), first, axis=0)
    sums /= np.maximum(np.bincount(places, minlength=len(docs)), 1)[:, None].astype(np.float32)
    return normalized(sums) if view.generation.spec.normalize else sums


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Return float [n, d] vectors of length 1; a zero vector stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _passages(view: View, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of these documents' passages and each one's place in `docs`, ordered by place, then row."""
    owners = view.generation.owners
    if len(docs) < len(owners) // FEW:
        sql = "SELECT row FROM passages WHERE doc IN (?)"
        rows = np.sort(np.array([row for (row,) in view.catalog.select_in(sql, docs.tolist())], np.int64))
    else:
        rows = np.flatnonzero(np.isin(owners, docs))
    order = np.argsort(docs, kind="stable")
    places = order[np.searchsorted(docs, owners[rows], sorter=order)]
    by_place = np.argsort(places, kind="stable")
    return rows[by_place], places[by_place]

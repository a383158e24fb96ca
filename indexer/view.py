"""One consistent generation of a collection: what a search, an export or a check reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .catalog import Catalog, storable
from .derived import Loaded
from .document import Value
from .fields import Field
from .segments import Segments

if TYPE_CHECKING:
    from .ann import AnnIndex
    from .collection import Collection
    from .lexical import LexicalIndex


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
    """What is loaded once per generation and shared by its readers: row owners, vectors, both indexes."""

    def __init__(self, number: int, epoch: int, owners: np.ndarray, segments: Segments, loaded: Loaded) -> None:
        self.number = number
        self.epoch = epoch
        self.owners = owners
        self.segments = segments
        self._loaded = loaded

    @classmethod
    def load(cls, folder: Path, catalog: Catalog, dimension: int, loaded: Loaded) -> "Generation":
        """Load the generation that the catalog's open transaction sees."""
        segments = Segments(folder / "vectors", catalog.segments(), dimension)
        number, epoch = catalog.get("generation", 0), catalog.get("epoch", 1)
        return cls(number, epoch, catalog.document_of_row(), segments, loaded)

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

    @cached_property
    def ann(self) -> "AnnIndex | None":
        """The FAISS index, or None where the collection has none that can be read: searches then scan exactly."""
        return self._loaded.ann(self.epoch)

    @cached_property
    def lexical(self) -> "LexicalIndex | None":
        """The Tantivy index, or None where the collection has none that can be read."""
        return self._loaded.lexical(self.epoch)


class View:
    """A generation together with the catalog transaction that it was read in."""

    def __init__(self, collection: "Collection", catalog: Catalog, generation: Generation) -> None:
        self.collection = collection
        self.catalog = catalog
        self.generation = generation

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Metadata fields by name."""
        return self.catalog.fields()

    def passages(self, rows: Sequence[int]) -> dict[int, StoredPassage]:
        """Return live passages by row."""
        sql = "SELECT row, doc, start, end FROM passages WHERE doc IS NOT NULL AND row IN (?)"
        return {found[0]: StoredPassage(*found) for found in self.catalog.select_in(sql, list(rows))}

    def rows_of(self, doc: int) -> list[int]:
        """Return the passage rows of one document, in text order."""
        found = self.catalog.connection.execute("SELECT row FROM passages WHERE doc = ? ORDER BY start, row", (doc,))
        return [row for (row,) in found]

    def documents(self, docs: Sequence[int]) -> dict[int, StoredDocument]:
        """Return documents with their metadata by document number."""
        metadata = self.catalog.metadata(list(docs))
        sql = "SELECT doc, key, title, text, language FROM documents WHERE doc IN (?)"
        return {
            found[0]: StoredDocument(*found, metadata=metadata.get(found[0], {}))
            for found in self.catalog.select_in(sql, list(docs))
        }

    def document_number(self, key: str) -> int | None:
        """Return the number of the document with this id, None if there is none."""
        if not storable(key):
            return None
        found = self.catalog.connection.execute("SELECT doc FROM documents WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

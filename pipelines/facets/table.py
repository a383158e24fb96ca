"""The table of a collection: one row per document, with a place on the map and a value in each column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..plots.colors import shades

ColumnKind = Literal["class", "number", "date"]
Mode = Literal["light", "dark"]
MOST_NAMES = 256
"""Most names of a class column. One with more values keeps the most frequent, and `OTHER` for the rest."""
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: As in exports: "stars", "cluster:kmeans" …
        title: The heading for readers.
        kind: "class" for names, "number", or "date" (days since 1970-01-01, with a fraction for the time of day).
        values: Of a class, int32 [n] codes, -1 for documents without a value. Else float64 [n], NaN for none.
        names: Of a class: the name of each code, the most frequent first; else empty.
        cut: Whether the last name stands for all values that have no name of their own.
        part: Whether the run is a part of another, such as a level of topics.
        same: The column of that other run if it has exactly the same groups: views show only that one. Else empty.
        above: Of a class whose groups lie under others, such as a taxonomy: the code of the group above each, which is
            smaller, or -1; else empty. A document has the code of its own group, and belongs to those above it too.
    """

    name: str
    title: str
    kind: ColumnKind
    values: np.ndarray
    names: tuple[str, ...] = ()
    cut: bool = False
    part: bool = False
    same: str = ""
    above: tuple[int, ...] = ()

    @property
    def counts(self) -> list[int]:
        """Documents by code, those of the groups under it included; empty if the column is not a class."""
        if self.kind != "class":
            return []
        counts = np.bincount(self.values[self.values >= 0], minlength=len(self.names)).tolist()
        for code in reversed(range(len(self.above))):
            if self.above[code] >= 0:
                counts[self.above[code]] += counts[code]
        return counts

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the greatest number; None for a class, or where no document has one."""
        known = self.values[~np.isnan(self.values)] if self.kind != "class" else self.values[:0]
        return (float(known.min()), float(known.max())) if len(known) else None

    def colors(self, mode: Mode) -> list[str]:
        """Return the colour of each code as "#rrggbb", for a light or a dark page; what is cut is grey."""
        return shades(len(self.names), mode, grey_last=self.cut)


@dataclass(frozen=True, slots=True)
class Region:
    """The name of a part of the map: where it is shown, its level (1 is the coarsest), and its number of documents."""

    x: float
    y: float
    name: str
    level: int
    size: int


@dataclass(frozen=True)
class Facets:
    """All documents of a collection with their places and columns. Rows are in ascending order of document numbers.

    Attributes:
        collection: The collection's name.
        map: The name of the map run, or None where the collection has no map.
        docs: int64 [n] document numbers, ascending.
        places: float32 [n, 2]; NaN for a document that is not on the map.
        columns: Runs first, the newest first; then metadata.
        regions: The names of the map's regions, the coarsest level first.
        stamp: A value that differs when any of this differs.
    """

    collection: str
    map: str | None
    docs: np.ndarray
    places: np.ndarray
    columns: Sequence[Column]
    regions: Sequence[Region]
    stamp: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.docs)

    def __repr__(self) -> str:
        return f"Facets({self.collection!r}, {len(self):,} documents, {len(self.columns)} columns)"

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, low, right and high of the places; (0, 0, 1, 1) where no document has one."""
        known = self.places[~np.isnan(self.places[:, 0])]
        if not len(known):
            return 0.0, 0.0, 1.0, 1.0
        (left, low), (right, high) = known.min(axis=0).tolist(), known.max(axis=0).tolist()
        return left, low, right, high

    def rows(self, docs: np.ndarray) -> np.ndarray:
        """Return int64, the rows of documents by number, in their order; those that do not exist are left out."""
        docs = np.asarray(docs, np.int64)
        if not len(self.docs):
            return docs[:0]
        places = np.clip(np.searchsorted(self.docs, docs), 0, len(self.docs) - 1)
        return places[self.docs[places] == docs]

    def subset(self, kept: np.ndarray) -> "Facets":
        """Return the table of some rows, bool [n]; names that no row has any more keep their codes."""
        columns = [replace(column, values=column.values[kept]) for column in self.columns]
        stamp = (*self.stamp, kept.tobytes())
        return replace(self, docs=self.docs[kept], places=self.places[kept], columns=columns, stamp=stamp)

    def pack(self, more: Mapping[str, Any] | None = None) -> bytes:
        """Return the table as one buffer for a page, as `packing` describes it; `more` is added to the header."""
        from .packing import pack

        return pack(self, more or {})

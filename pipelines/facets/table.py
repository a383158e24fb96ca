"""The table of a collection: one row per document, with a place on the map and a value in each column.

A page reads it as one buffer, without copying: the length of the header (uint32, little endian), the header (JSON in
UTF-8, padded with spaces so that the arrays begin at a multiple of 8), then the arrays, each padded to a multiple of 8
bytes. An array's offset counts from the beginning of the buffer.
"""

import json
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ...indexer.store.catalog import in_slices
from ...indexer.store.documents import chosen_texts
from ...indexer.store.fields import stored_text
from ...indexer.store.view import View
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
        """Return the table as one buffer for a page; `more` is added to the header."""
        arrays = {"x": self.places[:, 0], "y": self.places[:, 1]}
        arrays |= {f"c{number}": column.values for number, column in enumerate(self.columns)}
        header: dict[str, Any] = {
            "version": VERSION,
            "collection": self.collection,
            "map": self.map,
            "rows": len(self),
            "columns": [_described(column, f"c{number}") for number, column in enumerate(self.columns)],
            "regions": [
                {"x": each.x, "y": each.y, "name": each.name, "level": each.level, "size": each.size}
                for each in self.regions
            ],
            "bounds": list(self.bounds),
        }
        return pack_arrays({**header, **(more or {})}, arrays)


VERSION = 1
ALIGNED = 8
LENGTH = struct.Struct("<I")
TYPES = ("float32", "float64", "int32", "uint16", "uint8", "uint32")

BLOCK = 1_000_000
"""Characters of a block of texts, about, in a page that holds all of them."""
AT_ONCE = 2_000

Document = tuple[str, str, str, dict[str, Any]]


def pack_arrays(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a header and named arrays [n] as one buffer; the header gets the entry "arrays".

    Raises:
        TypeError: An array has a type that JavaScript's typed arrays lack.
    """
    for name, array in arrays.items():
        if str(array.dtype) not in TYPES:
            raise TypeError(f"the array {name} is {array.dtype}: use {', '.join(TYPES)}")
    start = 0
    while True:  # the offsets are part of the header, whose length they depend on: this settles after two rounds
        written = _written(header, arrays, start)
        if len(written) + LENGTH.size == start:
            break
        start = len(written) + LENGTH.size
    parts = [LENGTH.pack(len(written)), written]
    for array in arrays.values():
        content = _little(array).tobytes()
        parts += [content, bytes(-len(content) % ALIGNED)]
    return b"".join(parts)


def unpack_arrays(buffer: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a buffer."""
    (length,) = LENGTH.unpack_from(buffer)
    header = json.loads(buffer[LENGTH.size : LENGTH.size + length])
    arrays = {
        each["name"]: np.frombuffer(buffer, np.dtype(each["type"]).newbyteorder("<"), each["length"], each["offset"])
        for each in header["arrays"]
    }
    return header, arrays


def _described(column: Column, array: str) -> dict[str, Any]:
    said: dict[str, Any] = {"name": column.name, "title": column.title, "kind": column.kind, "array": array}
    if column.kind == "class":
        said |= {"names": list(column.names), "counts": column.counts}
        said |= ({"part": True} if column.part else {}) | ({"same": column.same} if column.same else {})
        said |= {"above": list(column.above)} if column.above else {}
        said["colors"] = {"light": column.colors("light"), "dark": column.colors("dark")}
        return said | ({"other": True} if column.cut else {})
    low, high = column.ends or (None, None)
    return said | {"low": low, "high": high}


def _written(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], start: int) -> bytes:
    listed = []
    offset = start
    for name, array in arrays.items():
        listed.append({"name": name, "type": str(array.dtype), "length": len(array), "offset": offset})
        offset += array.nbytes + -array.nbytes % ALIGNED
    written = json.dumps({**header, "arrays": listed}, ensure_ascii=False, allow_nan=False).encode()
    return written + b" " * (-(len(written) + LENGTH.size) % ALIGNED)


def _little(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array if sys.byteorder == "little" else array.astype(array.dtype.newbyteorder("<")))


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

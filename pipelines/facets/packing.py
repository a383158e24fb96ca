"""The table as one buffer that JavaScript reads without copying, and the texts of its documents in blocks.

The buffer is the length of the header (uint32, little endian), the header (JSON in UTF-8, padded with spaces so that
the arrays begin at a multiple of 8), then the arrays, each padded to a multiple of 8 bytes. An array's offset counts
from the beginning of the buffer. A page that holds all texts gets blocks of about the same size.
"""

import json
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.store.catalog import in_slices
from ...indexer.store.documents import chosen_texts
from ...indexer.store.fields import stored_text
from ...indexer.store.view import View

if TYPE_CHECKING:
    from .table import Column, Facets

VERSION = 1
ALIGNED = 8
LENGTH = struct.Struct("<I")
TYPES = ("float32", "float64", "int32", "uint16", "uint8", "uint32")

BLOCK = 1_000_000
"""Characters of a block, about."""
AT_ONCE = 2_000

Document = tuple[str, str, str, dict[str, Any]]


def pack(table: "Facets", more: Mapping[str, Any]) -> bytes:
    """Return the table as one buffer; `more` are further entries of the header, as JSON values."""
    arrays = {"x": table.places[:, 0], "y": table.places[:, 1]}
    arrays |= {f"c{number}": column.values for number, column in enumerate(table.columns)}
    header: dict[str, Any] = {
        "version": VERSION,
        "collection": table.collection,
        "map": table.map,
        "rows": len(table),
        "columns": [_described(column, f"c{number}") for number, column in enumerate(table.columns)],
        "regions": [
            {"x": each.x, "y": each.y, "name": each.name, "level": each.level, "size": each.size}
            for each in table.regions
        ],
        "bounds": list(table.bounds),
    }
    return pack_arrays({**header, **more}, arrays)


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


def _described(column: "Column", array: str) -> dict[str, Any]:
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

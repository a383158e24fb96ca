"""What a writer does to the catalog inside one transaction: add, replace, delete documents and their fields."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..document import Document, Value
from ..errors import TooManyFieldsError
from ..wording import on_one_line
from .catalog import Catalog, in_slices
from .checksums import assignment_sum, change, document_checksum, place_sum, results_part
from .fields import Field, canonical, store, type_of, wider_type
from .kinds import KEPT
from .passages import bury_passages
from .retyping import retype_field

MAX_FIELDS = 1_900
"""SQLite allows 2,000 columns in a table."""


def digest(*parts: str) -> bytes:
    """Return a 16-byte BLAKE2b digest of the parts, which no other split of the same characters shares."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.digest()


@dataclass(frozen=True, slots=True)
class Identity:
    """What decides whether a document changed: a digest of its content and one of its metadata."""

    content: bytes
    extra: bytes

    @classmethod
    def of(cls, document: Document) -> "Identity":
        """Return the identity of a document."""
        content = digest(document.title, document.text, document.language or "")
        return cls(content, digest(canonical(document.metadata)))


def identities_by_id(catalog: Catalog, ids: Sequence[str]) -> dict[str, Identity]:
    """Return the identities of documents as they were written, by id; an id that no document has is left out."""
    found = catalog.select_in("SELECT key, content, extra FROM documents WHERE key IN (?)", ids)
    return {key: Identity(content, extra) for key, content, extra in found}


def declare_fields(catalog: Catalog, wanted: Mapping[str, str]) -> None:
    """Give a catalog these fields, types by name, in this order; nothing is written if it has them.

    Raises:
        TooManyFieldsError: There would be more fields than a table can hold.
    """
    fields = catalog.fields()
    if all(name in fields and fields[name].type == kind for name, kind in wanted.items()):
        return
    with catalog.transaction(write=True):
        for name, kind in wanted.items():
            if name not in fields:
                fields[name] = _add_field(catalog, name, kind, len(fields))
            elif fields[name].type != kind:
                fields[name] = retype_field(catalog, fields[name], kind)
        catalog.advance()


def widen_fields(catalog: Catalog, metadata: Iterable[Mapping[str, Value]]) -> dict[str, Field]:
    """Make a column for every new metadata field and widen types that no longer fit; return all fields.

    Raises:
        TooManyFieldsError: There would be more fields than a table can hold.
    """
    fields, wanted = catalog.fields(), {}
    met = dict.fromkeys((name, type_of(value)) for record in metadata for name, value in record.items())
    for name, kind in met:
        known = wanted.get(name) or (fields[name].type if name in fields else None)
        wanted[name] = wider_type(known, kind)  # None keeps the place of a column without values so far
    for name, kind in wanted.items():
        if kind and name not in fields:
            fields[name] = _add_field(catalog, name, kind, len(fields))
        elif kind and fields[name].type != kind:
            fields[name] = retype_field(catalog, fields[name], kind)
    return fields


def too_many_fields(name: str) -> TooManyFieldsError:
    """Return the error for a field, named here, that a table cannot hold any more."""
    said = f"more than {MAX_FIELDS:,} metadata columns (the next is {on_one_line(name)!r}): leave some out"
    return TooManyFieldsError(said)


def _add_field(catalog: Catalog, name: str, kind: str, number: int) -> Field:
    if number >= MAX_FIELDS:
        raise too_many_fields(name)
    field = Field(name, f"c{number}", kind)
    catalog.connection.execute(f"ALTER TABLE metadata ADD COLUMN {field.column}")
    catalog.connection.execute("INSERT INTO fields VALUES (?, ?, ?)", (name, field.column, kind))
    return field


def put_documents(
    catalog: Catalog, documents: Sequence[tuple[str, Document, Identity]], known: Mapping[str, int],
    new: Mapping[str, int] = {},
) -> list[int]:  # fmt: skip
    """Insert documents, or update those whose key exists; return their numbers in the same order.

    Args:
        catalog: In a write transaction.
        documents: Key, document and identity, no two with the same key.
        known: The numbers of those that exist, by key.
        new: The numbers that others get, by key; any other gets the next one.
    """
    columns = list(widen_fields(catalog, (document.metadata for _, document, _ in documents)).values())
    numbers, unused = [], 1 + _last_number(catalog)
    rows, metadata = [], []
    for key, document, identity in documents:
        doc = known.get(key) or new.get(key, unused)
        unused += doc == unused
        rows.append(_row(doc, key, document, identity))
        values = [store(document.metadata.get(field.name), field.type) for field in columns]
        named = ((field.name, field.type, value) for field, value in zip(columns, values, strict=True))
        metadata.append([doc, document_checksum(key, identity.content, identity.extra, named), *values])
        numbers.append(doc)
    catalog.connection.executemany(_PUT, rows)
    marks = ", ".join(["?"] * (2 + len(columns)))
    into = ", ".join(["doc", "checksum", *(field.column for field in columns)])
    catalog.connection.executemany(f"INSERT OR REPLACE INTO metadata({into}) VALUES ({marks})", metadata)
    return numbers


_PUT = (
    "INSERT INTO documents(doc, key, title, text, length, language, content, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT(key) DO UPDATE SET title = excluded.title, text = excluded.text, length = excluded.length, "
    "language = excluded.language, content = excluded.content, extra = excluded.extra"
)


def _row(doc: int, key: str, document: Document, identity: Identity) -> tuple[object, ...]:
    title, text = document.title, document.text
    return doc, key, title, text, len(text), document.language, identity.content, identity.extra


LAST_NUMBER = "last_document"
"""Property: the highest number of a deleted document, since SQLite would give it to the next one, and runs keep it."""


def _last_number(catalog: Catalog) -> int:
    """Return the highest number that any document has or had; 0 if there was none."""
    highest = catalog.connection.execute("SELECT coalesce(max(doc), 0) FROM documents").fetchone()[0]
    return max(highest, catalog.get(LAST_NUMBER, 0))


def bury(catalog: Catalog, docs: Sequence[int], *, replaced: bool = False) -> None:
    """Make tombstones of all passages of these documents, and remove the old text from runs; see `forget_in_runs`."""
    bury_passages(catalog, docs)
    forget_in_runs(catalog, docs, replaced=replaced)


def forget_in_runs(catalog: Catalog, docs: Sequence[int], *, replaced: bool = False) -> None:
    """Remove these documents from runs, inside a write transaction.

    Args:
        catalog: That of the runs.
        docs: The documents.
        replaced: Whether they are still there, with another text: runs whose kind says `kept` then keep them.
    """
    kept = [run for run, kind in catalog.select("SELECT run, kind FROM runs") if replaced and kind in KEPT]
    for some in in_slices(docs):
        _forget(catalog, some, kept, "run, doc, item, score", "run_documents", assignment_sum)
        _forget(catalog, some, kept, "run, doc, x, y", "run_places", place_sum)


def _forget(
    catalog: Catalog, docs: Sequence[int], kept: Sequence[int], columns: str, table: str, sum_of: Callable[..., int]
) -> None:
    by_run: dict[int, list[tuple[Any, ...]]] = {}
    for run, *row in catalog.select_in(f"SELECT {columns} FROM {table} WHERE doc IN (?)", docs):
        if run not in kept:
            by_run.setdefault(run, []).append(tuple(row))
    others = f"DELETE FROM {table} WHERE doc = ? AND run NOT IN ({', '.join('?' * len(kept))})"
    catalog.connection.executemany(others, [(doc, *kept) for doc in docs])
    for run, rows in by_run.items():
        change(catalog.connection, results_part(run), removed=sum_of(*zip(*rows, strict=True)))


def delete_documents(catalog: Catalog, docs: Sequence[int]) -> None:
    """Delete documents with their metadata; their passages become tombstones."""
    bury(catalog, docs)
    last = _last_number(catalog)
    if last in docs:
        catalog.set(LAST_NUMBER, last)
    for table in ("documents", "metadata"):
        catalog.connection.executemany(f"DELETE FROM {table} WHERE doc = ?", [(doc,) for doc in docs])

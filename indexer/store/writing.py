"""What a writer does to the catalog inside one transaction: add, replace, delete documents, and retype their fields."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..document import Document, Value
from ..errors import TooManyFieldsError
from ..wording import on_one_line
from .catalog import Catalog, in_slices
from .checksums import assignment_sum, change, document_checksum, fill_documents, place_sum, results_part
from .fields import Field, canonical, load_value, narrowed, store, stored_text, type_of, wider_type
from .kinds import KEPT
from .passages import bury_passages

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
                fields[name] = _retype_field(catalog, fields[name], kind)
        catalog.advance()


def _widen_fields(catalog: Catalog, metadata: Iterable[Mapping[str, Value]]) -> dict[str, Field]:
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
            fields[name] = _retype_field(catalog, fields[name], kind)
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
    columns = list(_widen_fields(catalog, (document.metadata for _, document, _ in documents)).values())
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


_LAST_NUMBER = "last_document"
"""Property: the highest number of a deleted document, since SQLite would give it to the next one, and runs keep it."""


def _last_number(catalog: Catalog) -> int:
    """Return the highest number that any document has or had; 0 if there was none."""
    highest = catalog.connection.execute("SELECT coalesce(max(doc), 0) FROM documents").fetchone()[0]
    return max(highest, catalog.get(_LAST_NUMBER, 0))


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
        catalog.set(_LAST_NUMBER, last)
    for table in ("documents", "metadata"):
        catalog.connection.executemany(f"DELETE FROM {table} WHERE doc = ?", [(doc,) for doc in docs])


WIDENED = "widened"
"""Property of a catalog: of each field that a value has turned into text, its type before and a document's number."""
Read = Callable[[str], Value]
"""Gives the value that a text means, or the text where it means none."""
GIVEN_TYPES = "types"
"""Property of a catalog: the types that the user has given to fields, by name, such as "date:%d/%m/%Y"."""


@dataclass(frozen=True, slots=True)
class Retyped:
    """A field that is to have another type.

    Attributes:
        name: Its name.
        before: Its type before.
        type: The type that it is to have.
        given: Whether the user gave it this type; otherwise, it had it until a value turned it into text.
        id: A document whose value does not fit this type; None if every value fits, so that the field has it now.
        value: That value.
    """

    name: str
    before: str
    type: str
    given: bool
    id: str | None = None
    value: Value = None


def typed_fields(catalog: Catalog) -> list[str]:
    """Return the names of the fields that are not text."""
    return [name for name, field in catalog.fields().items() if field.type != "text"]


def retype_fields(catalog: Catalog, read: Mapping[str, Read] = {}) -> list[Retyped]:
    """Give fields the types that they are to have where every value fits; return all that had another one.

    The caller holds the writer lock. `read` gives what turns the text of a field into values of the type that the user
    has given it, by name.
    """
    widened, fields = catalog.get(WIDENED, {}), catalog.fields()
    given = {name: kind.partition(":")[0] for name, kind in catalog.get(GIVEN_TYPES, {}).items()}
    wanted = {name: (kind, known) for name, (kind, known) in widened.items()}
    wanted |= {name: (kind, wanted.get(name, ("", 0))[1]) for name, kind in given.items()}
    after: dict[str, list[object]] = {}
    found: list[Retyped] = []
    for name, (kind, known) in wanted.items():
        before = fields[name].type if name in fields else kind
        if before == kind == "text" and name in widened:  # the rows of this run have done it
            before = widened[name][0]
        if before != kind:
            doc, value = _misfit(catalog, fields[name], kind, known, read.get(name))
            after |= {name: [kind, doc]} if doc else {}
            found.append(Retyped(name, before, kind, name in given, _id_of(catalog, doc) if doc else None, value))
    fitting = [each for each in found if each.id is None]
    if fitting or after != widened:
        with catalog.transaction(write=True):
            for each in fitting:
                if fields[each.name].type != each.type:
                    _retype_field(catalog, fields[each.name], each.type, read.get(each.name))
            catalog.set(WIDENED, after)
            catalog.advance()
    return found


def _id_of(catalog: Catalog, doc: int) -> str:
    keys = catalog.connection.execute("SELECT key FROM documents WHERE doc = ?", (doc,))
    return next((key for (key,) in keys), "")


def _misfit(catalog: Catalog, field: Field, kind: str, known: int, read: Read | None) -> tuple[int, Value]:
    """Return a document's number and its value, which does not fit a type; 0 if every value fits.

    The known number is tried first. A field without any value counts as one that does not fit (-1), since nothing tells
    that the type is the right one.
    """
    if kind == "text":
        return 0, None
    select, doc = f"SELECT doc, {field.column} FROM metadata WHERE {field.column} IS NOT NULL", -1
    for each in (f"{select} AND doc = {known:d}", select):
        for doc, value in catalog.connection.execute(each):
            try:
                _retyped(value, field.type, kind, read)
            except (TypeError, ValueError):
                return doc, value
    return (0 if doc >= 0 else -1), None


def _retyped(value: Any, before: str, kind: str, read: Read | None) -> Value:
    """Return the value of another type that a stored value means.

    Raises:
        TypeError: The stored value is not of the type before.
        ValueError: It means no value of the other type.
    """
    loaded = load_value(value, before)
    if read is None or not isinstance(loaded, str):
        return narrowed(stored_text(loaded), kind)
    found = read(loaded)
    if type_of(found) not in (None, kind):
        raise ValueError(f"{loaded!r} is no {kind}")
    return found


def _retype_field(catalog: Catalog, field: Field, kind: str, read: Read | None = None) -> Field:
    """Change the type of a field and of what is stored in it, in the caller's transaction; return the new field.

    `read` turns text into values of the new type; None takes only what `stored_text` has written.
    """
    column = field.column

    def converted(value: Any) -> Value:
        return _retyped(value, "text", kind, read) if field.type == "text" else load_value(value, field.type)

    if kind == "text":
        catalog.set(WIDENED, catalog.get(WIDENED, {}) | {field.name: [field.type, 0]})
    # SQLite's own cast of a real number to text keeps 15 digits.
    catalog.connection.create_function("retyped", 1, lambda value: store(converted(value), kind))
    catalog.connection.execute(f"UPDATE metadata SET {column} = retyped({column}) WHERE {column} IS NOT NULL")
    catalog.connection.execute("UPDATE fields SET type = ? WHERE name = ?", (kind, field.name))
    fields = [(each.name, each.column, each.type) for each in catalog.fields().values()]
    # `read` may have found a word for nothing, such as "n/a", whose document has no value now.
    fill_documents(catalog.connection, fields, "1" if read else f"{column} IS NOT NULL")
    return Field(field.name, column, kind)

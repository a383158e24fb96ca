"""Types that fields are given, by the user or by what they were before a value turned them into text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..document import Value
from .catalog import Catalog
from .checksums import fill_documents
from .fields import Field, load_value, narrowed, store, stored_text, type_of

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
                    retype_field(catalog, fields[each.name], each.type, read.get(each.name))
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


def retype_field(catalog: Catalog, field: Field, kind: str, read: Read | None = None) -> Field:
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

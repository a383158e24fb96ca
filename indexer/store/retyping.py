"""Fields that a value turns into text, and that get their type back once every value fits again."""

from dataclasses import dataclass

from ..document import Value
from .catalog import Catalog
from .checksums import fill_documents
from .fields import Field, load_value, narrowed, store

WIDENED = "widened"
"""Property of a catalog: of each field that a value has turned into text, its type before and a document's number."""


@dataclass(frozen=True, slots=True)
class Retyped:
    """A field that was turned into text.

    Attributes:
        name: Its name.
        type: Its type before.
        id: A document whose value does not fit this type; None if every value fits, so that the field has it again.
        value: That value.
    """

    name: str
    type: str
    id: str | None = None
    value: Value = None


def typed_fields(catalog: Catalog) -> list[str]:
    """Return the names of the fields that are not text."""
    return [name for name, field in catalog.fields().items() if field.type != "text"]


def narrow_fields(catalog: Catalog) -> list[Retyped]:
    """Give fields that a value has turned into text their type again if every value fits; return all such fields.

    The caller holds the writer lock.
    """
    before, fields = catalog.get(WIDENED, {}), catalog.fields()
    after: dict[str, list[object]] = {}
    found: list[Retyped] = []
    for name, (kind, known) in before.items():
        if name in fields and fields[name].type == "text":
            doc, value = _misfit(catalog, fields[name], kind, known)
            after |= {name: [kind, doc]} if doc else {}
            found.append(Retyped(name, kind, _id_of(catalog, doc) if doc else None, value))
    if after != before:
        with catalog.transaction(write=True):
            for each in found:
                if each.id is None:
                    retype_field(catalog, fields[each.name], each.type)
            catalog.set(WIDENED, after)
            catalog.advance()
    return found


def _id_of(catalog: Catalog, doc: int) -> str:
    keys = catalog.connection.execute("SELECT key FROM documents WHERE doc = ?", (doc,))
    return next((key for (key,) in keys), "")


def _misfit(catalog: Catalog, field: Field, kind: str, known: int) -> tuple[int, Value]:
    """Return a document's number and its value, which does not fit a type; 0 if every value fits.

    The known number is tried first. A field without any value counts as one that does not fit (-1), since nothing tells
    that the type is the right one.
    """
    select, doc = f"SELECT doc, {field.column} FROM metadata WHERE {field.column} IS NOT NULL", -1
    for each in (f"{select} AND doc = {known:d}", select):
        for doc, value in catalog.connection.execute(each):
            try:
                narrowed(value, kind)
            except (TypeError, ValueError):
                return doc, value
    return (0 if doc >= 0 else -1), None


def retype_field(catalog: Catalog, field: Field, kind: str) -> Field:
    """Change the type of a field and of what is stored in it, in the caller's transaction; return the new field."""
    column = field.column
    read, typed = (narrowed, kind) if field.type == "text" else (load_value, field.type)
    if kind == "text":
        catalog.set(WIDENED, catalog.get(WIDENED, {}) | {field.name: [field.type, 0]})
    # SQLite's own cast of a real number to text keeps 15 digits.
    catalog.connection.create_function("retyped", 1, lambda value: store(read(value, typed), kind))
    catalog.connection.execute(f"UPDATE metadata SET {column} = retyped({column}) WHERE {column} IS NOT NULL")
    catalog.connection.execute("UPDATE fields SET type = ? WHERE name = ?", (kind, field.name))
    fields = [(each.name, each.column, each.type) for each in catalog.fields().values()]
    fill_documents(catalog.connection, fields, f"{column} IS NOT NULL")
    return Field(field.name, column, kind)

"""Documents that a caller gives to be put, held to the rules of every source."""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..document import Document, Skipped
from ..errors import UsageError, as_text
from .nested import NestedError
from .python_objects import is_table, kind_fault, plain_metadata, python_source
from .reading import metadata_strings, string_fault
from .source import Meter, ReadOptions, Row
from .values import natural

_OWN = ("id", "text", "title", "metadata")


def given_documents(given: Any) -> list[Document]:
    """Return the documents that `put` is given: documents, mappings or the rows of a table, each with an id and a text.

    Raises:
        UsageError: It is neither, a row has no id or no text, or a value is given twice.
    """
    if isinstance(given, (str, bytes, Mapping)):
        raise UsageError(f"{reprlib.repr(given)} is not a list of documents: give [{{'id': …, 'text': …}}, …]")
    rows = _rows(given) if is_table(given) else given
    return [each if isinstance(each, Document) else _document(each) for each in rows]


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    for item in python_source(table).items(Meter()):
        if isinstance(item, Skipped):
            raise UsageError(f"{item.origin} cannot be stored: {item.reason}", field="documents")
        if isinstance(item, Row):
            yield {name: natural(value) for name, value in item.values.items()}


def _document(given: Mapping[Any, Any]) -> Document:
    if not isinstance(given, Mapping):
        raise UsageError(f"{reprlib.repr(given)} is not a valid document: give {{'id': …, 'text': …}}")
    if given.get("id") in (None, "") or given.get("text") is None:
        raise UsageError(f"the document {reprlib.repr(dict(given))} needs an id and a text")
    key = as_text(given["id"], "id")
    text, title = as_text(given["text"], "text"), as_text(given.get("title") or "", "title")
    beside = {name: value for name, value in given.items() if name not in _OWN}
    metadata = given.get("metadata", {})
    if beside and isinstance(metadata, Mapping):
        if twice := beside.keys() & metadata.keys():
            raise UsageError(f"the document {key!r} has {min(map(str, twice))!r} twice: leave it out of its metadata")
        metadata = {**metadata, **beside}
    return Document(text, title, key, metadata, origin=key)


def with_checked_fields(document: Document) -> Document:
    """Return a document with its metadata as every collection holds it; see `plain_metadata`.

    A source skips a row that cannot be stored. Here the caller is told, before anything is written.

    Raises:
        UsageError: A field has a value of the wrong type, or its id or metadata cannot be stored; the message names the
            document.
    """
    if fault := kind_fault(document):
        raise _refused(document, fault)
    try:
        metadata = plain_metadata(document.metadata)
    except NestedError as error:
        raise _refused(document, str(error)) from None
    strings = (("id", document.key or ""), *metadata_strings(metadata))
    if fault := string_fault(strings, ReadOptions.max_chars):
        raise _refused(document, fault)
    return replace(document, metadata=metadata)


def _refused(document: Document, fault: str) -> UsageError:
    named = "a document without an id" if document.key is None else f"the document {reprlib.repr(document.key)}"
    return UsageError(f"{named} cannot be stored: {fault}", field="documents")

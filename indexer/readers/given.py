"""Documents that a caller gives to be put, held to the rules of every source."""

import reprlib
from dataclasses import replace

from ..document import Document
from ..errors import UsageError
from .nested import NestedError
from .python_objects import kind_fault, plain_metadata
from .reading import metadata_strings, string_fault
from .source import ReadOptions


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

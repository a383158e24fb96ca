"""Documents that a caller gives to be put, held to the rules of every source."""

import reprlib
from collections.abc import Mapping
from dataclasses import replace

from ..document import Document
from ..errors import UsageError
from .nested import NestedError
from .python_objects import plain_metadata
from .reading import metadata_strings, string_fault
from .source import ReadOptions


def with_checked_metadata(document: Document) -> Document:
    """Return a document with its metadata as every collection holds it; see `plain_metadata`.

    A source skips a row that cannot be stored. Here the caller is told, before anything is written.

    Raises:
        UsageError: Its metadata is no mapping, or its id or metadata cannot be stored; the message names the document.
    """
    if not isinstance(document.metadata, Mapping):
        raise _refused(document, f"the metadata is {reprlib.repr(document.metadata)}, not a mapping")
    try:
        metadata = plain_metadata(document.metadata)
    except NestedError as error:
        raise _refused(document, str(error)) from None
    strings = (("id", document.key or ""), *metadata_strings(metadata))
    if fault := string_fault(strings, ReadOptions.max_chars):
        raise _refused(document, fault)
    return replace(document, metadata=metadata)


def _refused(document: Document, fault: str) -> UsageError:
    return UsageError(f"the document {reprlib.repr(document.key)} cannot be stored: {fault}", field="documents")

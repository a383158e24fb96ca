"""Documents that a caller gives to be put, held to the rules of every source."""

import reprlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from ..document import Document, Skipped
from ..errors import UsageError, as_text
from .python_objects import is_table, kind_fault, plain_metadata, python_source
from .reading import metadata_strings, string_fault, with_composed_names
from .source import Meter, ReadOptions, Row
from .values import NestedError, natural

_OWN = ("id", "text", "title", "metadata")
_ALIKE = 0.8
"""Similarity (0 to 1) of a name to one of these from which it counts as mistyped: that of `titel` and `title`."""


def given_documents(
    given: Any, fields: Callable[[], Container[str]], id_column: Callable[[], str | None] = lambda: None
) -> list[Document]:
    """Return the documents that `put` is given: documents, mappings or the rows of a table, each with an id and a text.

    Args:
        given: What the caller gives.
        fields: Returns the names of the collection's metadata fields; called only for a name that may be mistyped.
        id_column: Returns the column that the collection's ids come from, which may name the id here too; called only
            for documents with other names than `id`, `text`, `title` and `metadata`.

    Raises:
        UsageError: It is neither, a row has no id or no text, a value is given twice, or a mapping seems to have a
            mistyped name.
    """
    if isinstance(given, (str, bytes, Mapping)) or not (is_table(given) or isinstance(given, Iterable)):
        raise UsageError(f"{reprlib.repr(given)} is not a list of documents: give [{{'id': …, 'text': …}}, …]")
    fields, id_column = cache(fields), cache(id_column)  # a service is asked once
    rows = (_with_id(each, id_column) for each in (_rows(given) if is_table(given) else given))
    if not is_table(given):
        rows = (_spelled(each, fields) for each in rows)
    return [each if isinstance(each, Document) else _document(each) for each in rows]


def _rows(table: Any, field: str = "documents") -> Iterator[dict[str, Any]]:
    for item in python_source(table).items(Meter()):
        if isinstance(item, Skipped):
            raise UsageError(f"{item.origin} cannot be stored: {item.reason}", field=field)
        if isinstance(item, Row):
            yield {name: natural(value) for name, value in item.values.items()}


def _with_id(given: Any, id_column: Callable[[], str | None]) -> Any:
    """Return what was given; the id under its own name, if it is under that of the source's column, or under both."""
    if not isinstance(given, Mapping) or set(given) <= {*_OWN} or (name := id_column()) not in given or name in _OWN:
        return given
    rest = {key: value for key, value in given.items() if key != name}
    if given.get("id") in (None, ""):
        return rest | {"id": given[name]}
    return rest if str(given[name]) == str(given["id"]) else given


def given_table(given: Any, field: str) -> tuple[list[str], list[tuple[str, list[Any]]]] | None:
    """Return the columns and the rows of a table or of a list of mappings, as `read_rows` does for a file.

    Args:
        given: What the caller gives.
        field: The name of the argument.

    Returns:
        The names of the columns, and the origin and the cells of every row; None if it is neither.

    Raises:
        UsageError: A row cannot be read.
    """
    several = isinstance(given, (list, tuple)) and given and all(isinstance(each, Mapping) for each in given)
    if not several and not is_table(given):
        return None
    rows = list(_rows(given, field))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [(f"row {number}", [row.get(name) for name in names]) for number, row in enumerate(rows, 1)]


def by_index(given: Any) -> Any:
    """Return a pandas Series as a mapping of its index, without missing values; anything else as it is.

    Raises:
        UsageError: The index of the Series has a value twice, of which a mapping would lose one.
    """
    pandas = any(
        (kind.__module__.partition(".")[0], kind.__name__) == ("pandas", "Series") for kind in type(given).__mro__
    )
    if not pandas:
        return given
    if not given.index.is_unique:
        twice = as_text(given.index[given.index.duplicated()][0], "id")
        raise UsageError(f"the index of the Series has {twice!r} more than once: give each id one value")
    return {key: value for key, value in given.items() if natural(value) is not None}


def _document(given: Mapping[Any, Any]) -> Document:
    if not isinstance(given, Mapping):
        raise UsageError(f"{reprlib.repr(given)} is not a valid document: give {{'id': …, 'text': …}}")
    if given.get("id") in (None, "") or given.get("text") is None:
        names = (str(name) for name in given if name not in _OWN)
        meant = next((f" (did you mean {own!r}, not {name!r}?)" for name in names if (own := _near(name, given))), "")
        raise UsageError(f"the document {reprlib.repr(dict(given))} needs an id and a text{meant}")
    key = as_text(given["id"], "id")
    text, title = as_text(given["text"], "text"), as_text(given.get("title") or "", "title")
    beside = {name: value for name, value in given.items() if name not in _OWN}
    metadata = given.get("metadata", {})
    if beside and isinstance(metadata, Mapping):
        if twice := beside.keys() & metadata.keys():
            raise UsageError(f"the document {key!r} has {min(map(str, twice))!r} twice: leave it out of its metadata")
        metadata = {**metadata, **beside}
    return Document(text, title, key, metadata, origin=key)


def _spelled(given: Any, fields: Callable[[], Container[str]]) -> Any:
    """Return what was given, unless a mapping has a name much like one that it lacks, such as `titel`.

    It would become a metadata field without a word. In `metadata`, a field may have any name; a table has no such
    place, so its columns are taken as they are.

    Raises:
        UsageError: It has, and the collection has no field of that name.
    """
    if not isinstance(given, Mapping) or not {"id", "text"} <= given.keys():
        return given
    for name in given:
        meant = _near(name, given) if isinstance(name, str) and name not in _OWN else None
        if meant is not None and name not in fields():
            said = f"the document {reprlib.repr(given['id'])} has {name!r} and no {meant!r}: did you mean {meant!r}? "
            said += "To store a field of this name, put it into 'metadata'"
            raise UsageError(said, code="unknown-field", field="documents", value=name, alternatives=(meant,))
    return given


def _near(name: str, given: Mapping[Any, Any]) -> str | None:
    """Return the name of a document's part that is missing and spelled much like this one."""
    return next(iter(get_close_matches(name.lower(), [own for own in _OWN if own not in given], 1, _ALIKE)), None)


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
    return with_composed_names(replace(document, metadata=metadata))


def _refused(document: Document, fault: str) -> UsageError:
    named = "a document without an id" if document.key is None else f"the document {reprlib.repr(document.key)}"
    return UsageError(f"{named} cannot be stored: {fault}", field="documents")

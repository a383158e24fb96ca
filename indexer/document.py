"""A document on its way in: what a reader yields and what the build takes."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

Scalar = str | int | float | bool | date | datetime
Value = Scalar | list[Scalar] | None
"""One metadata value; the Python type decides the type of the field in the catalog."""
TYPES = ("text", "integer", "real", "boolean", "date", "list")
"""The types of metadata fields."""
PAGE_BREAK = "\f"
"""The sign between two pages of a text, as other programs that read PDF files write it."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text with its title, key and typed metadata.

    `key` is the user's id, or None where the source has none; the build then takes a hash of the text.
    `origin` says where it came from ("row 12", "notes/a.md"), for messages.
    """

    text: str
    title: str = ""
    key: str | None = None
    metadata: Mapping[str, Value] = field(default_factory=dict)
    language: str | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row or file that became no document, and why.

    `key` is that of the document which it would be, if it is there but cannot be read: `sync` does not delete that one.
    """

    origin: str
    reason: str
    key: str | None = field(default=None, compare=False)


def composed(text: str) -> str:
    """Return a text with composed characters (Unicode NFC): macOS gives names of files in which é is two characters."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def spellings(text: str) -> tuple[str, ...]:
    """Return a text as it is, composed and decomposed (Unicode NFC and NFD), each form once; most texts have one."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((text, composed(text), unicodedata.normalize("NFD", text))))


def composed_value(value: Value) -> Value:
    """Return a metadata value with its texts composed."""
    if isinstance(value, list):
        return [composed(item) if isinstance(item, str) else item for item in value]
    return composed(value) if isinstance(value, str) else value


_INVISIBLE = ("Cf", "Zs", "Zl", "Zp")


def is_blank(text: str) -> bool:
    """Whether a text has nothing to read: it is empty, or white space and characters without width are all of it."""
    return not text.strip() or all(unicodedata.category(each) in _INVISIBLE for each in text)

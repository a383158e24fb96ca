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
    """A row or file that became no document, and why."""

    origin: str
    reason: str


_INVISIBLE = ("Cf", "Zs", "Zl", "Zp")


def is_blank(text: str) -> bool:
    """Whether a text has nothing to read: it is empty, or white space and characters without width are all of it."""
    return not text.strip() or all(unicodedata.category(each) in _INVISIBLE for each in text)

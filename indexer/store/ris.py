"""Documents as references in RIS, which Zotero, EndNote and other reference managers read."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from .fields import stored_text

_TAGS = {
    "id": "AN", "title": "TI", "text": "AB", "authors": "AU", "year": "PY", "journal": "T2", "volume": "VL",
    "issue": "IS", "doi": "DO", "keywords": "KW", "url": "UR", "database": "DB", "language": "LA", "issn": "SN",
}  # fmt: skip
"""The tag of each column that files of references are read into; see `indexer/readers/references.py`."""
_KIND = re.compile(r"[A-Z]{3,7}")
_PAGES = re.compile(r"\s*(\S+?)\s*[-–]+\s*(\S+)\s*")


def write_ris(documents: Iterable[Mapping[str, Any]], stream: IO[bytes], names: Sequence[str]) -> None:
    """Write a reference for each document.

    What runs say of it, such as its label and its tags, become keywords, and all other columns notes.

    Args:
        documents: Values by the name of the column.
        stream: The file.
        names: The columns, in order.
    """
    for row in documents:
        lines = [("TY", _kind(row)), *(line for name in names for line in _lines(name, row, names)), ("ER", "")]
        stream.write("".join(f"{tag}  - {_on_one_line(value)}\n" for tag, value in lines).encode() + b"\n")


def _kind(row: Mapping[str, Any]) -> str:
    kinds = row.get("kind") or []
    named = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if _KIND.fullmatch(str(kind))]
    return named[0] if named else "JOUR" if row.get("journal") else "GEN"


def _lines(name: str, row: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the tag and the value of each line for a column."""
    value = row.get(name)
    values = [stored_text(each) for each in (value if isinstance(value, list) else [value]) if each not in (None, "")]
    if tag := _TAGS.get(name):
        return [(tag, each) for each in values]
    if name == "pages":
        both = _PAGES.fullmatch(values[0]) if values else None
        return [("SP", both[1]), ("EP", both[2])] if both else [("SP", each) for each in values]
    if name == "notes" or (name == "kind" and _kind(row) in values):
        return [("N1", each) for each in values if name == "notes"]
    if ":" not in name:
        return [("N1", f"{name}: {each}") for each in values]
    if f"{name} name" in names or value is False or isinstance(value, float):
        return []  # the number of a group and a probability say nothing elsewhere
    said = name.removesuffix(" name").partition(":")[2]
    return [("KW", said if value is True else f"{said}: {each}") for each in values]


def _on_one_line(value: str) -> str:
    return " ".join(value.split())

"""The metadata shown beside hits: by default, the fields that tell the hits apart."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime

from ...indexer.document import Value
from .results import Hit

FILE_DETAILS = frozenset({"bytes", "modified"})
"""Fields of files that differ between all of them and tell a reader nothing."""
LENGTH = 80


def telling_fields(hits: Sequence[Hit]) -> list[str]:
    """Return the metadata fields in which the hits differ, in the collection's order; for a single hit, all it has.

    Fields that repeat the id are left out, and so are the size and time of files, and lists of objects.
    """
    names = dict.fromkeys(name for hit in hits for name in hit.metadata)
    return [name for name in names if name not in FILE_DETAILS and _tells(hits, name)]


def _tells(hits: Sequence[Hit], name: str) -> bool:
    values = [hit.metadata.get(name) for hit in hits]
    if any(_nested(value) for value in values):
        return False
    if all(value == hit.id for hit, value in zip(hits, values, strict=True)):
        return False
    return len(hits) == 1 or len({repr(value) for value in values}) > 1


def _nested(value: Value) -> bool:
    """Whether a value is a list of objects, which is stored as JSON and says little in a line."""
    return isinstance(value, list) and any(isinstance(item, str) and item.startswith("{") for item in value)


def shown_metadata(metadata: Mapping[str, Value], names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the given fields with short values, without empty ones: times to the minute, numbers to six digits."""
    values = ((name, metadata.get(name)) for name in names)
    return [(name, _short(value)) for name, value in values if value not in (None, "", [])]


def _short(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as filters spell them
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")
    if isinstance(value, date):
        return value.isoformat()
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= LENGTH else text[:LENGTH] + " …"

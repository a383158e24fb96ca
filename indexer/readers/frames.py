"""What crosses the pipe from a reader process: JSON, with a tag on values that JSON does not have.

The tag is a random word that the parent chooses for each process, so that no value of a file can look like one.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from ..document import Document, Skipped
from ..errors import SondeError, UsageError
from .columns import Columns
from .source import Item, ReadOptions, Row, Source
from .values import natural

_ROW, _DOCUMENT, _SKIPPED = range(3)
_HEAD = (
    "format", "total", "items_total", "unit", "once", "textual", "note", "encoding", "nothing", "heading", "begins",
)  # fmt: skip


class Encoder:
    """Writes items as JSON, in the child."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._json = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=self._tagged)

    def item(self, done: int, item: Item) -> str:
        """An item with how far the source had come when it was read."""
        if isinstance(item, Row):
            return self._json.encode([_ROW, done, item.origin, item.values])
        if isinstance(item, Skipped):
            return self._json.encode([_SKIPPED, done, item.origin, item.reason, item.key])
        fields = (item.text, item.title, item.key, item.metadata, item.language, item.origin)
        return self._json.encode([_DOCUMENT, done, *fields])

    def _tagged(self, value: Any) -> Any:
        kind = type(value)
        if kind not in _KINDS:
            return natural(value)
        return {self._tag: [kind.__name__, _KINDS[kind](value)]}


class Decoder:
    """Reads what an `Encoder` with the same tag wrote, in the parent."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._bytes = tag.encode()

    def frame(self, data: bytes) -> dict[str, Any]:
        """A frame as it was written."""
        return json.loads(data, object_hook=self._value if self._bytes in data else None)

    def _value(self, found: dict[str, Any]) -> Any:
        if self._tag not in found:
            return found
        kind, value = found[self._tag]
        return _PARSED[kind](value)


def item_of(fields: list[Any]) -> tuple[int, Item]:
    """How far the source had come, and the item."""
    kind, done, *rest = fields
    if kind == _ROW:
        return done, Row(*rest)
    return done, Skipped(*rest) if kind == _SKIPPED else Document(*rest)


def head_of(source: Source) -> dict[str, Any]:
    """What is known of a source before its items are read."""
    return {name: getattr(source, name) for name in _HEAD} | {"columns": source.columns and asdict(source.columns)}


def set_head(source: Source, head: Mapping[str, Any]) -> None:
    """Give a source what `head_of` found in another process."""
    for name in _HEAD:
        setattr(source, name, head[name])
    source.heading = None if head["heading"] is None else tuple(head["heading"])
    columns = head["columns"]
    source.columns = Columns(**columns | {"text": tuple(columns["text"])}) if columns else None


def error_fields(error: SondeError) -> dict[str, Any]:
    """An error with all its fields; only messages keep the marks on names of arguments."""
    fields = {"code": error.code, "field": error.field, "value": error.value, "alternatives": list(error.alternatives)}
    return fields | {"usage": isinstance(error, UsageError), "message": error.message.marked}


def error_of(fields: Mapping[str, Any]) -> SondeError:
    """The error that `error_fields` described."""
    known = {name: fields[name] for name in ("code", "field", "value", "alternatives")}
    return (UsageError if fields["usage"] else SondeError)(fields["message"], **known)


def option_fields(options: ReadOptions) -> dict[str, Any]:
    """Options for JSON."""
    return asdict(options)


def options_of(fields: Mapping[str, Any]) -> ReadOptions:
    """Options from JSON."""
    text = fields["text"]
    values: dict[str, Any] = dict(fields)
    values |= {name: tuple(fields[name]) for name in ("leave_out", "leave_out_hint")}
    values["text"] = tuple(text) if isinstance(text, list) else text
    return ReadOptions(**values)


def _datetime_fields(value: datetime) -> list[Any]:
    zone = value.tzinfo
    return [value.replace(tzinfo=None).isoformat(), value.fold, zone and _zone_fields(zone, value)]


def _zone_fields(zone: tzinfo, at: datetime) -> list[Any]:
    for kind, name in (("key", getattr(zone, "key", None)), ("pytz", getattr(zone, "zone", None))):
        if isinstance(name, str):
            return [kind, name]
    return ["offset", (at.utcoffset() or timedelta()).total_seconds()]


def _datetime(fields: list[Any]) -> datetime:
    text, fold, zone = fields
    value = datetime.fromisoformat(text).replace(fold=fold)
    if zone is None:
        return value
    kind, name = zone
    if kind != "pytz":
        return value.replace(tzinfo=ZoneInfo(name) if kind == "key" else _offset(name))
    import pytz  # pyright: ignore[reportMissingModuleSource]  # Arrow has used it

    return pytz.timezone(name).localize(value, is_dst=not fold)


def _offset(seconds: float) -> tzinfo:
    return timezone(timedelta(seconds=seconds)) if seconds else UTC


_KINDS: dict[type, Callable[[Any], Any]] = {
    datetime: _datetime_fields,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    Decimal: str,
    bytes: lambda value: base64.b64encode(value).decode(),
}
_PARSED: dict[str, Callable[[Any], Any]] = {
    "datetime": _datetime,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda fields: timedelta(*fields),
    "Decimal": Decimal,
    "bytes": base64.b64decode,
}

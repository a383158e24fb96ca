"""Values of cells: from any library's objects to plain types, and how deeply they may be nested."""

import itertools
import json
import math
from collections.abc import Container, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from ..document import Scalar, Value, composed
from ..errors import UsageError

INT64 = range(-(2**63), 2**63)

DEEPEST = 32
"""Levels of lists and objects in one row. Data has up to about ten; a few bytes can hold thousands."""
MOST_VALUES = 1_000_000
"""Values in all the lists and objects inside one value."""
LONGEST_NAME = 1_000
"""Characters of a column's name, with the names of the objects around it."""
UNNAMED = "unnamed"
"""Stands for an empty name, which no header or form could show."""
LISTS = (list, tuple, set, frozenset)


def natural(value: Any) -> Value:
    """The value as str, int, float, bool, date, datetime, list of those, or None.

    Not a number, infinite, empty and undecodable values become None; an integer beyond 64 bits becomes a str. A list
    inside a list becomes its JSON.

    Raises:
        NestedError: The value has too many levels.
    """
    if isinstance(value, str):
        return str(value) if value else None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value in INT64 else _digits(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, LISTS):
        return [item for item in map(_scalar, value) if item is not None]
    return _foreign(value)


def cell_text(value: Value) -> str:
    """A value as a reader would write it; "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    return value.isoformat() if isinstance(value, date) else str(value)


def id_text(value: Any) -> str:
    """Return any value as the text of an id, "" for a missing one: a spreadsheet's 12.0 is 12."""
    value = natural(value)
    return cell_text(int(value) if isinstance(value, float) and value.is_integer() else value)


def _foreign(value: Any) -> Value:
    if isinstance(value, (date, datetime)):
        return _python_date(value)
    if isinstance(value, Decimal):
        return (
            natural(int(value) if value == value.to_integral_value() else float(value)) if value.is_finite() else None
        )
    if isinstance(value, bytes):
        return _decoded(value)
    if isinstance(value, timedelta):
        return natural(value.total_seconds())
    if isinstance(value, Mapping):
        return object_text(value) if value else None
    if isinstance(value, (time, Enum)):
        return value.isoformat() if isinstance(value, time) else natural(value.value)
    return _by_library(value)


def _by_library(value: Any) -> Value:
    """NumPy scalars and arrays, and what else unpacks itself; pandas' NA and NaT are missing."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    unpack = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    unpacked = unpack() if unpack is not None else None
    return natural(unpacked) if unpacked is not None and type(unpacked) is not type(value) else natural(str(value))


def _python_date(value: date) -> date | None:
    if type(value).__name__ == "NaTType":  # a subclass of datetime in some versions of pandas
        return None
    convert = getattr(value, "to_pydatetime", None)
    return convert(warn=False) if convert is not None else value


def _scalar(item: Any) -> Scalar | None:
    if isinstance(item, LISTS):
        return json.dumps(_lists(item, 2), ensure_ascii=False, default=cell_text)
    value = natural(item)
    return cell_text(value) if isinstance(value, list) else value


def _lists(items: Iterable[Any], level: int) -> list[Any]:
    """The natural values of lists in lists, which are written as JSON once, at the outermost."""
    if level > DEEPEST:
        raise too_deep()
    inner = [_lists(item, level + 1) if isinstance(item, LISTS) else natural(item) for item in items]
    return [item for item in inner if item is not None]


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        return None


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return hex(value)


class NestedError(UsageError):
    """A value that is nested too deeply or holds too much; the message is the reason for which its row is skipped."""

    code = "nested"


def too_deep() -> NestedError:
    """Return the error for a value with too many levels."""
    return NestedError(f"its values are nested more than {DEEPEST} levels deep")


def flattened(values: Mapping[Any, Any]) -> dict[str, Any]:
    """The values with nested objects opened up: `{"a": {"b": 1}}` becomes `{"a.b": 1}`; a repeated name is numbered.

    Raises:
        NestedError: The values have too many levels, a list is too large, or a name too long.
    """
    flat: dict[str, Any] = {}
    _flatten(values, "", 1, flat)
    return flat


def _flatten(values: Mapping[Any, Any], prefix: str, level: int, flat: dict[str, Any]) -> None:
    if level > DEEPEST:
        raise too_deep()
    for key, value in values.items():
        name = composed(f"{prefix}{key if key != '' else UNNAMED}")
        if len(name) > LONGEST_NAME:
            raise NestedError(f"a column name has {len(name):,} characters, more than {LONGEST_NAME:,}")
        if isinstance(value, Mapping) and value:
            _flatten(value, f"{name}.", level + 1, flat)
        else:
            if isinstance(value, LISTS):
                weight(value, level)
            flat[_unused(name, flat)] = value


def _unused(name: str, taken: Container[str]) -> str:
    if name not in taken:
        return name
    return next(new for number in itertools.count(2) if (new := f"{name}_{number}") not in taken)


def weight(value: Iterable[Any], level: int = 0) -> int:
    """How many values and characters a list holds with all that is in it, counted level by level.

    Raises:
        NestedError: It has too many levels below `level`, or holds too many values.
    """
    count = characters = 0
    inside: list[Any] = [value]
    while inside:
        level += 1
        if level > DEEPEST:
            raise too_deep()
        deeper: list[Any] = []
        for one in inside:
            count += len(one)
            if count > MOST_VALUES:
                raise NestedError(f"a list in it holds more than {MOST_VALUES:,} values")
            for item in one.values() if isinstance(one, Mapping) else one:
                if isinstance(item, str):
                    characters += len(item)
                elif isinstance(item, (*LISTS, Mapping)):
                    deeper.append(item)
        inside = deeper
    return count + characters


def object_text(value: Mapping[Any, Any]) -> str:
    """An object as JSON.

    Raises:
        NestedError: It has too many levels, or holds too many values.
    """
    weight(value)
    return json.dumps(value, ensure_ascii=False, default=str)

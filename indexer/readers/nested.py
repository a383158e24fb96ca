"""Lists and objects inside a value: how deep and how large they may be, and the text that they become."""

import itertools
import json
from collections.abc import Container, Iterable, Mapping
from typing import Any

from ..errors import UsageError

DEEPEST = 32
"""Levels of lists and objects in one row. Data has up to about ten; a few bytes can hold thousands."""
MOST_VALUES = 1_000_000
"""Values in all the lists and objects inside one value."""
LONGEST_NAME = 1_000
"""Characters of a column's name, with the names of the objects around it."""
UNNAMED = "unnamed"
"""Stands for an empty name, which no header or form could show."""
LISTS = (list, tuple, set, frozenset)


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
        name = f"{prefix}{key if key != '' else UNNAMED}"
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

"""Types that the user gives to columns: cells that do not fit become missing values, and are counted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..document import TYPES, Value
from ..errors import UsageError, arg, did_you_mean
from ..wording import counted, on_one_line
from .cell_parsers import (
    DATE_FORMATS,
    NOTHING,
    Parse,
    boolean,
    dated_by,
    grouped,
    iso_date,
    json_list,
    real,
    with_comma,
)
from .column_types import NAMED, ColumnType, kind_of
from .months import month_parsers
from .values import INT64, cell_text, natural

_FORMAT = "date:"
_TRIED = 200
"""Different values on which the way of writing is decided."""
_DIRECTIVE = re.compile(r"%[aAbBdHIjmMpSyYzZ%]")


@dataclass(frozen=True)
class Coerced(ColumnType):
    """A type that was given to a column; `value` gives a str for a cell that does not fit any other type.

    `given` is how it is given, with the format of its dates.
    """

    given: str = ""

    def value(self, raw: object) -> Value:
        """The cell's value; strings are parsed, also where a JSON file holds them."""
        value = natural(raw)
        if value is None or kind_of(value) == self.kind:
            return value
        text = cell_text(value)
        return text if self.parse is None else self._parsed(text)

    def fits(self, value: Value) -> bool:
        """Whether a value that `value` returned is of this type, or missing."""
        return value is None or kind_of(value) == self.kind


@dataclass(slots=True)
class Misfits:
    """Cells of one column that do not fit its type: the first, where it is, and how many there are."""

    kind: str
    first: str
    origin: str
    count: int = 0

    def describe(self, column: str) -> str:
        """Say it in a sentence."""
        do, were, which = ("does", "was", ":") if self.count == 1 else ("do", "were", "; the first is")
        said = f"{counted(self.count, 'value')} of {on_one_line(column)!r} {do} not fit the type {self.kind}"
        return f"{said} and {were} left out{which} {on_one_line(self.first)!r} ({self.origin})"


def check_types(types: Any) -> None:
    """Check the types that were given to columns, by name.

    Raises:
        UsageError: A type is not one of `TYPES` nor "date:" with a format of strptime.
    """
    if not isinstance(types, Mapping) or not all(isinstance(name, str) for name in types):
        said = f"{arg('type')} must be a dict of columns with their types, such as {{'stars': 'integer'}}"
        raise UsageError(said, code="wrong-type", field="type", value=types)
    for name, kind in types.items():
        if not _is_type(kind):
            near = did_you_mean(str(kind), TYPES)
            said = (
                f"the type of {on_one_line(name)!r} is {on_one_line(str(kind))!r}{near}; it must be one of "
                f"{', '.join(TYPES)}, or a date with its format, such as date:%d/%m/%Y"
            )
            raise UsageError(said, code="unknown-option", field="type", value=kind, alternatives=TYPES)


def known_types(types: Mapping[str, str]) -> dict[str, str]:
    """Return the types that this version knows: a collection may come from a newer one, or from a stranger."""
    return {name: kind for name, kind in types.items() if _is_type(kind)}


def _is_type(kind: object) -> bool:
    if not isinstance(kind, str):
        return False
    return kind in TYPES or (kind.startswith(_FORMAT) and _is_format(kind.removeprefix(_FORMAT)))


def coerced(column: str, kind: str, values: Sequence[Value]) -> Coerced:
    """Return how the cells of a column become values of a type.

    Numbers and dates are written in many ways: the one that reads most of the sample is used.

    Args:
        column: Its name, for messages.
        kind: See `check_types`.
        values: A sample of its `natural` values.

    Raises:
        UsageError: No value of the sample fits, or two ways of reading dates or numbers differ and fit equally well.
    """
    if kind.startswith(_FORMAT):
        return _dates(kind.removeprefix(_FORMAT))
    if kind == "text":
        return Coerced(kind, None, kind)
    texts = [text for value in values if (text := cell_text(value).strip()).lower() not in NOTHING]
    parses = _PARSERS[kind]
    place = _best(column, kind, parses, list(dict.fromkeys(texts))[:_TRIED])
    return Coerced(kind, parses[place], kind) if kind != "date" or place == 0 else _dates(_DATES[place - 1][0])


def _dates(pattern: str) -> Coerced:
    """Return the type of dates of a format; ISO dates, such as those of an export, are read too."""
    parse = dict(_DATES).get(pattern) or dated_by(pattern)
    either: Parse = lambda text: iso_date(text) if _read(iso_date, text) is not None else parse(text)  # noqa: E731
    return Coerced("date", either, _FORMAT + pattern)


def check_fit(column: str, kind: Coerced, values: Sequence[Value]) -> None:
    """Check that a column that was just given a type is not of another one altogether.

    Raises:
        UsageError: No value of the sample fits.
    """
    present = [value for value in values if cell_text(value).strip().lower() not in NOTHING]
    if present and not any(kind_of(kind.value(value)) == kind.kind for value in present):
        first = on_one_line(cell_text(present[0]))
        form = f" of the form {kind.given.removeprefix(_FORMAT)}" if kind.given.startswith(_FORMAT) else ""
        what = (
            f"no value of the column {on_one_line(column)!r} is {NAMED[kind.kind]}{form} (the first one is {first!r})"
        )
        raise UsageError(f"{what}: give it another {arg('type')}", code="wrong-type", field="type", value=kind.kind)


def _is_format(pattern: str) -> bool:
    """Whether strptime reads with this pattern what it has written, in a year at least."""
    if not re.search("%[Yy]", pattern) or not all(map(_DIRECTIVE.match, re.findall("%.?", pattern))):
        return False
    try:
        datetime.strptime(datetime(2024, 5, 17).strftime(pattern), pattern)
    except (ValueError, re.error):
        return False
    return True


def _best(column: str, kind: str, parses: Sequence[Parse], texts: Sequence[str]) -> int:
    """Return the place of what reads most of the texts; the first, ISO dates and plain decimals, leaves no doubt.

    Raises:
        UsageError: Another one reads equally many, and something else.
    """
    read = [{text: value for text in texts if (value := _read(parse, text)) is not None} for parse in parses]
    most = max(map(len, read))
    first = next(place for place, found in enumerate(read) if len(found) == most)
    for other in read[first + 1 :] if first else ():
        differing = [text for text in texts if len(other) == most and other.get(text) != read[first].get(text)]
        if differing:
            raise _ambiguous(column, kind, differing[0])
    return first


def _read(parse: Parse, text: str) -> Value:
    try:
        return parse(text)
    except ValueError:
        return None


def _ambiguous(column: str, kind: str, text: str) -> UsageError:
    what = f"{on_one_line(text)!r} in the column {on_one_line(column)!r} can be read in two ways"
    advice = "give the format too, such as date:%d/%m/%Y or date:%m/%d/%Y" if kind == "date" else "write it as 1234.5"
    return UsageError(f"{what}: {advice}", code="ambiguous", field="type", value=kind)


_WHOLE = re.compile(r"([+-]?\d{1,19})(\.0*)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+", re.ASCII)


def _whole(text: str) -> int:
    """An integer, also as 4.0, 1,234 or with zeros before it: the user says that it is no code."""
    found = _WHOLE.fullmatch(text.replace(",", "") if _THOUSANDS.fullmatch(text) else text)
    if not found or int(found[1]) not in INT64:
        raise ValueError(text)
    return int(found[1])


_FLAGS = {"0": False, "1": True, "n": False, "y": True, "f": False, "t": True}


def _flag(text: str) -> bool:
    return _FLAGS[text.lower()] if text.lower() in _FLAGS else boolean(text)


_DATES = (*((pattern, dated_by(pattern)) for pattern in DATE_FORMATS), *month_parsers())
_PARSERS: dict[str, tuple[Parse, ...]] = {
    "integer": (_whole,),
    "real": (real, grouped, with_comma),
    "boolean": (_flag,),
    "date": (iso_date, *(parse for _, parse in _DATES)),
    "list": (json_list,),
}

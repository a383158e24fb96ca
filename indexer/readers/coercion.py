"""Types that the user gives to columns: cells that do not fit become missing values, and are counted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..document import TYPES, Value, composed
from ..errors import UsageError, arg, did_you_mean
from ..wording import counted, on_one_line
from .cell_parsers import (
    NO,
    NOTHING,
    YES,
    Form,
    Parse,
    boolean,
    date_forms,
    dated_by,
    iso_date,
    json_list,
    month_forms,
    number_forms,
    real,
    usual_sign,
    without_sign,
)
from .column_types import NAMED, ColumnType, kind_of
from .values import INT64, cell_text, natural

_FORMAT = "date:"
_TRIED, _FIRST = 200, 20
"""Different values on which the way of writing is decided, and the first of these, of which it must read one."""
_DIRECTIVE = re.compile(r"%[aAbBdHIjmMpSyYzZ%]")


@dataclass(frozen=True)
class Coerced(ColumnType):
    """A type that was given to a column; `value` gives a str for a cell that does not fit any other type.

    `form` is how it can be given again, with its decimal separator or the format of its dates.
    """

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
    """Cells of one column that do not fit its type: the first, where it is, and how many of all there are."""

    form: str
    first: str
    origin: str
    count: int = 0
    total: int = 0

    def describe(self, column: str) -> str:
        """Say it in a sentence."""
        do, were, which = ("does", "was", ":") if self.count == 1 else ("do", "were", "; the first is")
        said = f"{self.count:,} of {counted(self.total, 'value')} of {on_one_line(column)!r} {do} not fit"
        check = ". Check the type" if self.count > self.total / 2 else ""
        said = f"{said} the type {self.form} and {were} left out{which} {on_one_line(self.first)!r} ({self.origin})"
        return said + check


def check_types(types: Any) -> None:
    """Check the types that were given to columns, by name.

    Raises:
        UsageError: A type is not one of `TYPES`, "real:" with the decimal separator, or "date:" with a format of
            strptime.
    """
    if not isinstance(types, Mapping) or not all(isinstance(name, str) for name in types):
        said = f"{arg('type')} must be a dict of columns with their types, such as {{'stars': 'integer'}}"
        raise UsageError(said, code="wrong-type", field="type", value=types)
    for name, kind in types.items():
        if not _is_type(kind):
            near = did_you_mean(str(kind), TYPES)
            said = (
                f"the type of {on_one_line(name)!r} is {on_one_line(str(kind))!r}{near}; it must be one of "
                f"{', '.join(TYPES)}; or real:, (for 1.234,50), or date: with a format, such as date:%d/%m/%Y"
            )
            raise UsageError(said, code="unknown-option", field="type", value=kind, alternatives=TYPES)


def known_types(types: Mapping[str, str]) -> dict[str, str]:
    """Return the types that this version knows: a collection may come from a newer one, or from a stranger."""
    return {name: kind for name, kind in types.items() if _is_type(kind)}


def _is_type(kind: object) -> bool:
    if not isinstance(kind, str):
        return False
    return kind in (*TYPES, "real:,", "real:.") or (kind.startswith(_FORMAT) and _is_format(kind.removeprefix(_FORMAT)))


def coerced(column: str, kind: str, values: Sequence[Value], signs: bool = True) -> Coerced:
    """Return how the cells of a column become values of a type.

    Numbers and dates are written in many ways: the one that reads most of the sample is used.

    Args:
        column: Its name, for messages.
        kind: See `check_types`.
        values: A sample of its `natural` values.
        signs: Whether numbers may have a sign such as €, if most of the sample have it.

    Raises:
        UsageError: No value of the sample fits, or two ways of reading dates or numbers differ and fit equally well.
    """
    if kind == "text":
        return Coerced(kind, None, kind)
    texts = [text for value in values if (text := cell_text(value).strip()).lower() not in NOTHING]
    sign = usual_sign(texts) if signs and kind.startswith(("integer", "real")) else ""
    if not sign:
        return _plain(column, kind, texts)
    found = _plain(column, kind, [without_sign(text, sign) for text in texts])
    parse = found.parse
    return replace(found, parse=lambda text: parse(without_sign(text, sign)) if parse else text)


def _plain(column: str, kind: str, texts: Sequence[str]) -> Coerced:
    if kind not in TYPES:
        return _written(kind, texts)
    forms = _FORMS[kind]
    form, parse = forms[_best(column, kind, forms, list(dict.fromkeys(texts))[:_TRIED])]
    return Coerced(kind, parse, kind) if form == kind else _written(form, texts)


def known_form(form: str) -> ColumnType:
    """Return the type of a column whose values are all written so; see `Form`."""
    return ColumnType(form.partition(":")[0], _parse_of(form), form)


def _written(form: str, texts: Sequence[str]) -> Coerced:
    """Return a type whose values are written so, or plainly: ISO dates and decimal points, as in an export.

    1.125 can be either. In a sample without a comma, one number with a decimal point shows that the file is an export.
    """
    kind, parse = form.partition(":")[0], _parse_of(form)
    plain = iso_date if kind == "date" else real
    exported = not any("," in text for text in texts) and any(_read(parse, text) is None for text in texts)
    first, other = (plain, parse) if kind == "date" or exported else (parse, plain)

    def either(text: str) -> Value:
        found = _read(first, text)
        return other(text) if found is None else found

    return Coerced(kind, either, form)


def _parse_of(form: str) -> Parse:
    return dict(_WRITTEN).get(form) or dated_by(form.removeprefix(_FORMAT))


def check_fit(column: str, kind: Coerced, values: Sequence[Value]) -> None:
    """Check that a column that was just given a type is not of another one altogether.

    Raises:
        UsageError: No value of the sample fits.
    """
    present = [value for value in values if cell_text(value).strip().lower() not in NOTHING]
    if present and not any(kind_of(kind.value(value)) == kind.kind for value in present):
        first = on_one_line(cell_text(present[0]))
        form = f" of the form {kind.form.removeprefix(_FORMAT)}" if kind.form.startswith(_FORMAT) else ""
        form += ' as JSON writes it, such as ["a", "b"]' if kind.kind == "list" else ""
        what = f"no value of the column {on_one_line(column)!r} is {NAMED[kind.kind]}{form}; the first one is {first!r}"
        other = ", such as real" if kind.kind == "integer" and _are_real(column, values) else ""
        advice = f"give it another {arg('type')}{other}"
        raise UsageError(f"{what}: {advice}", code="wrong-type", field="type", value=kind.kind)


def fitting_type(column: str, kinds: Sequence[str], values: Sequence[Value]) -> str | None:
    """Return the type that most of the values have; None if none can be given.

    Args:
        column: Its name.
        kinds: Types; of several that fit equally many values, the first.
        values: A sample of its `natural` values.
    """
    fitting: dict[str, int] = {}
    for kind in kinds:
        try:
            found = coerced(column, kind, values)
        except UsageError:  # it can be read in two ways
            continue
        fitting[kind] = sum(kind_of(found.value(value)) == found.kind for value in values)
    best = max(fitting, key=lambda kind: fitting[kind], default=None)
    return best if best and fitting[best] else None


def _are_real(column: str, values: Sequence[Value]) -> bool:
    try:
        real_type = coerced(column, "real", values)
    except UsageError:
        return False
    return any(kind_of(real_type.value(value)) == "real" for value in values)


def _is_format(pattern: str) -> bool:
    """Whether strptime reads with this pattern what it has written, in a year at least."""
    if not re.search("%[Yy]", pattern) or not all(map(_DIRECTIVE.match, re.findall("%.?", pattern))):
        return False
    try:
        datetime.strptime(datetime(2024, 5, 17).strftime(pattern), pattern)
    except (ValueError, re.error):
        return False
    return True


def _best(column: str, kind: str, forms: Sequence[Form], texts: Sequence[str]) -> int:
    """Return the place of what reads most of the texts; the first, ISO dates and plain decimals, leaves no doubt.

    Raises:
        UsageError: Another one reads equally many, and something else.
    """
    hopeful = [any(_read(parse, text) is not None for text in texts[:_FIRST]) for _, parse in forms]
    read = [
        {text: value for text in texts if hope and (value := _read(parse, text)) is not None}
        for hope, (_, parse) in zip(hopeful, forms, strict=True)
    ]
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
    forms = "date:%d/%m/%Y or date:%m/%d/%Y" if kind == "date" else "real:, for 1.234,50 or real:. for 1,234.50"
    advice = f"give the {'format' if kind == 'date' else 'decimal separator'} too, such as {forms}"
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
_FLAGS |= dict.fromkeys(YES, True) | dict.fromkeys(NO, False)


def _flag(text: str) -> bool:
    word = composed(text.lower())
    return _FLAGS[word] if word in _FLAGS else boolean(text)


_DATES = (*date_forms(), *month_forms())
_WRITTEN = (*number_forms(), *_DATES)
_FORMS: dict[str, Sequence[Form]] = {
    "integer": (("integer", _whole),),
    "real": (("real", real), *number_forms()),
    "boolean": (("boolean", _flag),),
    "date": (("date", iso_date), *_DATES),
    "list": (("list", json_list),),
}

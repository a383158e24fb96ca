"""A selection: which documents a person has chosen, as text that fits into an address.

`{"mode": "all", "parts": [PART, …]}` holds the documents that every part accepts; with "any", those that one accepts.
Without parts it holds all documents. A part with `"not": true` accepts what it would refuse. The parts:

- `{"kind": "area", "map": NAME, "outlines": [[[x, y], …], …]}`: documents inside one of the outlines on a map;
- `{"kind": "values", "column": NAME, "values": [TEXT, …]}`: documents with one of these values. `null` stands for no
  value, and `{"other": true}` for the values that have no name of their own;
- `{"kind": "range", "column": NAME, "low": a, "high": b}`: documents with a number from a to b, both included; dates
  are texts such as "2024-03-01", or days since 1970-01-01;
- `{"kind": "query", "query": TEXT, "k": N}`: the best N documents of a search, copies of a text included;
- `{"kind": "documents", "ids": [ID, …]}`: these documents; unknown ids are ignored.
"""

import json
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, NoReturn, TypeGuard

import numpy as np

from ...indexer.errors import UsageError, is_unicode
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import numbers_by_id
from ...indexer.store.view import View
from ..map.regions import inside
from ..search.search import best_documents
from .columns import days_of
from .stored import Parts
from .table import Column

Outline = tuple[tuple[float, float], ...]
LONGEST = 4_000_000
"""Most characters of a selection."""
MOST_PARTS = 100
MOST_CORNERS = 20_000
"""Most corners of all outlines of a part."""
MOST_HITS = 100_000


@dataclass(frozen=True, slots=True)
class Area:
    """Documents inside one of the outlines on the map of this name, by the even-odd rule; None is the newest map."""

    map: str | None
    outlines: tuple[Outline, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Documents with one of these values in a class column; `other` stands for values without a name of their own."""

    column: str
    values: frozenset[str | None]
    other: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """Documents with a number or date from `low` to `high`, both included."""

    column: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Query:
    """The best `k` documents of a search, copies of a text included."""

    query: str
    k: int


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents by id."""

    ids: tuple[str, ...]


Condition = Area | Values | Range | Query | Documents


@dataclass(frozen=True, slots=True)
class Part:
    """One condition, or its opposite."""

    condition: Condition
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Documents that all parts accept ("all"), or at least one ("any"); without parts, all documents."""

    mode: Literal["all", "any"] = "all"
    parts: tuple[Part, ...] = ()

    @classmethod
    def parse(cls, given: str | Mapping[str, Any]) -> "Selection":
        """Read a selection: JSON text, or the object that the text stands for.

        Raises:
            UsageError: It is anything else; the message says which part is wrong.
        """
        found = _read(given) if isinstance(given, str) else given
        if not isinstance(found, Mapping):
            _refuse("is not an object: write {'mode': 'all', 'parts': []}")
        _check_names(found, ("mode", "parts"), "the selection")
        mode, parts = found.get("mode", "all"), found.get("parts", [])
        if mode not in ("all", "any"):
            _refuse(f"has the mode {reprlib.repr(mode)}: use 'all' or 'any'")
        if not isinstance(parts, Sequence) or isinstance(parts, str) or len(parts) > MOST_PARTS:
            _refuse(f"needs a list of at most {MOST_PARTS} parts")
        return cls(mode, tuple(_part(each, number) for number, each in enumerate(parts, 1)))


def _read(text: str) -> Any:
    if len(text) > LONGEST:
        _refuse(f"has more than {LONGEST:,} characters: tag the documents and select the tag")
    try:
        return json.loads(text, parse_constant=_constant)
    except (ValueError, RecursionError):
        _refuse("is not valid JSON: make the selection again on the Explore page")


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


def _part(given: Any, number: int) -> Part:
    where = f"part {number} of the selection"
    if not isinstance(given, Mapping):
        _refuse("is not an object", where)
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in _READERS:
        _refuse(f"has the kind {reprlib.repr(kind)}: use {', '.join(_READERS)}", where)
    names, read = _READERS[kind]
    _check_names(given, ("kind", "not", *names), where)
    if not isinstance(given.get("not", False), bool):
        _refuse("has a 'not' that is not a boolean: use true or false", where)
    return Part(read(given, where), given.get("not", False))


def _area(given: Mapping[str, Any], where: str) -> Area:
    name, outlines = given.get("map"), given.get("outlines")
    if not isinstance(name, str | None):
        _refuse("has no map: give the name of a map run", where)
    if not _is_list(outlines) or not outlines:
        _refuse("has no outlines: give at least one", where)
    found = tuple(_outline(each, where) for each in outlines)
    if sum(map(len, found)) > MOST_CORNERS:
        _refuse(f"has more than {MOST_CORNERS:,} corners: draw a simpler outline", where)
    return Area(name, found)


def _outline(given: Any, where: str) -> Outline:
    if not _is_list(given) or len(given) < 3:
        _refuse("has an outline with fewer than three corners: draw at least three", where)
    if not all(_is_list(corner) and len(corner) == 2 for corner in given):
        _refuse("has an invalid corner: give a pair of numbers, [x, y]", where)
    return tuple((_number(x, where), _number(y, where)) for x, y in given)


def _values(given: Mapping[str, Any], where: str) -> Values:
    listed = given.get("values")
    if not _is_list(listed) or not listed:
        _refuse("has no values: give at least one", where)
    others = [each for each in listed if isinstance(each, Mapping)]
    named = {True: "true", False: "false"}  # the names of a boolean field's values
    values = [named[each] if isinstance(each, bool) else each for each in listed if not isinstance(each, Mapping)]
    if any(dict(each) != {"other": True} for each in others) or not all(isinstance(v, str | None) for v in values):
        _refuse("has an invalid value: use a text, null or {'other': true}", where)
    return Values(_column(given, where), frozenset(values), bool(others))


def _range(given: Mapping[str, Any], where: str) -> Range:
    low, high = (_end(given.get(name), where, last=name == "high") for name in ("low", "high"))
    if low > high:
        _refuse(f"has a low end {low:g} above its high end {high:g}", where)
    return Range(_column(given, where), low, high)


def _query(given: Mapping[str, Any], where: str) -> Query:
    query, k = given.get("query"), given.get("k")
    if not isinstance(query, str) or not query.strip() or not is_unicode(query):
        _refuse("has no query: give the words to look for", where)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_HITS:
        _refuse(f"has a k of {reprlib.repr(k)}: give a whole number from 1 to {MOST_HITS:,}", where)
    return Query(query, k)


def _documents(given: Mapping[str, Any], where: str) -> Documents:
    ids = given.get("ids")
    if not _is_list(ids) or not all(isinstance(each, str) for each in ids):
        _refuse("needs a list of ids, each a text", where)
    return Documents(tuple(dict.fromkeys(ids)))


_READERS: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], str], Condition]]] = {
    "area": (("map", "outlines"), _area),
    "values": (("column", "values"), _values),
    "range": (("column", "low", "high"), _range),
    "query": (("query", "k"), _query),
    "documents": (("ids",), _documents),
}


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _column(given: Mapping[str, Any], where: str) -> str:
    name = given.get("column")
    if not isinstance(name, str):
        _refuse("names no column", where)
    return name


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(f"has {reprlib.repr(value)} instead of a number: give a number", where)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _refuse("has a number that is not finite", where)
    return number


def _end(value: Any, where: str, *, last: bool) -> float:
    """Return an end of a range: a number, or a date as days; the last day counts to its end."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = date.fromisoformat(value) if len(value) <= len("2024-03-01") else datetime.fromisoformat(value)
    if isinstance(value, str):
        _refuse(f"has {reprlib.repr(value)} instead of a number: give a number, or a date such as '2024-03-01'", where)
    if not isinstance(value, date):
        return _number(value, where)
    days = _number(days_of(value), where)
    return days if isinstance(value, datetime) or not last else math.nextafter(days + 1, days)


def _check_names(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in given:
        if name not in known:
            _refuse(f"has the entry {reprlib.repr(name)}: use {', '.join(known)}", where)


def _refuse(said: str, where: str = "the selection") -> NoReturn:
    raise UsageError(f"{where} {said}", code="selection", field="selection")


Found = Mapping[Query, np.ndarray]
"""Numbers of the documents that each query finds."""


def select(collection: StoredCollection, given: str | Mapping[str, Any]) -> np.ndarray:
    """Return the numbers of the documents that a selection holds, int64 [m], ascending.

    Args:
        collection: The collection.
        given: The selection, as JSON text or as the object that it stands for; see `selection`.

    Raises:
        UsageError: The selection is not valid, or names a column that the collection does not have.
        SondeError: It names a map that the collection does not have, or the model of a query is not available.
    """
    selection = Selection.parse(given)
    queries = [part.condition for part in selection.parts if isinstance(part.condition, Query)]
    found = {each: best_documents(collection, each.query, each.k)[0] for each in queries}
    with collection.view() as view:
        parts = Parts(view)
        return parts.docs[mask(selection, parts, view, found)]


def mask(selection: Selection, parts: Parts, view: View, found: Found) -> np.ndarray:
    """Return bool [n]: which rows of the table a selection holds."""
    masks = [_mask(part, parts, view, found) for part in selection.parts]
    if not masks:
        return np.ones(len(parts.docs), bool)
    return np.logical_and.reduce(masks) if selection.mode == "all" else np.logical_or.reduce(masks)


def _mask(part: Part, parts: Parts, view: View, found: Found) -> np.ndarray:
    accepted = _accepted(part.condition, parts, view, found)
    return ~accepted if part.negated else accepted


def _accepted(condition: Condition, parts: Parts, view: View, found: Found) -> np.ndarray:
    match condition:
        case Area():
            run = parts.map_run(condition.map)
            return inside(parts.places(run).astype(np.float64), condition.outlines)
        case Values():
            return _of_values(_selected_column(parts, condition.column, ("class",)), condition)
        case Range():
            numbers = _selected_column(parts, condition.column, ("number", "date")).values
            return (numbers >= condition.low) & (numbers <= condition.high)
        case Query():
            return np.isin(parts.docs, found[condition])
        case Documents():
            numbers = numbers_by_id(view.catalog, condition.ids).values()
            return np.isin(parts.docs, np.array(list(numbers), np.int64))


def _selected_column(parts: Parts, name: str, kinds: tuple[str, ...]) -> Column:
    column = parts.column(name)
    if column is None:
        raise UsageError(
            f"{name} has a different value in nearly every document: select by another column", code="selection"
        )
    if column.kind not in kinds:
        advice = "'values'" if column.kind == "class" else "'range'"
        raise UsageError(f"{name} is a {column.kind} column: select in it with the kind {advice}", code="selection")
    return column


def _of_values(column: Column, wanted: Values) -> np.ndarray:
    last = len(column.names) - 1 if column.cut else None
    accepts = [name in wanted.values if code != last else wanted.other for code, name in enumerate(column.names)]
    for code, above in enumerate(column.above):  # a group above comes first
        accepts[code] = accepts[code] or (above >= 0 and accepts[above])
    return np.array([*accepts, None in wanted.values], bool)[column.values]  # the code -1 is the last entry

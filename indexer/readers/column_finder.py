"""Finding the text, title, id and language among the columns, and what is told of the values of the others."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..document import Document, Value
from ..errors import SondeError, UsageError, arg, did_you_mean
from ..wording import listed, on_one_line
from .cell_parsers import NOTHING, real, usual_sign, without_sign
from .coercion import Coerced, check_fit, coerced, known_form
from .column_types import ColumnType, decide_type, kind_of, looks_like_dates
from .columns import LANGUAGE, Columns, ends_as_code, id_rank, names_code, normalised_name, text_rank, title_rank
from .source import ReadOptions, Row
from .values import cell_text, natural

_LONGEST_TITLE = 300
_MOST_COLUMNS = 10_000
"""Columns whose values are kept for the first 1,000 rows; a collection can have 1,900."""
_REPEATS_ALLOWED = 0.5
AS_BEFORE, CODES, UNFIT = "as before", "unique codes", "repeats or is missing"
"""How an id column was found that has no name of one."""
OWN = "the document's own"
"""How the fields of a `Document` were found."""
_REAL = ColumnType("real", real)
_DECIMAL, _WHOLE = re.compile(r"\d+\.\d+"), re.compile(r"\d+\.0+")
_FEWEST_CODES = 3
_ID_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[^\W_]+([-_./:#][^\W_]+){0,8}")
_LONGEST_CODE = 64
_CODE = re.compile(r"[a-zA-Z]{2,3}([-_][a-zA-Z0-9]{2,8})*")
_NO_PROSE = re.compile(r"https?://\S*|[0-9a-fA-F-]{16,}")


@dataclass(frozen=True)
class Profile:
    """What the sample says about one column; `type` is None where every value is missing."""

    name: str
    values: Sequence[Value]
    type: ColumnType | None

    @property
    def kind(self) -> str:
        """The type's name, "empty" if there is none."""
        return self.type.kind if self.type else "empty"

    @property
    def mean_length(self) -> float:
        """Characters per row of the sample."""
        return fmean(map(len, map(cell_text, self.values))) if self.values else 0.0

    @property
    def distinct(self) -> float:
        """Distinct values per row of the sample, 0 to 1."""
        return len(set(map(cell_text, self.values)) - {""}) / max(len(self.values), 1)


def find_columns(rows: Sequence[Row], options: ReadOptions, textual: bool, note: str) -> "Roles":
    """Give every column its role.

    Args:
        rows: The sample.
        options: The roles that were set.
        textual: See `decide_type`.
        note: How the source is read, for `Columns.note`.

    Raises:
        UsageError: A column that was set does not exist, or none can be the text; says which there are.
    """
    profiles = _profiles(_usable(rows), textual, options.form_hint)
    finder = _Finder(profiles, options)
    text, how = finder.text()
    roles: dict[str, str | None] = {}
    reasons = {"text": how}
    taken = set(text)
    for role in ("id", "language", "title"):
        roles[role], reasons[role] = getattr(finder, role)(taken)
        taken.add(roles[role] or "")
    taken.discard(roles["language"])  # it is metadata too: people count by it, and an export must have it
    left_out = finder.left_out()
    given = finder.given_types(_uses(text, roles, left_out))
    aside = tuple(name for name in profiles if name in options.aside - taken)
    taken |= left_out | set(aside)
    types = {name: profile.type for name, profile in profiles.items() if profile.type and name not in taken}
    types |= {name: kind for name, kind in given.items() if name not in taken}
    metadata = {name: kind.kind for name, kind in types.items()}
    texts = [name for name, kind in metadata.items() if kind == "text" and name not in given]
    nearly = {name: found for name in texts if (found := _nearly_type(name, profiles[name].values))}
    dates = tuple(name for name in texts if name not in nearly and looks_like_dates(profiles[name].values))
    reals = [name for name, kind in metadata.items() if kind == "real" and textual and name not in given]
    merged = {name: both for name in reals if (both := _two_spellings(profiles[name].values))}
    plain = [name for name in reals if not types[name].form]
    plain += [name for name in options.type if name in types and types[name].form == "real"]
    points = {name: one for name in plain if (one := _in_thousands(profiles[name].values))}
    columns = Columns(
        text, roles["title"], roles["id"], roles["language"], metadata, reasons, note, dates, nearly, merged, points
    )
    return Roles(columns, types, aside)


def _uses(texts: Sequence[str], roles: Mapping[str, str | None], left_out: Collection[str]) -> dict[str, str]:
    """Return what the columns are that do not become metadata, in words, by name."""
    found = {**dict.fromkeys(left_out, "left out"), **dict.fromkeys(texts, "the text")}
    return found | {name: f"the {role}" for role, name in roles.items() if name and role != "language"}


@dataclass(frozen=True)
class Roles:
    """The columns' roles and, for metadata, how their cells are read; `aside` are columns of `leave_out_hint`."""

    columns: Columns
    types: Mapping[str, ColumnType]
    aside: tuple[str, ...] = ()


def document_columns(documents: Sequence[Document]) -> Columns:
    """The columns of finished documents, whose roles are their fields."""
    values: dict[str, list[Value]] = {}
    for document in documents:
        for name, value in document.metadata.items():
            values.setdefault(name, []).append(value)
    types = {name: decide_type(column, textual=False) for name, column in values.items()}
    return Columns(
        text=("text",),
        title="title" if any(document.title for document in documents) else None,
        id="key" if any(document.key is not None for document in documents) else None,
        language="language" if any(document.language for document in documents) else None,
        metadata={name: kind.kind for name, kind in types.items() if kind},
        reasons=dict.fromkeys(("text", "title", "id", "language"), OWN),
    )


def column_types(rows: Sequence[Row], textual: bool) -> dict[str, str]:
    """Return every column of a sample with the name of its type, "empty" where every value is missing."""
    return {name: profile.kind for name, profile in _profiles(rows, textual).items()}


def _usable(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without empty ones and repetitions, which say nothing of a column of ids; all if none is left."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        values = {name: natural(value) for name, value in row.values.items()}
        if any(value is not None for value in values.values()):
            found.setdefault(tuple((name, cell_text(value)) for name, value in values.items()), row)
    return list(found.values()) or list(rows)


def _profiles(rows: Sequence[Row], textual: bool, forms: Mapping[str, str] = {}) -> dict[str, Profile]:
    seen: dict[str, None] = {}
    for row in rows:
        seen |= dict.fromkeys(row.values)
        if len(seen) > _MOST_COLUMNS:
            raise SondeError(f"there are more than {_MOST_COLUMNS:,} columns in the first rows: remove some")
    profiles = {}
    for name in seen:
        values = [natural(row.values.get(name)) for row in rows]
        known = known_form(forms[name]) if name in forms else None
        kind = decide_type(values, textual, known)
        if textual and kind == _REAL and _are_codes(name, values):
            kind = ColumnType("text")
        profiles[name] = Profile(name, values, kind)
    return profiles


def _are_codes(name: str, values: Sequence[Value]) -> bool:
    """Whether decimal numbers are codes by the name of their column: arXiv IDs such as 2510.20470, not ids as 7.0."""
    codes = [cell_text(value).strip() for value in values if value is not None]
    return ends_as_code(name) and all(map(_DECIMAL.fullmatch, codes)) and not all(map(_WHOLE.fullmatch, codes))


class _Finder:
    def __init__(self, profiles: Mapping[str, Profile], options: ReadOptions) -> None:
        self._profiles = profiles
        self._options = options
        self._own = [profile for name, profile in profiles.items() if name not in options.aside]
        self._strings = [profile for profile in self._own if profile.kind in ("text", "empty")]

    def text(self) -> tuple[tuple[str, ...], str]:
        if self._options.texts:
            names = tuple(self._existing(name, "text") for name in self._options.texts)
            odd = [f"{name} has type {self._profiles[name].kind}" for name in names if not self._has_text(name)]
            return names, "as set" + (f"; {', '.join(odd)}, not text" if odd else "")
        free = [profile for profile in self._strings if profile.name not in (self._options.title, self._options.id)]
        named = [profile for profile in self._own if text_rank(profile.name) == 0 and profile not in free]
        named += [profile for profile in free if text_rank(profile.name) is not None]
        if named:
            best = min(named, key=lambda profile: (text_rank(profile.name), -profile.mean_length))
            return (best.name,), "by name"
        prose = [profile for profile in free if profile.type and not _is_no_prose(profile)]
        if not prose:
            said = f"no text column among {self._existing_names()}: choose one with {arg('text')}"
            raise UsageError(said, code="not-found", field="text", alternatives=self._profiles)
        return (max(prose, key=lambda profile: profile.mean_length).name,), "by content, the longest strings"

    def _has_text(self, name: str) -> bool:
        return self._profiles[name].kind in ("text", "list", "empty")

    def title(self, taken: set[str]) -> tuple[str | None, str]:
        if self._options.title is not None:
            return self._set("title", self._options.title)
        fitting = [profile for profile in self._strings if profile.type and profile.mean_length <= _LONGEST_TITLE]
        found = self._by_name(fitting, title_rank, taken)
        return found, "by name" if found else ""

    def id(self, taken: set[str]) -> tuple[str | None, str]:
        hashed = "using a hash of the text"
        if self._options.id is not None:
            column, reason = self._set("id", self._options.id)
            return column, reason if column else hashed
        hint = self._options.id_hint
        if (own := self._like(hint or "")) and own not in taken:
            return own, AS_BEFORE
        named = [profile for profile in self._own if id_rank(profile.name) is not None]
        found = self._by_name([profile for profile in named if _is_id(profile)], id_rank, taken)
        if found:
            return found, "by name"
        codes = [each.name for each in self._own if each.name not in taken and _is_code(each)]
        if codes and hint == "":
            return min(codes, key=lambda name: not names_code(name)), CODES
        repeating = [profile.name for profile in named if profile.type and profile.name not in taken]
        return None, hashed + (f" because {repeating[0]} {UNFIT}" if repeating else "")

    def _like(self, name: str) -> str | None:
        """Return the column of this name, or one that differs in capitals or in spaces around it; None for ""."""
        plain = {each.strip().casefold(): each for each in reversed(list(self._profiles))} if name else {}
        return name if name in self._profiles else plain.get(name.strip().casefold())

    def language(self, taken: set[str]) -> tuple[str | None, str]:
        if self._options.language is not None:
            return self._set("language", self._options.language)
        for profile in self._strings:
            codes = [cell_text(value) for value in profile.values if value is not None]
            named = normalised_name(profile.name) in LANGUAGE and profile.name not in taken
            if named and codes and all(_CODE.fullmatch(code.strip()) for code in codes):
                return profile.name, "by name"
        return None, ""

    def left_out(self) -> set[str]:
        return {self._existing(name, "left out") for name in self._options.leave_out}

    def given_types(self, uses: Mapping[str, str]) -> dict[str, Coerced]:
        """The types that were set, and those of earlier runs, where they can be; `uses` are the columns without one."""
        found = {}
        for name, kind in self._options.type.items():
            if name not in self._profiles:
                continue  # `read_source` refuses what no source has
            if use := uses.get(name):
                said = f"the column {on_one_line(name)!r} is {use}, so it cannot have a type"
                raise UsageError(f"{said}: leave it out of {arg('type')}", code="conflict", field="type", value=name)
            before = self._options.type_hint.get(name, "")
            kind = before if before.partition(":")[0] == kind else kind  # with the format that was found then
            found[name] = coerced(name, kind, self._profiles[name].values)
            check_fit(name, found[name], self._profiles[name].values)
        for name, kind in self._options.type_hint.items():
            if name in self._profiles and name not in found and name not in uses:
                found[name] = coerced(name, kind, self._profiles[name].values)
        return found

    def _by_name(self, profiles: Sequence[Profile], rank: Callable[[str], int | None], taken: set[str]) -> str | None:
        ranked = [(rank(profile.name), profile.name) for profile in profiles if profile.name not in taken]
        return min(((place, name) for place, name in ranked if place is not None), default=(0, None))[1]

    def _set(self, role: str, name: str) -> tuple[str | None, str]:
        return (self._existing(name, role), "as set") if name else (None, "as set")

    def _existing(self, name: str, role: str) -> str:
        if name in self._profiles:
            return name
        near = did_you_mean(name, list(self._profiles))
        said = f"the {role} column {on_one_line(name)!r} does not exist{near}; there are {self._existing_names()}"
        field = "leave_out" if role == "left out" else role
        raise UsageError(said, code="not-found", field=field, value=name, alternatives=self._profiles)

    def _existing_names(self) -> str:
        return listed([f"{on_one_line(name)} ({each.kind})" for name, each in self._profiles.items()]) or "none"


def _is_id(profile: Profile) -> bool:
    """Up to half of the values of an `id` may repeat or be missing; a `doc_id` on every passage is no key."""
    whole = all(value.is_integer() for value in profile.values if isinstance(value, float))
    own = normalised_name(profile.name) in ("id", "_id", "uuid", "guid", "uid")
    enough = profile.distinct > _REPEATS_ALLOWED if own else profile.distinct == 1.0
    return profile.kind in ("text", "integer", "real") and whole and enough


def _is_code(profile: Profile) -> bool:
    """Whether every value is a different code such as T-1042; for whole numbers, the name must say so.

    Numbers of rows, from 0 or 1 on, do not count.
    """
    if len(profile.values) < _FEWEST_CODES or profile.distinct < 1.0 or any(v is None for v in profile.values):
        return False
    if profile.kind == "integer":
        numbers = [cell_text(value).strip() for value in profile.values]
        counted = numbers in ([str(start + place) for place in range(len(numbers))] for start in (0, 1))
        return names_code(profile.name) and not counted  # the numbers of the rows change with their order
    codes = [cell_text(value).strip() for value in profile.values]
    form = _DECIMAL if ends_as_code(profile.name) and _DECIMAL.fullmatch(codes[0]) else _ID_CODE
    return profile.kind == "text" and all(len(code) <= _LONGEST_CODE and form.fullmatch(code) for code in codes)


def _is_no_prose(profile: Profile) -> bool:
    return all(_NO_PROSE.fullmatch(cell_text(value)) for value in profile.values if value is not None)


_NEARLY = 0.9
_FEWEST_OF_TYPE = 10
"""Values of a type, as a share and in number, beside which the others of the column look like slips."""
_ZEROS_BEFORE = re.compile(r"-?0\d+")
"""A number with zeros before it."""
_GROUPS = re.compile(r"-?[1-9]\d{0,2}\.\d{3}|-?(0|[1-9]\d{0,2})")
"""A number whose point can separate thousands, or one that has none."""


def _nearly_type(name: str, values: Sequence[Value]) -> tuple[str, str] | None:
    """Return the type of nearly all values of a column of text, and the first other value; None if it is mixed.

    Args:
        name: Of the column.
        values: A sample of its `natural` values.
    """
    present = [value for value in values if cell_text(value).strip()]
    if any(isinstance(value, str) and _ZEROS_BEFORE.fullmatch(value.strip()) for value in present):
        return None
    kinds = ("boolean", "integer", "real", "date") if looks_like_dates(values) else ("boolean", "integer", "real")
    others = {kind: odd for kind in kinds if (odd := _others(name, kind, present)) is not None}
    if not others:
        return None
    kind = min(others, key=lambda each: len(others[each]))
    odd = others[kind]
    few = len(present) - len(odd) >= max(_FEWEST_OF_TYPE, _NEARLY * len(present))
    return (kind, odd[0]) if odd and few else None


def _others(name: str, kind: str, values: Sequence[Value]) -> list[str] | None:
    """Return the values that are not of a type; None if it has several ways to read them."""
    try:
        found = coerced(name, kind, values, signs=False)
    except UsageError:
        return None
    return [cell_text(value).strip() for value in values if kind_of(found.value(value)) != kind]


def _two_spellings(values: Sequence[Value]) -> tuple[str, str] | None:
    """Return two strings that are the same real number but for zeros at the end, such as 1.1 and 1.10; None if none."""
    seen: dict[str, str] = {}
    for text in dict.fromkeys(value.strip() for value in values if isinstance(value, str) and "." in value):
        if seen.setdefault(text.rstrip("0"), text) != text:
            return seen[text.rstrip("0")], text
    return None


def _in_thousands(values: Sequence[Value]) -> str | None:
    """Return the first string such as 1.234, if the points of all numbers may separate thousands; None otherwise."""
    present = [value for value in values if value is not None and cell_text(value).strip().lower() not in NOTHING]
    texts = [value.strip() for value in present if isinstance(value, str)]
    sign = usual_sign(texts)
    numbers = [without_sign(text, sign) for text in texts] if len(texts) == len(present) else []
    return next((each for each in numbers if "." in each), None) if all(map(_GROUPS.fullmatch, numbers)) else None

"""A taxonomy apart from its collection: what files hold, and JSON, which holds all of it."""

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from ...indexer.errors import SondeError, UsageError, is_finite, is_unicode
from ...indexer.store.documents import ids_by_number, numbers_by_id
from ...indexer.store.view import View
from ...indexer.wording import on_one_line
from ..analysis.corpus import Corpus
from .changes import State
from .groups import NO_GROUP, Group, Rule, check_name, tree_problem
from .places import Means, typical_of

FORM = "sonde taxonomy 1"
LARGEST = 10**9
"""The largest number of a group in a file, so that later groups have numbers too."""


@dataclass(frozen=True, slots=True)
class Portable:
    """A taxonomy as files hold it.

    Attributes:
        groups: By number.
        levels: Names of the levels.
        documents: Group, -1 for none, and score, or None, of each document by id.
        locks: Groups of locked documents by id.
        title: Its name; "" if the file has none.
        typical: Texts that are typical of groups without examples, by number: they seed other collections.
        notes: What of the file was not taken over, in sentences.
    """

    groups: Mapping[int, Group]
    levels: tuple[str, ...] = ()
    documents: Mapping[str, tuple[int, float | None]] = field(default_factory=dict)
    locks: Mapping[str, int] = field(default_factory=dict)
    title: str = ""
    typical: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: View, state: State, title: str, *, typical: bool = False) -> "Portable":
        """Return a state with the ids of its documents; with typical texts, if they are wanted."""
        ids = ids_by_number(view.catalog, state.docs.tolist())
        rows = zip(state.docs.tolist(), state.numbers.tolist(), state.scores.tolist(), strict=True)
        documents = {ids[doc]: (number, None if score != score else score) for doc, number, score in rows}
        texts = typical_texts(view, state) if typical else {}
        return cls(state.groups, state.levels, documents, state.locks, title, texts)

    def examples(self, number: int) -> tuple[str, ...]:
        """Return the examples of a group or, if it has none, its typical texts."""
        return self.groups[number].examples or self.typical.get(number, ())

    def state(self, view: View) -> State:
        """Return the state in a collection; documents that it does not have are left out, but for their locks."""
        numbers = numbers_by_id(view.catalog, self.documents)
        docs = np.array(sorted(numbers.values()), np.int64)
        ids = {doc: id for id, doc in numbers.items()}
        found = [self.documents[ids[doc]] for doc in docs.tolist()]
        scores = np.array([np.nan if score is None else score for _, score in found], np.float64)
        placed = np.array([number for number, _ in found], np.int64)
        return State(self.groups, docs, placed, scores, dict(sorted(self.locks.items())), self.levels)


def typical_texts(view: View, state: State) -> dict[int, tuple[str, ...]]:
    """Return the texts nearest to the means of the groups that have documents and no examples, by number."""
    bare = [number for number, group in state.groups.items() if not group.examples]
    inside = np.isin(state.numbers, bare)
    if not inside.any():
        return {}
    corpus = Corpus.of(view, state.docs[inside])
    chosen = State(state.groups, state.docs[inside], state.numbers[inside])
    means = Means.of(corpus, chosen, bare)
    pairs = zip(means.numbers.tolist(), means.vectors, strict=True)
    return {number: typical_of(view, corpus, chosen, number, mean) for number, mean in pairs}


def checked(found: Portable) -> Portable:
    """Return a taxonomy that was read from a file, after a check of its tree, names, texts and documents.

    Raises:
        SondeError: A group lies under itself or under one that does not exist, or a document is in such a one.
        UsageError: A name is not valid.
    """
    for number, group in found.groups.items():
        check_name(group.name)
        if not 0 <= number <= LARGEST:
            raise wrong(f"the number of a group is {number}: use 0 to {LARGEST:,}")
        if group.rule and not -1 <= group.rule.near <= 1:
            raise wrong(f"the rule of the group {group.shown} has a 'near' of {group.rule.near}: use -1 to 1")
    if problem := tree_problem(found.groups):
        raise wrong(problem)
    known = {*found.groups, NO_GROUP}
    placed = {id: number for id, (number, _) in found.documents.items()} | dict(found.locks)
    if odd := next((id for id, number in placed.items() if number not in known), None):
        raise wrong(f"the document {on_one_line(odd)!r} is in the group {placed[odd]}, which does not exist")
    texts = [found.title, found.levels, list(placed), [group.to_dict() for group in found.groups.values()]]
    if not is_unicode(json.dumps(texts, ensure_ascii=False)):
        raise wrong("a text is not valid Unicode")
    return replace(found, groups=dict(sorted(found.groups.items())))


def wrong(said: str) -> SondeError:
    """Return the error for a file that cannot be a taxonomy."""
    return SondeError(f"the file is not a valid taxonomy: {said}", code="bad-file")


def to_json(found: Portable) -> str:
    """Return all of a taxonomy as JSON."""
    documents = [
        {"id": id, "group": number, "score": score, "locked": id in found.locks}
        for id, (number, score) in found.documents.items()
    ]
    absent = {id: number for id, number in found.locks.items() if id not in found.documents}
    values = {
        "form": FORM, "name": found.title, "levels": list(found.levels),
        "groups": [_group_to_json(found, number) for number in sorted(found.groups)],
        "documents": documents, "locked_elsewhere": absent,
    }  # fmt: skip
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"


def _group_to_json(found: Portable, number: int) -> dict[str, Any]:
    typical = {"typical": list(found.typical[number])} if number in found.typical else {}
    return found.groups[number].to_dict() | typical


def from_json(text: str) -> Portable:
    """Return a taxonomy from what `to_json` wrote.

    Raises:
        SondeError: It is not such a file.
        UsageError: It has another form, or a name is not valid.
    """
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SondeError(f"the file is not a valid JSON taxonomy: {said}", code="bad-file") from None
    if not isinstance(values, dict) or "form" not in values:
        raise SondeError("the file is not a valid JSON taxonomy: no 'form'", code="bad-file")
    if values["form"] != FORM:
        said = f"the file has the form {reprlib.repr(values['form'])}; this version reads {FORM!r}"
        raise UsageError(said, code="bad-file")
    return checked(_from_values(values))


def _from_values(values: Mapping[str, Any]) -> Portable:
    """Return the taxonomy of an object in JSON, each value checked to be of its type."""
    groups: dict[int, Group] = {}
    documents: dict[str, tuple[int, float | None]] = {}
    typical, locks = {}, {}
    for one in _objects(values, "groups"):
        group = _group(one)
        if group.number in groups:
            raise wrong(f"two groups have the number {group.number}")
        groups[group.number] = group
        if texts := _texts(one, "typical"):
            typical[group.number] = texts
    for one in _objects(values, "documents"):
        id, number = _get(one, "id", str), _get(one, "group", int)
        if id in documents:
            raise wrong(f"the document {on_one_line(id)!r} is listed twice")
        documents[id] = number, finite(_get(one, "score", float, None), "score")
        if _get(one, "locked", bool, False):
            locks[id] = number
    away = _get(values, "locked_elsewhere", dict, {})
    locks |= {id: _get(away, id, int) for id in away}
    return Portable(groups, _texts(values, "levels"), documents, locks, _get(values, "name", str, ""), typical)


def _group(values: Mapping[str, Any]) -> Group:
    rule = _get(values, "rule", dict, None)
    return Group(
        _get(values, "number", int), _get(values, "name", str), _get(values, "description", str, ""),
        _get(values, "parent", int, None), _get(values, "locked", bool, False), _get(values, "proposed", bool, False),
        _rule(rule) if rule else None, _get(values, "source", str, ""), _texts(values, "examples"),
    )  # fmt: skip


def _rule(values: Mapping[str, Any]) -> Rule:
    near = finite(_get(values, "near", float, None), "near")
    rule = Rule(_get(values, "where", str, None), _texts(values, "examples"))
    return rule if near is None else replace(rule, near=near)


def finite(value: float | None, name: str) -> float | None:
    """Return a number of a file, or None.

    Raises:
        SondeError: It is NaN or infinite.
    """
    if value is not None and not is_finite(value):
        raise wrong(f"{name!r} is {value}: give a finite number")
    return value


_NEEDED: Any = object()


def _get(values: Mapping[str, Any], name: str, kind: type, default: Any = _NEEDED) -> Any:
    """Return an entry of an object in JSON; `null` and a missing entry are the default."""
    found = values.get(name)
    if found is None and default is not _NEEDED:
        return default
    number = isinstance(found, int) and not isinstance(found, bool)
    if (not isinstance(found, kind) and not (kind is float and number)) or (kind is int and not number):
        said = "is missing" if name not in values else f"is {reprlib.repr(found)}"
        raise wrong(f"{on_one_line(name)!r} {said}: give {_KINDS[kind]}")
    try:
        return float(cast("Any", found)) if kind is float else found
    except OverflowError:
        return float("inf")


_KINDS = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "an object",
}  # fmt: skip


def _objects(values: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = _get(values, name, list, _NEEDED if name == "groups" else [])
    if odd := [one for one in found if not isinstance(one, dict)]:
        raise wrong(f"{name!r} holds {reprlib.repr(odd[0])}: give objects")
    return found


def _texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = _get(values, name, list, [])
    if odd := [one for one in found if not isinstance(one, str)]:
        raise wrong(f"{name!r} holds {reprlib.repr(odd[0])}: give texts")
    return tuple(found)

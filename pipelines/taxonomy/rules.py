"""Rules of groups: which documents match them, and which documents match two rules."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.store.documents import document_numbers, ids_by_number, numbers_by_id
from ...indexer.store.view import View, document_vectors, normalized
from ...indexer.wording import counted
from ..analysis.neighbours import products
from ..search.filters import documents_where
from .changes import State
from .groups import NO_GROUP, Group, Groups, Rule, ancestors, under

BLOCK, SHOWN = 16_384, 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two rules that match the same documents; the first one, with the lower number, gets them.

    Attributes:
        first: Number of the group that gets the documents.
        second: Number of the other one.
        documents: How many they are.
        ids: Some of them.
    """

    first: int
    second: int
    documents: int
    ids: tuple[str, ...]

    @property
    def said(self) -> str:
        """The conflict in words."""
        wanted = (
            f"the rules of the groups {self.first} and {self.second} both match {counted(self.documents, 'document')}"
        )
        return f"{wanted} ({', '.join(self.ids)}): group {self.first} gets them"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"ids": list(self.ids)}


@dataclass(frozen=True, slots=True)
class Matched:
    """What the rules of a taxonomy match.

    Attributes:
        docs: int64 [n], the documents that match a rule, ascending.
        numbers: int64 [n], the group that each matches: the lowest of groups under each other, otherwise the first.
        conflicts: Rules that match the same documents.
    """

    docs: np.ndarray
    numbers: np.ndarray
    conflicts: tuple[Conflict, ...]


def matching(view: View, groups: Groups) -> Matched:
    """Return the documents that the rules of groups match.

    Raises:
        UsageError: A filter is not valid.
    """
    ruled = [group for _, group in sorted(groups.items()) if group.rule]
    found = {group.number: _matches_of(view, group) for group in ruled}
    docs = np.unique(np.concatenate([np.zeros(0, np.int64), *found.values()]))
    numbers = np.full(len(docs), -1)
    for group in reversed(ruled):
        numbers[np.searchsorted(docs, found[group.number])] = group.number
    for group in sorted(ruled, key=lambda group: len(ancestors(groups, group.number))):
        places = np.searchsorted(docs, found[group.number])
        below = np.isin(numbers[places], ancestors(groups, group.number))
        numbers[places[below]] = group.number
    return Matched(docs, numbers, tuple(_conflicts(view, groups, found)))


def _matches_of(view: View, group: Group) -> np.ndarray:
    try:
        return matches(view, group.rule or Rule())
    except UsageError as error:
        error.prefix(f"the rule of the group {group.shown}")
        raise


def matches(view: View, rule: Rule) -> np.ndarray:
    """Return the numbers of the documents that match a rule, int64, ascending.

    Raises:
        UsageError: Its filter is not valid.
    """
    found = np.zeros(0, np.int64)
    if rule.where:
        found = documents_where(view.catalog, rule.where)
    known = sorted(numbers_by_id(view.catalog, rule.examples).values())
    if not known:
        return found
    examples, docs = normalized(document_vectors(view, known)), document_numbers(view.catalog)
    near = [found]
    for start in range(0, len(docs), BLOCK):
        some = docs[start : start + BLOCK]
        cosines = products(normalized(document_vectors(view, some)), examples).max(axis=1)
        near.append(some[cosines >= rule.near])
    return np.unique(np.concatenate([*near, known]))


def _conflicts(view: View, groups: Groups, found: dict[int, np.ndarray]) -> Iterator[Conflict]:
    for first, second in combinations(found, 2):
        if first in ancestors(groups, second) or second in ancestors(groups, first):
            continue
        both = np.intersect1d(found[first], found[second])
        if len(both):
            ids = ids_by_number(view.catalog, both[:SHOWN].tolist())
            yield Conflict(first, second, len(both), tuple(ids[doc] for doc in both[:SHOWN].tolist()))


def obeyed(state: State, matched: Matched, fixed: np.ndarray) -> State:
    """Return a state in which the documents that match a rule are in its group, or stay in one under it.

    Args:
        state: The taxonomy.
        matched: What the rules match.
        fixed: int64, documents that stay where they are.
    """
    free = ~np.isin(matched.docs, fixed)
    docs, numbers = matched.docs[free], matched.numbers[free]
    known = dict(zip(state.docs.tolist(), state.numbers.tolist(), strict=True))
    held = {number: under(state.groups, number) for number in set(numbers.tolist())}
    pairs = zip(docs.tolist(), numbers.tolist(), strict=True)
    there = np.array([known.get(doc, NO_GROUP) in held[number] for doc, number in pairs], bool)
    return state.placed(docs[~there], numbers[~there])

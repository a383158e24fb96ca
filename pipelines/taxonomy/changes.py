"""A taxonomy at one moment, and what an edit changed of it: enough to make the edit again, and to undo it."""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .groups import NO_GROUP, Group

ABSENT = -(2**31)
"""Stands for the group of a document that the taxonomy does not know."""


@dataclass(frozen=True, slots=True)
class State:
    """A taxonomy. Every edit makes a new one of it.

    Attributes:
        groups: By number.
        docs: int64 [n], numbers of documents, ascending.
        numbers: int64 [n], the group of each, -1 for none.
        scores: float64 [n], the cosine to the group's mean when Sonde placed it; NaN if a person did.
        locks: Locked documents: group by id. An id stays here when its document is deleted.
        levels: Names of the levels, the top one first; deeper levels have none.
    """

    groups: Mapping[int, Group] = field(default_factory=dict)
    docs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))
    locks: Mapping[str, int] = field(default_factory=dict)
    levels: tuple[str, ...] = ()

    def sizes(self) -> dict[int, int]:
        """Return how many documents are directly in each group that has any; -1 counts those in none."""
        numbers, counts = np.unique(self.numbers, return_counts=True)
        return dict(zip(numbers.tolist(), counts.tolist(), strict=True))

    def members(self, number: int) -> np.ndarray:
        """Return the numbers of the documents directly in a group, int64, ascending."""
        return self.docs[self.numbers == number]

    def renumbered(self, leads: Mapping[int, int]) -> "State":
        """Return a state whose documents and locks are in other groups, by their old ones; those in none are free."""
        numbers = self.numbers.copy()
        for old, new in leads.items():
            numbers[self.numbers == old] = new
        locks = {id: leads.get(number, number) for id, number in self.locks.items() if leads.get(number) != NO_GROUP}
        return replace(self, numbers=numbers, locks=locks)

    def placed(self, docs: np.ndarray, numbers: np.ndarray, scores: np.ndarray | None = None) -> "State":
        """Return a state in which documents are in other groups, those that it did not know among them.

        Args:
            docs: int64 [m], numbers of documents, each once.
            numbers: int64 [m], their groups.
            scores: float64 [m], or None for places that a person chose.
        """
        kept = ~np.isin(self.docs, docs)
        new = np.full(len(docs), np.nan) if scores is None else scores
        every = np.concatenate([self.docs[kept], docs])
        order = np.argsort(every, kind="stable")
        return replace(
            self,
            docs=every[order],
            numbers=np.concatenate([self.numbers[kept], numbers])[order],
            scores=np.concatenate([self.scores[kept], new])[order],
        )

    def without(self, docs: np.ndarray) -> "State":
        """Return a state that does not know some documents."""
        kept = ~np.isin(self.docs, docs)
        return replace(self, docs=self.docs[kept], numbers=self.numbers[kept], scores=self.scores[kept])


@dataclass(frozen=True, slots=True)
class Change:
    """The difference between two states of a taxonomy.

    Attributes:
        groups: Groups before and after by number; None where there is none.
        locks: Groups of locked documents before and after by id; None where a document is not locked.
        levels: The names of the levels before and after.
        docs: int64 [n], documents that are in another group, or have another score.
        before: int64 [n] groups and float64 [n] scores before; `ABSENT` for documents that were unknown.
        after: The same after the edit.
    """

    groups: Mapping[int, tuple[Group | None, Group | None]]
    locks: Mapping[str, tuple[int | None, int | None]]
    levels: tuple[tuple[str, ...], tuple[str, ...]]
    docs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    before: tuple[np.ndarray, np.ndarray] = field(default_factory=lambda: (np.zeros(0, np.int64), np.zeros(0)))
    after: tuple[np.ndarray, np.ndarray] = field(default_factory=lambda: (np.zeros(0, np.int64), np.zeros(0)))

    @classmethod
    def between(cls, old: State, new: State) -> "Change":
        """Return what makes `new` of `old`."""
        numbers = sorted({*old.groups, *new.groups})
        groups = {number: (old.groups.get(number), new.groups.get(number)) for number in numbers}
        ids = sorted({*old.locks, *new.locks})
        locks = {id: (old.locks.get(id), new.locks.get(id)) for id in ids}
        docs, before, after = _moved(old, new)
        return cls(
            {number: pair for number, pair in groups.items() if pair[0] != pair[1]},
            {id: pair for id, pair in locks.items() if pair[0] != pair[1]},
            (old.levels, new.levels), docs, before, after,
        )  # fmt: skip

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return not (self.groups or self.locks or len(self.docs) or self.levels[0] != self.levels[1])

    @property
    def reverse(self) -> "Change":
        """Return the reverse of the change."""
        return Change(
            {number: (new, old) for number, (old, new) in self.groups.items()},
            {id: (new, old) for id, (old, new) in self.locks.items()},
            (self.levels[1], self.levels[0]), self.docs, self.after, self.before,
        )  # fmt: skip

    def applied(self, state: State) -> State:
        """Return a state with this change made in it."""
        groups = {**state.groups, **{number: new for number, (_, new) in self.groups.items() if new}}
        for number, (_, new) in self.groups.items():
            if new is None:
                groups.pop(number, None)
        locks = {**state.locks, **{id: new for id, (_, new) in self.locks.items() if new is not None}}
        locks = {id: one for id, one in locks.items() if self.locks.get(id, (0, one))[1] is not None}
        numbers, scores = self.after
        known = numbers != ABSENT
        moved = state.placed(self.docs[known], numbers[known], scores[known]).without(self.docs[~known])
        levels = self.levels[1] if self.levels[0] != self.levels[1] else state.levels
        return replace(moved, groups=dict(sorted(groups.items())), locks=dict(sorted(locks.items())), levels=levels)

    def packed(self, ids: Mapping[int, str]) -> np.ndarray:
        """Return the change as compressed JSON, uint8; documents by their ids, since a number can be used again."""
        values = {
            "groups": {str(n): [_group(old), _group(new)] for n, (old, new) in self.groups.items()},
            "locks": {id: list(pair) for id, pair in self.locks.items()},
            "levels": [list(names) for names in self.levels],
            "documents": [ids[doc] for doc in self.docs.tolist()],
            "before": _columns(self.before), "after": _columns(self.after),
        }  # fmt: skip
        return zipped(values)

    @classmethod
    def unpacked(cls, data: np.ndarray, find: Callable[[Sequence[str]], Mapping[str, int]]) -> "Change":
        """Return a change from its packed form.

        Args:
            data: uint8, from `packed`.
            find: Returns the numbers of documents by id; those that it does not find are left out.
        """
        values = unzipped(data)
        ids = values["documents"]
        known = find(ids)
        kept = [place for place, id in enumerate(ids) if id in known]
        numbers = np.array([known[ids[place]] for place in kept], np.int64)
        order = np.argsort(numbers, kind="stable")
        rows = np.array(kept, np.int64)[order]
        return cls(
            {int(n): (_from(old), _from(new)) for n, (old, new) in values["groups"].items()},
            {id: (old, new) for id, (old, new) in values["locks"].items()},
            (tuple(values["levels"][0]), tuple(values["levels"][1])),
            numbers[order], _arrays(values["before"], rows), _arrays(values["after"], rows),
        )  # fmt: skip


LARGEST = 2**30
"""Bytes of an unpacked array; a damaged one may claim more."""


def zipped(values: Any) -> np.ndarray:
    """Return JSON values as compressed bytes, uint8."""
    return np.frombuffer(zlib.compress(json.dumps(values, ensure_ascii=False).encode()), np.uint8)


def unzipped(data: np.ndarray) -> Any:
    """Return JSON values from what `zipped` made.

    Raises:
        ValueError: It is something else.
    """
    try:
        return json.loads(zlib.decompressobj().decompress(data.tobytes(), LARGEST))
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _moved(old: State, new: State) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the documents whose group or score differs, and both before and after."""
    docs = np.union1d(old.docs, new.docs)
    before, after = _of(old, docs), _of(new, docs)
    same = (before[0] == after[0]) & ((before[1] == after[1]) | (np.isnan(before[1]) & np.isnan(after[1])))
    (one, first), (two, second) = before, after
    return docs[~same], (one[~same], first[~same]), (two[~same], second[~same])


def _of(state: State, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    numbers, scores = np.full(len(docs), ABSENT), np.full(len(docs), np.nan)
    places = np.searchsorted(docs, state.docs)
    numbers[places], scores[places] = state.numbers, state.scores
    return numbers, scores


def _group(group: Group | None) -> dict[str, Any] | None:
    return group.to_dict() if group else None


def _from(values: dict[str, Any] | None) -> Group | None:
    return Group.from_dict(values) if values else None


def _columns(values: tuple[np.ndarray, np.ndarray]) -> list[list[Any]]:
    numbers, scores = values
    return [numbers.tolist(), [None if score != score else score for score in scores.tolist()]]


def _arrays(columns: list[list[Any]], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.array(columns[0], np.int64)[rows], np.array(columns[1], np.float64)[rows]

"""A taxonomy at one moment: groups, which document is in which, and the documents that are locked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from .groups import NO_GROUP, Group


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

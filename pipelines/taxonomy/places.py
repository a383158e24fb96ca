"""Where documents belong: the means of groups, the nearest one, and how far is too far."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...indexer.store.documents import numbers_by_id
from ...indexer.store.view import View
from ..analysis.corpus import Corpus
from ..analysis.describe import centroids, ids_of
from ..cluster.kmeans import nearest
from .changes import State
from .groups import NO_GROUP, lock_above
from .making import texts_of_ids

STRANGE = 0.01
"""Share of a group's own texts that lie farther from the mean of the others than any text that may join it."""
ENOUGH = 20
"""Texts of a group from which on that distance is its own; smaller groups take that of all texts."""


@dataclass(frozen=True, slots=True)
class Means:
    """The groups that documents can be placed in.

    Attributes:
        numbers: int64 [k], their numbers, ascending.
        vectors: float32 [k, d], their means, of length 1.
        limits: float64 [k], the cosine below which a text is too far from each.
    """

    numbers: np.ndarray
    vectors: np.ndarray
    limits: np.ndarray

    @classmethod
    def of(cls, corpus: Corpus, state: State, numbers: Sequence[int]) -> "Means":
        """Return the means of some groups over their different texts; groups without documents are left out."""
        groups = text_groups(corpus, state)
        known = np.array([number for number in sorted(numbers) if (groups == number).any()], np.int64)
        if not len(known):
            return cls(known, np.zeros((0, corpus.vectors.shape[1]), np.float32), np.zeros(0))
        labels = np.where(np.isin(groups, known), np.searchsorted(known, groups), -1)
        means = centroids(corpus.vectors, labels, len(known))
        return cls(known, means, _limits(corpus.vectors, labels, means))

    def place(self, vectors: np.ndarray, *, far: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return the group of each vector, int64 [n], and its cosine to the mean, float64 [n].

        Args:
            vectors: float32 [n, d], of length 1.
            far: Whether vectors that are too far from every group belong to none (-1).
        """
        if not len(self.numbers):
            return np.full(len(vectors), NO_GROUP), np.full(len(vectors), np.nan)
        rows, cosines = nearest(vectors, self.vectors)
        outside = (cosines < self.limits[rows]) & far
        numbers = np.where(outside, NO_GROUP, self.numbers[rows])
        return numbers, np.where(outside, np.nan, np.round(cosines.astype(np.float64), 6))


def _limits(vectors: np.ndarray, labels: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the quantile of the cosines of each group's texts to the mean of the others, float64 [k]."""
    inside = np.flatnonzero(labels >= 0)
    own = labels[inside]
    sizes = np.bincount(own, minlength=len(means))
    sums = np.zeros(means.shape)
    np.add.at(sums, own, vectors[inside].astype(np.float64))
    others = sums[own] - vectors[inside]
    lengths = np.linalg.norm(others, axis=1)
    cosines = np.einsum("ij,ij->i", vectors[inside], others) / np.where(lengths > 0, lengths, 1)
    cosines = cosines[sizes[own] > 1]
    own = own[sizes[own] > 1]
    whole = float(np.quantile(cosines, STRANGE)) if len(cosines) else -1.0
    found = np.full(len(means), whole)
    for number in np.flatnonzero(sizes >= ENOUGH).tolist():
        found[number] = np.quantile(cosines[own == number], STRANGE)
    return found


def text_groups(corpus: Corpus, state: State) -> np.ndarray:
    """Return the group of each different text, int64 [m]: that of its first document that has one, else -1."""
    places = np.searchsorted(corpus.snapshot.docs, state.docs)
    known = np.flatnonzero(state.numbers != NO_GROUP)[::-1]  # of several documents, the first is written last
    found = np.full(len(corpus.first), NO_GROUP)
    found[corpus.group[places[known]]] = state.numbers[known]
    return found


EXAMPLES = 5
"""Texts that stand for a group."""


def typical_of(view: View, corpus: Corpus, state: State, number: int, mean: np.ndarray) -> tuple[str, ...]:
    """Return the texts of the documents of a group that are nearest to a mean, the nearest first.

    Args:
        view: Of the collection.
        corpus: Documents, those of the group among them.
        state: The taxonomy.
        number: The group.
        mean: float32 [d], of length 1.
    """
    docs = state.members(number)
    rows = corpus.group[np.searchsorted(corpus.snapshot.docs, docs)]
    order = np.lexsort((docs, -(corpus.vectors[rows] @ mean)))
    different = order[np.sort(np.unique(rows[order], return_index=True)[1])][:EXAMPLES]
    return texts_of_ids(view, ids_of(view, docs[different]))


def fixed_documents(view: View, state: State) -> np.ndarray:
    """Return the numbers of the documents that no refit and no update moves: locked, or under a locked group; int64."""
    locked = numbers_by_id(view.catalog, list(state.locks)).values()
    groups = [number for number in state.groups if lock_above(state.groups, number) is not None]
    return np.union1d(np.array(sorted(locked), np.int64), state.docs[np.isin(state.numbers, groups)])

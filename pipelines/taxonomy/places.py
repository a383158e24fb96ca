"""Where documents belong: the nearest group, how far is too far, and places of new documents that lack a group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.store.documents import numbers_by_id
from ...indexer.store.view import View
from ..analysis.appeared import around, find_places
from ..analysis.corpus import Corpus
from ..analysis.describe import centroids, ids_of
from ..analysis.naming.names import embedder, naming_of
from ..analysis.neighbours import sample_rows
from ..analysis.statistics import Batch
from ..cluster.kmeans import nearest
from .changes import State
from .groups import NO_GROUP, Groups, lock_above
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


ALARMS = 0.01
"""The chance that any group is proposed if new documents are like old ones."""
TIMES = 200
"""Permutations that tell what chance does."""
FEWEST = 5
"""Texts of a proposed group, at least."""
SIBLINGS = 20
"""Groups from which the name of a new one must tell it apart: reading the texts of hundreds takes too long."""
MOST = 20_000
"""Old texts, and new ones, that are looked at."""


def new_places(corpus: Corpus, new: np.ndarray, seed: int, notify: Notify = silent) -> list[np.ndarray]:
    """Return the places where new texts lie together and old ones do not, the surest first.

    Args:
        corpus: Old and new documents.
        new: bool [n], which documents are new.
        seed: Of the samples and of the permutations.
        notify: Receives progress.

    Returns:
        For each place the rows of its texts, int64, ascending.
    """
    fresh = np.bincount(corpus.group, weights=new) == corpus.counts
    if fresh.sum() < FEWEST or fresh.all():
        return []
    kept = [np.flatnonzero(part)[sample_rows(int(part.sum()), MOST, seed)] for part in (~fresh, fresh)]
    rows = np.sort(np.concatenate(kept))
    inside = np.isin(corpus.group, rows)
    batch = Batch.of(np.searchsorted(rows, corpus.group[inside]), new[inside])
    places = find_places(batch, around(corpus.vectors[rows], notify), ALARMS, TIMES, seed, notify)
    return [rows[place.rows] for place in places if len(place.rows) >= FEWEST]


def names_for(
    view: View, corpus: Corpus, texts: np.ndarray, groups: Groups, new: Sequence[int], parent: str | None, seed: int,
    notify: Notify = silent,
) -> list[str]:  # fmt: skip
    """Return a name for each new group, unlike the names of the others.

    Args:
        view: Of the collection.
        corpus: Its documents.
        texts: int64 [m], the group of each different text, -1 for none.
        groups: The groups that have names.
        new: Numbers of the groups that need one.
        parent: Name of the group that they are parts of: their names do not repeat its words. None for no such group.
        seed: Of the texts that are read.
        notify: Receives a sentence if the model is not available.
    """
    known = _around(corpus, texts, new)
    texts = np.where(np.isin(texts, known), texts, NO_GROUP)
    labels = np.where(texts == NO_GROUP, -1, np.searchsorted(known, texts))
    kept = {place: groups[number].name for place, number in enumerate(known.tolist()) if number not in new}
    naming = naming_of(view, corpus, labels, len(known), seed, embedder(view.collection, "auto", notify))
    parents = None if parent is None else [(0, parent) if n in new else (1, "") for n in known.tolist()]
    found = naming.or_quoted(naming.choose(kept, parents))
    places = np.searchsorted(known, np.array(new, np.int64)).tolist()
    return _unlike([found[place] or f"group {number}" for place, number in zip(places, new, strict=True)], groups)


def _around(corpus: Corpus, texts: np.ndarray, new: Sequence[int]) -> np.ndarray:
    """Return the new groups and those nearest to them, from which names must tell them apart; int64, ascending."""
    known = np.unique(texts[texts != NO_GROUP])
    means = centroids(corpus.vectors, np.where(texts == NO_GROUP, -1, np.searchsorted(known, texts)), len(known))
    cosines = (means @ means[np.isin(known, new)].T).max(axis=1)
    return np.sort(known[np.lexsort((known, -cosines))[: len(new) + SIBLINGS]])


def _unlike(names: Sequence[str], groups: Groups) -> list[str]:
    """Return the names with a number after those that are taken."""
    taken, found = {group.name for group in groups.values()}, []
    for name in names:
        free = next(one for one in (name, *(f"{name} ({n})" for n in range(2, 10_000))) if one not in taken)
        taken.add(free)
        found.append(free)
    return found

"""Groups that the taxonomy lacks: places where only new documents lie, and names for new groups."""

from collections.abc import Sequence

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.store.view import View
from ..analysis.appeared import around, find_places
from ..analysis.corpus import Corpus
from ..analysis.describe import centroids
from ..analysis.naming.corpus import embedder, naming_of
from ..analysis.neighbours import sample_rows
from ..analysis.statistics import Batch
from .groups import NO_GROUP, Groups

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

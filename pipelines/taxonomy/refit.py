"""Learning the groups of a taxonomy again, around what people have locked.

Spherical k-means in which some texts never move (constrained k-means: Basu, Banerjee and Mooney, ICML 2002), and the
others move only if another group is clearly nearer. The groups that come out are matched with the old ones by the texts
that they share (Kuhn, Naval Research Logistics Quarterly 2, 1955), and keep their numbers.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError, out_of_range
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.view import View
from ..analysis.corpus import Corpus
from ..analysis.describe import centroids
from ..cluster.kmeans import fit_kmeans, nearest
from .changes import State
from .groups import NO_GROUP
from .places import Means, new_places, text_groups
from .update import Prepared, TaxonomyUpdate, finish, joinable, place_new, prepare, with_proposals

ROUNDS = 25
STAY = 0.1
"""How much higher its cosine to another group must be for a text to move.

A person's groups are not those of k-means. Where a fifth of the texts was put into wrong groups on purpose, plain
k-means came back to NMI 0.72 on stackoverflow, 0.84 on banking77 and 0.68 on newsgroups20; with this inertia to 0.86,
0.92 and 0.83. Where all were right, it kept 0.90, 0.95 and 0.89, plain k-means 0.72, 0.84 and 0.68.
"""


def refit(
    collection: StoredCollection, name: str | None = None, *, k: int | None = None, by: str | None = None,
    seed: int = 0, notify: Notify = silent,
) -> TaxonomyUpdate:  # fmt: skip
    """Learn the groups of a taxonomy again from all documents, around the locked ones.

    Locked documents, the documents of locked groups, and those that match a rule stay. The others go to the group that
    they are nearest to, until nothing moves. New documents become proposed groups as in an update.

    Args:
        collection: Where the taxonomy is.
        name: Its name; the newest one if None.
        k: How many groups to learn; as many as have documents if None. With another number, groups are learned from
            scratch and matched with the old ones; those that match none are proposed.
        by: Who does it; the user of this process if None.
        seed: Of the samples and the first means.
        notify: Receives progress.

    Raises:
        UsageError: k is below 1, or larger than the number of different texts.
        SondeError: There is no such taxonomy, it was edited in the meantime, or another process is writing.
        MissingExtraError: SciPy is not installed.
    """
    _assignment()  # a missing library is reported before the work
    with collection.view() as view:
        ready = prepare(view, name)
        outside = ready.state.docs[ready.state.numbers == NO_GROUP]
        ready = replace(ready, leaving=np.union1d(ready.leaving, np.setdiff1d(outside, ready.fixed)))
        _check_k(k, len(ready.corpus.vectors))
        new = np.isin(ready.corpus.snapshot.docs, ready.new)
        notify("looking for new groups")
        places = new_places(ready.corpus, new, seed, notify) if k is None else []
        state = place_new(view, ready, joinable(ready), places, seed, notify)
        notify("learning the groups")
        state = _learned(view, ready, state, k, seed, notify)
    return finish(collection, ready, state, "refit", by)


def _check_k(k: int | None, texts: int) -> None:
    if k is not None and not 1 <= k <= texts:
        raise out_of_range("k", k, f"give 1 to {texts:,}, the number of different texts")


def _learned(view: View, ready: Prepared, state: State, k: int | None, seed: int, notify: Notify) -> State:
    """Return a state whose free documents are in groups that were learned again."""
    corpus, known = ready.corpus, text_groups(ready.corpus, state)
    held = [number for number, group in state.groups.items() if group.rule]
    texts = np.where(np.isin(known, held), NO_GROUP, known)
    numbers = np.unique(texts[texts != NO_GROUP])
    free = _free(ready, texts, held, known)
    if not len(numbers) or not free.any():
        return state
    labels = np.where(texts == NO_GROUP, -1, np.searchsorted(numbers, texts))
    if k is None:
        learned, count = _moved(corpus.vectors, labels, free, centroids(corpus.vectors, labels, len(numbers)))
    else:
        fresh = fit_kmeans(corpus.vectors[free], min(k, int(free.sum())), seed)
        learned, count = np.full(len(labels), -1), len(fresh.centroids)
        learned[free] = fresh.labels
    to = matched(learned, labels, count, len(numbers))
    first = max(ready.stored.next, 1 + max(state.groups))
    fresh_numbers = {place: first + n for n, place in enumerate(np.flatnonzero(to < 0).tolist())}
    leads = np.array([fresh_numbers.get(place, int(numbers[one])) for place, one in enumerate(to.tolist())], np.int64)
    found = _placed(corpus, state, free, np.where(learned < 0, NO_GROUP, leads[learned]))
    if not fresh_numbers:
        return found
    own = centroids(corpus.vectors, np.where(free, np.where(learned < 0, -1, to_places(to)[learned]), -1),
                    len(fresh_numbers))  # fmt: skip
    means = Means.of(corpus, state, numbers.tolist())
    return with_proposals(view, ready, found, means, own, first, seed, notify)


def to_places(to: np.ndarray) -> np.ndarray:
    """Return int64: the place among the unmatched ones of each cluster, -1 for those that are matched."""
    found = np.full(len(to), -1)
    found[to < 0] = np.arange(int((to < 0).sum()))
    return found


def _free(ready: Prepared, texts: np.ndarray, held: list[int], known: np.ndarray) -> np.ndarray:
    """Return bool [m], which texts may move: those in a group that no lock and no rule holds there."""
    corpus = ready.corpus
    fixed = np.zeros(len(texts), bool)
    fixed[corpus.group[np.isin(corpus.snapshot.docs, ready.fixed)]] = True
    return ~fixed & (texts != NO_GROUP) & ~np.isin(known, held)


def _moved(vectors: np.ndarray, labels: np.ndarray, free: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the labels that k-means reaches, int64 [m], if only the free texts move, and the number of groups."""
    found = labels.copy()
    for _ in range(ROUNDS):
        own = np.einsum("ij,ij->i", vectors[free], means[found[free]])
        best, cosines = nearest(vectors[free], means)
        now = np.where(cosines > own + STAY, best, found[free])
        if (now == found[free]).all():
            break
        found[free] = now
        again = centroids(vectors, found, len(means))
        means = np.where((again != 0).any(axis=1)[:, None], again, means)
    return found, len(means)


def matched(learned: np.ndarray, old: np.ndarray, clusters: int, groups: int) -> np.ndarray:
    """Return the old group of each learned one, int64 [clusters], -1 for none: they share the most texts in all.

    Args:
        learned: int64 [n], the learned group of each text, -1 for none.
        old: int64 [n], the group that it was in, -1 for none.
        clusters: How many groups were learned.
        groups: How many there were.
    """
    shared = np.zeros((clusters, groups))
    both = (learned >= 0) & (old >= 0)
    np.add.at(shared, (learned[both], old[both]), 1)
    rows, columns = _assignment()(-shared)
    found = np.full(clusters, -1)
    real = shared[rows, columns] > 0
    found[rows[real]] = columns[real]
    return found


def _assignment() -> Any:
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError as error:
        raise MissingExtraError("SciPy", "cluster", "refitting a taxonomy") from error
    return linear_sum_assignment


def _placed(corpus: Corpus, state: State, free: np.ndarray, texts: np.ndarray) -> State:
    """Return a state in which the documents of the free texts are in the groups of their texts, with new scores."""
    inside = free[corpus.group]
    docs, rows = corpus.snapshot.docs[inside], corpus.group[inside]
    numbers = texts[rows]
    every = np.unique(numbers[numbers != NO_GROUP])
    group = np.where(texts == NO_GROUP, -1, np.searchsorted(every, texts))
    means = centroids(corpus.vectors, np.where(free, group, -1), len(every))
    own = means[np.searchsorted(every, numbers).clip(max=len(every) - 1)]
    cosines = np.einsum("ij,ij->i", corpus.vectors[rows], own).astype(np.float64)
    same = np.isin(docs, state.docs)
    state = state.placed(docs[same], numbers[same], np.round(np.where(numbers == NO_GROUP, np.nan, cosines), 6)[same])
    return replace(state, groups=dict(sorted(state.groups.items())))

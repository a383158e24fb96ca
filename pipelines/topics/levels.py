"""Nested levels of groups: the suggested one, finer groups inside its groups, coarser ones made of them; their runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.store.kinds import LEVELS, RunKind
from ...indexer.store.run_writing import NewRun
from ...indexer.store.runs import Item, Run, list_runs
from ...indexer.store.view import View
from ..analysis.corpus import Corpus
from ..analysis.describe import OUTLIERS, centroids
from ..analysis.naming.names import report_of
from ..analysis.neighbours import one_thread
from ..cluster.choice import FEW
from ..cluster.kmeans import fit_kmeans, nearest
from .grain import Contest, Suggestion
from .items import Before, topic_items
from .layers import evoc_layers
from .model import OUTLIER, Assigned, TopicModel

COARSE = (5, 12)
"""Groups of the coarse level, where the suggested one has more. Otherwise the suggested level is the coarse one; if it
has two to four groups, the middle level has 5 to 12. Two or three groups tell a reader little, so the middle level is
then the suggested one."""
FINER = 1.5
"""A finer level has at least this many times the groups of the one above it."""
LEAST = 5
"""Fewest fitted texts of a fine group: as in EVoC's finest layer."""


@dataclass(frozen=True, slots=True)
class Nested:
    """Groups of vectors at three levels.

    Attributes:
        leaves: int64 [n], the fine group of each vector.
        levels: int64 [3, leaves], the coarse, the middle and the fine group of each leaf, numbered from 0. Levels may
            be equal where there are few groups.
        suggested: 0, 1 or 2: which level is suggested.
        why: How it was chosen.
    """

    leaves: np.ndarray
    levels: np.ndarray
    suggested: int
    why: Suggestion

    @property
    def parents(self) -> np.ndarray:
        """int64 [leaves]: the suggested group of each leaf."""
        return self.levels[self.suggested]

    def report(self) -> dict[str, Any]:
        """Return JSON values for the report of a run."""
        return self.why.to_dict()


def nested_levels(vectors: np.ndarray, seed: int, notify: Notify = silent) -> Nested:
    """Group float32 [n, d] vectors of length 1, all different, at three nested levels.

    The suggested level is the one that wins the contest of EVoC's layers and KMeans, unless that has two or three
    groups and the middle level at least five. A group of EVoC's finest layer
    becomes a fine group inside the suggested group that holds most of it. Coarser groups are suggested groups, put
    together.

    Raises:
        MissingExtraError: EVoC is not installed.
    """
    notify("looking for groups of all sizes (the first run after installing compiles code, which takes a few minutes)")
    contest = Contest(vectors, evoc_layers(vectors, seed), seed, notify)
    why = contest.suggest()
    winner = contest.winner(why.grain)
    labels, count = _numbered(winner.labels)
    leaves, parents = _leaves(contest, labels)
    if len(parents) < FINER * count:
        leaves, parents = labels, np.arange(count)
    levels, suggested = _levels(contest, leaves, parents, count)
    if suggested == 0 and count <= FEW and levels[1].max() >= COARSE[0] - 1:
        grain = contest.grain(levels[1][leaves])
        suggested, why = 1, Suggestion(grain, grain.k, grain.k)
    return Nested(leaves, levels, suggested, why)


def _leaves(contest: Contest, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the fine group of each vector, int64 [n], and the suggested group of each fine one, int64 [leaves]."""
    if not contest.layers:
        return labels, np.arange(int(labels.max()) + 1)
    return refined(contest.vectors, labels, contest.layers[0].means, LEAST)


def _levels(contest: Contest, leaves: np.ndarray, parents: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    """Return int64 [3, leaves] groups by level, and which level is the suggested one."""
    fine = np.arange(len(parents))
    if count <= COARSE[1]:
        return np.stack([parents, _between(contest, leaves, parents, count), fine]), 0
    if len(parents) > count:
        coarse = _merged(contest, parents[leaves], count, COARSE)
        return np.stack([coarse[parents], parents, fine]), 1
    most = int(count / FINER)
    middle = _merged(contest, leaves, count, (COARSE[1] + 1, most)) if most > COARSE[1] else fine
    kept = int(middle.max()) + 1
    coarse = _merged(contest, middle[leaves], kept, COARSE)
    return np.stack([coarse[middle], middle, fine]), 2


def refined(vectors: np.ndarray, labels: np.ndarray, means: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Split groups into parts, none of which reaches into another group.

    A mean belongs to the group that holds most of the vectors nearest to it. Each vector goes to the nearest mean of
    its own group. Parts with too few vectors are given up, the smallest first.

    Args:
        vectors: float32 [n, d], of length 1.
        labels: int64 [n], the group of each, numbered from 0 without a gap.
        means: float32 [m, d], of length 1: around which parts may form.
        least: Fewest vectors of a part, unless it is the only one of its group.

    Returns:
        int64 [n], the part of each vector, and int64 [parts], the group of each part.
    """
    with one_thread():
        close = nearest(vectors, means)[0]
        votes = np.zeros((len(means), int(labels.max()) + 1), np.int64)
        np.add.at(votes, (close, labels), 1)
        home = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
        parts, groups = np.empty(len(vectors), np.int64), []
        for group in range(votes.shape[1]):
            rows = np.flatnonzero(labels == group)
            found = _parts(vectors[rows], means[home == group], least)
            parts[rows] = found + len(groups)
            groups += [group] * (int(found.max(initial=0)) + 1)
    return parts, np.array(groups, np.int64)


def _parts(vectors: np.ndarray, means: np.ndarray, least: int) -> np.ndarray:
    while len(means) > 1:
        labels = nearest(vectors, means)[0]
        sizes = np.bincount(labels, minlength=len(means))
        if sizes.min() >= least:
            return labels
        means = np.delete(means, int(sizes.argmin()), axis=0)
    return np.zeros(len(vectors), np.int64)


def _between(contest: Contest, leaves: np.ndarray, parents: np.ndarray, count: int) -> np.ndarray:
    """Return int64 [leaves]: groups of leaves, of which each lies in one suggested group; the best of those tried."""
    low, high = FINER * count, len(parents) / FINER
    if low > high:
        return np.arange(len(parents))
    if count < COARSE[0]:  # so few groups that this level is as coarse as the coarse one of others
        high = min(high, COARSE[1])
        low = min(max(low, COARSE[0]), high)
    elif high > COARSE[1]:
        low = max(low, COARSE[1] + 1)
    directions = centroids(contest.vectors, leaves, len(parents))
    k = int(np.clip(round((count * len(parents)) ** 0.5), np.ceil(low), high))
    tried = [layer.means for layer in contest.layers if low <= layer.k <= high]
    tried.append(fit_kmeans(contest.vectors, k, contest.seed).centroids)
    with one_thread():
        found = [refined(directions, parents, means, 1)[0] for means in tried]
    return max(found, key=lambda groups: _score(contest, groups[leaves]))


def _merged(contest: Contest, labels: np.ndarray, count: int, wanted: tuple[int, int]) -> np.ndarray:
    """Put groups together, so that there are as many as wanted: the best of those tried.

    Args:
        contest: What competes, and its vectors.
        labels: int64 [n], the group of each vector.
        count: Of groups; more than the wanted ones.
        wanted: The fewest and the most groups.

    Returns:
        int64 [count], the larger group of each.
    """
    low, high = wanted
    grains = [grain for grain in contest.grains if low <= grain.k <= high]
    best = max(grains, key=lambda grain: grain.score, default=None)
    k = best.k if best else high
    others = [layer.labels(contest.vectors) for layer in contest.layers if low <= layer.k <= high]
    others.append(fit_kmeans(contest.vectors, k, contest.seed).labels)
    found = [_by_vote(labels, count, other) for other in others]
    found.append(_by_tree(centroids(contest.vectors, labels, count), k))
    fitting = [groups for groups in found if low <= int(groups.max()) + 1 <= high] or found[-1:]
    return max(fitting, key=lambda groups: _score(contest, groups[labels]))


def _by_vote(labels: np.ndarray, count: int, other: np.ndarray) -> np.ndarray:
    votes = np.zeros((count, int(other.max()) + 1), np.int64)
    np.add.at(votes, (labels, other), 1)
    return np.unique(votes.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def _by_tree(means: np.ndarray, k: int) -> np.ndarray:
    from scipy.cluster.hierarchy import fcluster, linkage

    with one_thread():
        tree = linkage(means.astype(np.float64), "ward")
    return np.unique(fcluster(tree, k, "maxclust"), return_inverse=True)[1].astype(np.int64)


def _score(contest: Contest, labels: np.ndarray) -> float:
    return round(contest.grain(labels).score, 6)


def _numbered(labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Return labels numbered from 0 without a gap, and how many there are."""
    numbers, found = np.unique(labels, return_inverse=True)
    return found.astype(np.int64), len(numbers)


def parts_of(view: View, run: Run) -> dict[RunKind, Run]:
    """Return the levels of a topic run by kind; none for a run of one level."""
    return {kind: part for kind in LEVELS for part in list_runs(view.catalog, kind, count=False)
            if part.name == run.name}  # fmt: skip


def at_level(model: TopicModel, level: int) -> TopicModel:
    """Return a model with levels whose topics are the groups of one of them."""
    assert model.levels is not None
    return replace(model, groups=model.levels.at(level))


def level_runs(
    view: View, corpus: Corpus, whole: NewRun, model: TopicModel, assigned: Assigned,
    before: Mapping[RunKind, Sequence[Item]], notify: Notify = silent,
) -> list[NewRun]:  # fmt: skip
    """Return one run for each level of a model, and none for a model of one level.

    The items have the data of topics and, but for the coarsest, `parent`: the number of their group one level above.

    Args:
        view: Of the collection.
        corpus: Its documents.
        whole: The topic run that the levels are parts of.
        model: Its model.
        assigned: Where the corpus's vectors belong.
        before: The items that the levels had, so that they keep their names.
        notify: Receives progress.
    """
    found: list[NewRun] = []
    named = {tuple(item.data["leaves"]): item for item in whole.items if item.number != OUTLIER}
    for level, kind in enumerate(LEVELS if model.levels else ()):
        own = at_level(model, level)
        outside = assigned.topics == OUTLIER
        topics = np.where(outside, OUTLIER, own.topic_of_leaf[assigned.leaves])
        known = {number: named[leaves] for number, leaves in own.groups.items() if leaves in named}
        known |= {item.number: item for item in before.get(kind, ()) if item.number != OUTLIER}
        notify(f"naming the groups of the {kind} level")
        same = replace(assigned, topics=topics)
        parents = _parents(own, model, level, found[-1].items if found else ())
        told = Before(known, taken=_names_inside(own, model, level, named))
        items, accuracy = topic_items(view, corpus, own, same, whole.parameters, told, notify, parents)
        named |= {tuple(item.data["leaves"]): item for item in items}
        items = [_with_parent(item, model, level) for item in items]
        if outside.any():
            items = [Item(OUTLIER, OUTLIERS, {"size": int(outside[corpus.group].sum())}), *items]
        group = corpus.group
        report = {"documents": len(group), "topics": len(own.groups), "of": "topic"}
        report |= report_of(accuracy) if accuracy else {}
        found.append(NewRun(
            kind, whole.name, whole.parameters, whole.libraries, report, items=items,
            assignments=(corpus.snapshot.docs, topics[group], assigned.cosines[group]),
        ))  # fmt: skip
    return found


def _names_inside(
    own: TopicModel, model: TopicModel, level: int, named: Mapping[tuple[int, ...], Item]
) -> frozenset[str]:
    """Return the names of the suggested groups, for the levels above them: those were named first."""
    if model.levels is None or level >= model.levels.suggested:
        return frozenset()
    whole = set(own.groups.values())
    return frozenset(item.name for leaves, item in named.items() if leaves not in whole)


def _parents(
    own: TopicModel, model: TopicModel, level: int, above: Sequence[Item]
) -> dict[int, tuple[int, str]] | None:
    """Return the number and name of the group one level above each group; None at the coarsest level."""
    if level == 0 or model.levels is None:
        return None
    groups, names = model.levels.groups[level - 1], {item.number: item.name for item in above}
    numbers = {topic: int(groups[leaves[0]]) for topic, leaves in own.groups.items()}
    return {topic: (number, names[number]) for topic, number in numbers.items()}


def _with_parent(item: Item, model: TopicModel, level: int) -> Item:
    if level == 0 or model.levels is None:
        return item
    parent = int(model.levels.groups[level - 1][item.data["leaves"][0]])
    return Item(item.number, item.name, {**item.data, "parent": parent})

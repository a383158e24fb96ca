"""A topic model as arrays: directions in the space of vectors, and groups of them that are the topics.

The dense groups that BERTopic finds are the model's leaves. A leaf's vector is the mean of its texts', and every text,
new or old, belongs to the leaf whose vector is nearest: so asking again gives the same answer, and nothing has to be
fitted for a new text. A topic is a leaf, or several that were merged; the tree tells which are alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...indexer.errors import SondeError, UsageError, arg
from ...indexer.store.kinds import LEVELS
from ...indexer.store.view import normalized
from ...indexer.wording import existing
from ..analysis.describe import centroids
from ..analysis.neighbours import neighbours, one_thread
from ..analysis.terms import Counts, Weighted, terms_of

OUTLIER = -1
CORE = 0.05
"""A text is an outlier whose cosine to its leaf is below that of all but this share of the texts that made it."""
WARMTH = 0.05
"""Probabilities are the softmax of the cosines over this: one higher by 0.05 makes a topic e times as probable."""
BLOCK = 8_192


@dataclass(frozen=True)
class Assigned:
    """Where texts belong.

    Attributes:
        topics: int64 [n], -1 for outliers.
        cosines: float64 [n], to the vector of the nearest leaf, -1 to 1; NaN where there is no topic at all.
        probabilities: float64 [n], of the topic that is nearest, 0 to 1.
        leaves: int64 [n], the nearest leaf, also of outliers; -1 where there is none.
    """

    topics: np.ndarray
    cosines: np.ndarray
    probabilities: np.ndarray
    leaves: np.ndarray


@dataclass(frozen=True)
class Levels:
    """Leaves put together at nested levels, and the means by which a text finds its suggested group.

    Attributes:
        groups: int64 [3, leaves], the coarse, the middle and the fine group of each leaf, numbered from 0.
        suggested: 0, 1 or 2: which level is suggested.
        means: float32 [k, d], of length 1: of the suggested groups. A text belongs to the suggested group whose mean
            is nearest, and then to the nearest leaf of that group.
    """

    groups: np.ndarray
    suggested: int
    means: np.ndarray

    def at(self, level: int) -> dict[int, tuple[int, ...]]:
        """Return the leaves of each group of a level."""
        row = self.groups[level]
        return {number: tuple(np.flatnonzero(row == number).tolist()) for number in range(int(row.max(initial=-1)) + 1)}

    def sizes(self) -> dict[str, int]:
        """Return how many groups each level has, by its name, the coarsest first."""
        return {str(kind): int(row.max(initial=-1)) + 1 for kind, row in zip(LEVELS, self.groups, strict=True)}


def nearest_leaf(vectors: np.ndarray, leaves: np.ndarray, levels: Levels | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the leaf of each vector, int64 [n], and its cosine, float64 [n]: within the suggested group, if any are.

    Args:
        vectors: float32 [n, d], of length 1.
        leaves: float32 [leaves, d], of length 1; at least one.
        levels: Of the leaves.
    """
    if levels is None or len(levels.means) < 2:
        rows, cosines = neighbours(vectors, leaves, 1)
        return rows[:, 0], cosines[:, 0].astype(np.float64)
    group = neighbours(vectors, levels.means, 1)[0][:, 0]
    found, closeness = np.empty(len(vectors), np.int64), np.empty(len(vectors), np.float64)
    for number, own in levels.at(levels.suggested).items():
        rows = np.flatnonzero(group == number)
        places, cosines = neighbours(vectors[rows], leaves[list(own)], 1)
        found[rows], closeness[rows] = np.array(own)[places[:, 0]], cosines[:, 0]
    return found, closeness


@dataclass(frozen=True)
class TopicModel:
    """What is needed to tell the topic of any vector.

    Attributes:
        vectors: float32 [leaves, d], of length 1.
        thresholds: float32 [leaves], cosines below which a text is an outlier; -2 where none is.
        counts: Words by leaf.
        tree: float64 [leaves - 1, 4], as SciPy has it: which nodes join, at which distance.
        groups: The leaves of each topic.
        levels: Groups of leaves at nested levels; None for a model of one level.
    """

    vectors: np.ndarray
    thresholds: np.ndarray
    counts: Counts
    tree: np.ndarray
    groups: dict[int, tuple[int, ...]]
    levels: Levels | None = None

    @classmethod
    def of(
        cls, vectors: np.ndarray, thresholds: np.ndarray, counts: Counts, levels: Levels | None = None
    ) -> "TopicModel":
        """Return a model of which every leaf is a topic, or every suggested group."""
        groups = {leaf: (leaf,) for leaf in range(len(vectors))}
        if levels is None:
            return cls(vectors, thresholds, counts, _tree(vectors), groups)
        tree = _tree(vectors, levels.groups)
        return cls(vectors, thresholds, counts, tree, levels.at(levels.suggested), levels)

    def assign(self, vectors: np.ndarray) -> Assigned:
        """Return where vectors belong, float32 [n, d] of length 1; the same in whatever company they come."""
        count = len(vectors)
        if not len(self.vectors):
            nowhere = np.full(count, OUTLIER, np.int64)
            return Assigned(nowhere, np.full(count, np.nan), np.zeros(count), nowhere)
        leaves, nearest = nearest_leaf(vectors, self.vectors, self.levels)
        topics = np.where(nearest < self.thresholds[leaves], OUTLIER, self.topic_of_leaf[leaves])
        return Assigned(topics, nearest, self._probabilities(vectors, leaves), leaves)

    @property
    def topic_of_leaf(self) -> np.ndarray:
        """int64 [leaves]: the topic that each leaf belongs to."""
        found = np.full(len(self.vectors), OUTLIER, np.int64)
        for topic, leaves in self.groups.items():
            found[list(leaves)] = topic
        return found

    def _probabilities(self, vectors: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        topics = self.topic_of_leaf
        found = np.empty(len(vectors))
        with one_thread():
            for start in range(0, len(vectors), BLOCK):
                some = slice(start, start + BLOCK)
                weights = np.exp((vectors[some] @ self.vectors.T).astype(np.float64) / WARMTH)
                own = topics[leaves[some]][:, None] == topics
                found[some] = (weights * own).sum(axis=1) / weights.sum(axis=1)
        return np.round(found, 4)

    def topic_vectors(self) -> np.ndarray:
        """Return float32 [topics, d] of length 1, in the order of `groups`: the mean of each topic's leaves."""
        means = [self.vectors[list(leaves)].mean(axis=0) for leaves in self.groups.values()]
        return normalized(np.array(means, np.float32).reshape(-1, self.vectors.shape[1]))

    def terms(self) -> list[Weighted]:
        """Return the distinctive terms of each topic, in the order of `groups`."""
        order = {topic: place for place, topic in enumerate(self.groups)}
        places = np.array([order[topic] for topic in self.topic_of_leaf.tolist()], np.int64)
        return terms_of(self.counts, places, len(order))

    def cut(self, count: int) -> "TopicModel":
        """Return the model with `count` topics, or as many as it has leaves: the tree cut at that level.

        A topic that stays the same keeps its number; one that was merged or split takes the lowest of its leaves'
        topics that is free.
        """
        return self.regrouped(_cut(self.tree, len(self.vectors), count))

    def regrouped(self, groups: Sequence[Sequence[int]]) -> "TopicModel":
        """Return the model with other groups of leaves, numbered like the topics that they come from."""
        before, taken, numbered = self.topic_of_leaf, set(), {}
        for group in sorted(groups, key=lambda group: (-len(group), min(group))):
            shared = sorted({int(before[leaf]) for leaf in group} - taken)
            if shared:
                numbered[shared[0]] = tuple(sorted(group))
                taken.add(shared[0])
            else:
                numbered[-2 - len(numbered)] = tuple(sorted(group))
        fresh = iter(
            number for number in range(len(self.vectors) * 2 + max(taken, default=0) + 1) if number not in taken
        )
        named = {number if number >= 0 else next(fresh): leaves for number, leaves in numbered.items()}
        return replace(self, groups=dict(sorted(named.items())))

    def merge(self, topics: Sequence[int]) -> "TopicModel":
        """Return the model with these topics made one, under the first one's number.

        Raises:
            SondeError: One of them does not exist.
            UsageError: They are fewer than two.
        """
        chosen = list(dict.fromkeys(topics))
        if len(chosen) < 2:
            raise UsageError("merging needs the numbers of two topics or more", code="too-few", field="merge")
        for topic in chosen:
            self.check(topic)
        merged = tuple(sorted(leaf for topic in chosen for leaf in self.groups[topic]))
        groups = {topic: leaves for topic, leaves in self.groups.items() if topic not in chosen}
        return replace(self, groups=dict(sorted((groups | {chosen[0]: merged}).items())))

    def split(self, topic: int) -> "TopicModel":
        """Return the model with a merged topic in two, as the tree has it; the first part keeps the number.

        Raises:
            SondeError: There is no such topic, or it is a single leaf.
        """
        self.check(topic)
        leaves = self.groups[topic]
        if len(leaves) < 2:
            raise SondeError(
                f"topic {topic} is a single dense group and cannot be split: fit again with a smaller {arg('min_size')}"
            )
        first, second = _halves(self.tree, len(self.vectors), leaves)
        groups = self.groups | {topic: first, max(self.groups) + 1: second}
        return replace(self, groups=dict(sorted(groups.items())))

    def check(self, topic: int) -> None:
        """Check that a topic exists.

        Raises:
            SondeError: It does not; the message names those that do.
        """
        if topic not in self.groups:
            said = f"there is no topic {topic}: {existing(self.groups)}"
            raise SondeError(said, code="not-found", field="topic", value=topic, alternatives=self.groups)


def leaves_of(
    vectors: np.ndarray, labels: np.ndarray, with_outliers: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leaves of dense groups, the largest first, without those that no text is nearest to.

    Args:
        vectors: float32 [n, d], of length 1.
        labels: int64 [n], the dense group of each, -1 for none.
        with_outliers: Whether texts far from every leaf are outliers.

    Returns:
        float32 [leaves, d] vectors, float32 [leaves] thresholds, and int64 [leaves], the group that each leaf comes
        from.
    """
    groups = np.arange(labels.max(initial=-1) + 1)
    means = [vectors[labels == group].mean(axis=0, dtype=np.float64) for group in groups]
    found = normalized(np.array(means).reshape(len(groups), vectors.shape[1])).astype(np.float32)
    while len(groups):
        rows, _ = neighbours(vectors, found, 1)
        sizes = np.bincount(rows[:, 0], minlength=len(groups))
        if sizes.all():
            order = np.lexsort((groups, -sizes))
            groups, found = groups[order], found[order]
            break
        groups, found = groups[sizes > 0], found[sizes > 0]
    return found, _thresholds(vectors, labels, found, groups, with_outliers), groups


def _thresholds(
    vectors: np.ndarray, labels: np.ndarray, found: np.ndarray, groups: np.ndarray, with_outliers: bool
) -> np.ndarray:
    thresholds = np.full(len(groups), -2.0, np.float32)
    if with_outliers:
        for leaf, group in enumerate(groups):
            thresholds[leaf] = np.quantile(vectors[labels == group] @ found[leaf], CORE) - 1e-6
    return thresholds


def nested_leaves(
    vectors: np.ndarray, labels: np.ndarray, groups: np.ndarray, suggested: int, with_outliers: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Levels]:
    """Return the leaves of nested groups, without those that no text is nearest to.

    Args:
        vectors: float32 [n, d], of length 1.
        labels: int64 [n], the fine group of each.
        groups: int64 [3, fine], the group of each fine one at each level.
        suggested: Which level is suggested.
        with_outliers: Whether texts far from every leaf are outliers.

    Returns:
        float32 [leaves, d] vectors, float32 [leaves] thresholds, int64 [leaves], the fine group that each leaf comes
        from, and the levels. At each level, the largest group has the number 0.
    """
    fine = np.arange(groups.shape[1])
    found = centroids(vectors, labels, len(fine))
    while True:
        levels = Levels(_renumbered(groups[:, fine]), suggested, np.zeros((0, vectors.shape[1]), np.float32))
        own = np.isin(labels, fine)
        parents = levels.groups[suggested][np.searchsorted(fine, labels[own])]
        means = centroids(vectors[own], parents, int(parents.max()) + 1)
        levels = replace(levels, means=means)
        leaves, _ = nearest_leaf(vectors, found, levels)
        sizes = np.bincount(leaves, minlength=len(fine))
        if sizes.all():
            break
        fine, found = fine[sizes > 0], found[sizes > 0]
    rows = [_by_size(row, sizes) for row in levels.groups]
    order = np.lexsort((fine, -sizes))
    places = np.argsort(rows[suggested][np.unique(levels.groups[suggested], return_index=True)[1]])
    levels = Levels(np.stack(rows)[:, order], suggested, means[places])
    fine, found = fine[order], found[order]
    return found, _thresholds(vectors, labels, found, fine, with_outliers), fine, levels


def _renumbered(groups: np.ndarray) -> np.ndarray:
    """Return each row of int64 [levels, leaves] numbered from 0 without a gap."""
    return np.stack([np.unique(row, return_inverse=True)[1] for row in groups]).astype(np.int64)


def _by_size(row: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return int64 [leaves] groups numbered by size, the largest first, given the size of each leaf."""
    totals = np.bincount(row, weights=sizes)
    numbers = np.empty(len(totals), np.int64)
    numbers[np.lexsort((np.arange(len(totals)), -totals))] = np.arange(len(totals))
    return numbers[row]


APART = 4.0
"""Added to the distance of two leaves for each level that parts them: more than any cosine distance, so groups of a
level join only when they are whole."""


def _tree(vectors: np.ndarray, levels: np.ndarray | None = None) -> np.ndarray:
    """Join the two nodes whose leaves have the smallest mean cosine distance, until there is one.

    With levels, int64 [levels, leaves], the leaves of a group join each other before they join those of other groups.
    """
    if len(vectors) < 2:
        return np.zeros((0, 4))
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    with one_thread():
        distances = np.round(np.maximum(1 - vectors.astype(np.float64) @ vectors.T.astype(np.float64), 0), 6)
    distances = (distances + distances.T) / 2
    for row in levels if levels is not None else ():
        distances += APART * (row[:, None] != row)
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform(distances, checks=False), "average")
    if levels is not None:  # a tree is drawn with heights that rise
        tree[:, 2] = np.maximum.accumulate(np.round(np.round(tree[:, 2], 6) % APART, 6))
    return tree


def nodes(tree: np.ndarray, leaves: int) -> list[tuple[int, ...]]:
    """Return the leaves below each node: first the leaves themselves, then the inner nodes in the order of the tree."""
    found: list[tuple[int, ...]] = [(leaf,) for leaf in range(leaves)]
    for one, other in tree[:, :2].astype(int).tolist():
        found.append(tuple(sorted((*found[one], *found[other]))))
    return found


def _cut(tree: np.ndarray, leaves: int, count: int) -> list[tuple[int, ...]]:
    below = nodes(tree, leaves)
    open_nodes = set(range(leaves))
    for step in range(max(0, leaves - max(count, 1))):
        open_nodes -= set(tree[step, :2].astype(int).tolist())
        open_nodes.add(leaves + step)
    return [below[node] for node in sorted(open_nodes)]


def _halves(tree: np.ndarray, count: int, leaves: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Part leaves at the lowest node that has both, or at the highest that parts them."""
    wanted, below = set(leaves), nodes(tree, count)
    for one, other in reversed(tree[:, :2].astype(int).tolist()):
        first, second = wanted & set(below[one]), wanted & set(below[other])
        if first and second:
            parts = sorted((tuple(sorted(first)), tuple(sorted(wanted - first))), key=lambda part: (-len(part), part))
            return parts[0], parts[1]
    raise AssertionError("a tree joins all leaves")

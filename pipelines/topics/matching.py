"""Numbers that stay: the topics of a run made anew are matched with those of the run before it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .model import OUTLIER, TopicModel

LEAST = 0.1
"""Two topics are the same only if they share this much of their common documents (Jaccard), or,"""
ALIKE = 0.9
"""where they have none in common, if the cosine of their vectors is at least this."""


def matched(
    new: TopicModel, new_topics: np.ndarray, old: TopicModel, old_topics: np.ndarray
) -> tuple[TopicModel, dict[int, int]]:
    """Number the topics of a model like those of an older one.

    The assignment is the one of the largest total overlap and similarity (Kuhn, Naval Research Logistics Quarterly 2,
    1955).

    Args:
        new: The model to be numbered.
        new_topics: int64 [n], its topics of the documents that both know.
        old: The model before it.
        old_topics: int64 [n], its topics of the same documents.

    Returns:
        The model with other numbers, and which of them are matched: the old number by the new model's own. A topic
        that is new gets a number above all old ones.
    """
    from scipy.optimize import linear_sum_assignment

    ours, theirs = list(new.groups), list(old.groups)
    pairs: dict[int, int] = {}
    if ours and theirs:
        overlap = _jaccard(new_topics, ours, old_topics, theirs)
        cosines = np.round((new.topic_vectors() @ old.topic_vectors().T).astype(np.float64), 5)
        rows, columns = linear_sum_assignment(-(overlap + 0.5 * cosines))
        shared = np.isin(old_topics, theirs).any()
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            if overlap[row, column] >= LEAST or (not shared and cosines[row, column] >= ALIKE):
                pairs[ours[row]] = theirs[column]
    fresh = max([*theirs, -1]) + 1
    numbers = dict(pairs)
    for topic in ours:
        if topic not in numbers:
            numbers[topic] = fresh
            fresh += 1
    groups = {numbers[topic]: leaves for topic, leaves in new.groups.items()}
    return replace(new, groups=dict(sorted(groups.items()))), pairs


def renumbered(topics: np.ndarray, numbers: Mapping[int, int]) -> np.ndarray:
    """Return int64 [n] topics under other numbers; outliers stay."""
    return np.array([numbers.get(topic, OUTLIER) for topic in topics.tolist()], np.int64)


def _jaccard(ours: np.ndarray, our_topics: list[int], theirs: np.ndarray, their_topics: list[int]) -> np.ndarray:
    known = np.isin(ours, our_topics) | np.isin(theirs, their_topics)
    one = (ours[known, None] == np.array(our_topics)).astype(np.float64)
    other = (theirs[known, None] == np.array(their_topics)).astype(np.float64)
    both = one.T @ other
    either = one.sum(axis=0)[:, None] + other.sum(axis=0) - both
    return both / np.maximum(either, 1)

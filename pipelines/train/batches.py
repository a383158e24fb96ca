"""Which examples are trained on together: shuffled anew for each epoch, of similar length, within a token budget."""

from collections.abc import Sequence

import numpy as np

WINDOW = 64  # batches' worth of shuffled groups that are sorted by length together


def plan_epoch(lengths: Sequence[np.ndarray], budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return the batches of one epoch; the same arguments give the same ones.

    Args:
        lengths: The tokens of the pairs of each group; a group is never torn apart.
        budget: Tokens of a batch, padding included. A group that alone exceeds it is a batch of its own.
        seed: Of the run.
        epoch: Counted from 0.

    Returns:
        Group numbers of each batch; each group is in exactly one.
    """
    chance = np.random.default_rng((seed, epoch))
    longest = np.array([int(group.max()) for group in lengths])
    sizes = np.array([len(group) for group in lengths])
    order = chance.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for window in _windows(order, longest * sizes, budget * WINDOW):
        window = window[np.argsort(longest[window], kind="stable")]
        found = list(_cut(window, longest, sizes, budget))
        batches += [found[place] for place in chance.permutation(len(found))]
    return batches


def _windows(order: np.ndarray, tokens: np.ndarray, budget: int) -> list[np.ndarray]:
    edges = np.cumsum(tokens[order]) // budget
    return np.split(order, np.flatnonzero(np.diff(edges)) + 1)


def _cut(window: np.ndarray, longest: np.ndarray, sizes: np.ndarray, budget: int) -> list[np.ndarray]:
    batches, start, pairs = [], 0, 0
    for place, group in enumerate(window):  # sorted, so the group at hand is the longest yet
        if place > start and (pairs + sizes[group]) * longest[group] > budget:
            batches.append(window[start:place])
            start, pairs = place, 0
        pairs += sizes[group]
    return [*batches, window[start:]]

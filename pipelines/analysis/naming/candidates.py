"""Candidates for the names of groups: phrases that are frequent in a group and rare in the others."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from .phrases import Key

CANDIDATES, FEWEST, IN_ALL = 40, 6, 2_000
"""Phrases of a group among which its name is chosen: at most, at least, and of all groups together, about."""
ENOUGH = 50
"""Texts from which on a phrase must occur in two of them."""
TELLING = 0.02
"""A candidate tells at least this share of what the best one tells."""
WHOLE = 0.7
"""A phrase that a longer one holds in this share of its texts is a piece of it."""


def candidates(
    counts: Sequence[Counter[Key]], sizes: np.ndarray, parents: Sequence[int] | None = None
) -> list[list[Key]]:
    """Return the phrases that tell most about each group, the most telling first.

    A phrase tells what the Kullback-Leibler divergence says between its share of the group's texts and the mean share
    of the other groups, each counting the same whatever its size; with parents, of all others and of the siblings,
    whichever is larger.

    Args:
        counts: Of each group: in how many of its texts a phrase occurs.
        sizes: int64 [groups], texts of each.
        parents: The parent of each group, or None.
    """
    least = 2 if sizes.sum() >= ENOUGH else 1
    number = len(counts)
    most = int(np.clip(IN_ALL // max(number, 1), FEWEST, CANDIDATES))
    shares: Counter[Key] = Counter()
    for own, size in zip(counts, sizes.tolist(), strict=True):
        for key, count in own.items():
            shares[key] += count / max(size, 1)
    of_parent = _by_parent(counts, sizes, parents)
    found = []
    for group, (own, size) in enumerate(zip(counts, sizes.tolist(), strict=True)):
        keys = [key for key, count in own.items() if count >= min(least, size)]
        inside = np.array([own[key] / max(size, 1) for key in keys])
        outside = np.array([shares[key] for key in keys]) - inside
        outside /= max(number - 1, 1)
        if parents is not None:
            siblings, count = of_parent[parents[group]]
            near = np.array([siblings[key] for key in keys]) - inside
            outside = np.maximum(outside, near / max(count - 1, 1))
        found.append(_best(keys, own, _divergence(inside, outside, size), most))
    return found


def _by_parent(
    counts: Sequence[Counter[Key]], sizes: np.ndarray, parents: Sequence[int] | None
) -> dict[int, tuple[Counter[Key], int]]:
    """Return the sum of the shares that the groups of each parent have of a phrase, and how many groups it has."""
    found: dict[int, tuple[Counter[Key], int]] = {}
    for parent, own, size in zip(parents or (), counts, sizes.tolist(), strict=False):
        shares, number = found.get(parent, (Counter(), 0))
        for key, count in own.items():
            shares[key] += count / max(size, 1)
        found[parent] = shares, number + 1
    return found


def _divergence(inside: np.ndarray, outside: np.ndarray, size: int) -> np.ndarray:
    """Return float [phrases], 0 for those that are no more frequent inside than outside."""
    p = np.clip(inside, 1e-9, 1 - 1e-9)
    q = np.clip(outside + 0.5 / max(size, 1), 1e-9, 1 - 1e-9)
    found = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return np.where(p > q, np.round(found, 9), 0)


def _best(keys: list[Key], own: Counter[Key], scores: np.ndarray, most: int) -> list[Key]:
    """Return the keys of the highest scores, without pieces of longer phrases."""
    order = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda place: (-scores[place], keys[place]))
    best = scores[order[0]] if order else 0
    ranked = [keys[place] for place in order[: 6 * most] if scores[place] >= TELLING * best]
    return [key for key in ranked if not any(_piece(key, other, own) for other in ranked)][:most]


def _piece(key: Key, other: Key, own: Counter[Key]) -> bool:
    """Return whether a phrase occurs mostly as a part of a longer one."""
    longer = len(other) - len(key)
    if longer <= 0 or own[other] < WHOLE * own[key]:
        return False
    return any(other[start : start + len(key)] == key for start in range(longer + 1))

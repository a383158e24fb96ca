"""The column of a taxonomy: a document has its own group as value, and belongs to all groups above it."""

from collections.abc import Mapping, Sequence

import numpy as np

from .table import MOST_NAMES, OTHER, Column

Chains = Mapping[int, Sequence[int]]
"""By the number of each group: that number, then those of the groups above it, the nearest first."""


def nested_column(name: str, title: str, own: np.ndarray, names: Mapping[int, str], chains: Chains) -> Column:
    """Return a column of groups, those with the most documents in and under them first.

    If there are more groups than a column may have names, the smallest have none: their documents have the nearest
    group above that has one, else `OTHER`.

    Args:
        name: The column's name.
        title: Its heading.
        own: int64 [n] the number of each document's group; any number that `names` lacks for none.
        names: The name of each group by its number, all different.
        chains: The groups above each group.
    """
    numbers, which = np.unique(own, return_inverse=True)
    sizes = dict(zip(numbers.tolist(), np.bincount(which, minlength=len(numbers)).tolist(), strict=True))
    ranked = _ranked(sizes, names, chains)
    cut = len(ranked) > MOST_NAMES
    kept = {group: code for code, group in enumerate(ranked[: MOST_NAMES - 1] if cut else ranked)}
    beyond = len(kept) if cut else -1

    def code_of(chain: Sequence[int], otherwise: int) -> int:
        return next((kept[group] for group in chain if group in kept), otherwise)

    codes = [code_of(chains[number], beyond) if number in names else -1 for number in numbers.tolist()]
    above = [code_of(chains[group][1:], -1) for group in kept]
    values = np.array([*codes, -1], np.int32)[which]
    shown = [names[group] for group in kept]
    if cut:
        shown, above = [*shown, OTHER], [*above, -1]
    return Column(name, title, "class", values, tuple(shown), cut, above=tuple(above))


def _ranked(sizes: Mapping[int, int], names: Mapping[int, str], chains: Chains) -> list[int]:
    """Return the groups that have documents in or under them, the largest first; none before one that is above it."""
    totals = dict.fromkeys(names, 0)
    for group in names:
        for each in chains[group]:
            totals[each] += sizes.get(group, 0)
    ranked = sorted((-total, len(chains[group]), names[group], group) for group, total in totals.items() if total)
    return [group for *_, group in ranked]

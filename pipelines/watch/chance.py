"""What chance does: random exchanges of old and new documents, and how many of them reach a score.

Whichever of n documents are new, the groups and the neighbours are the same. If new documents are like old ones, every
choice of which of them are new is as likely as the real one. So the largest score of each random choice says how large
the largest real score may be by chance (Westfall and Young, Resampling-Based Multiple Testing, 1993).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...indexer.progress import Notify, Progress, silent

NEARLY = 1e-9
"""Scores that differ by less are equal: sums are rounded."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents, of which some are new.

    Attributes:
        group: int64 [n], for each document the row of its vector, 0 to m - 1; equal texts share a vector.
        new: bool [n], which documents are new.
    """

    group: np.ndarray
    new: np.ndarray

    @property
    def vectors(self) -> int:
        """How many different vectors there are."""
        return int(self.group.max(initial=-1)) + 1

    def with_any(self, documents: np.ndarray) -> np.ndarray:
        """Return bool [m]: which vectors any of these documents, bool [n], has."""
        found = np.zeros(self.vectors, bool)
        found[self.group[documents]] = True
        return found

    def exchanged(self, times: int, seed: int) -> Iterator["Batch"]:
        """Yield the same documents with as many new ones, chosen at random."""
        chance = np.random.default_rng(seed)
        for _ in range(times):
            yield Batch(self.group, chance.permutation(self.new))


def largest_by_chance(
    batch: Batch, largest: Callable[[Batch], float], times: int, seed: int, notify: Notify = silent, stage: str = ""
) -> np.ndarray:
    """Return float64 [times], ascending: the largest score of each random exchange."""
    found = np.empty(times)
    for number, exchanged in enumerate(batch.exchanged(times, seed)):
        found[number] = largest(exchanged)
        if stage and number % 50 == 0:
            notify(Progress(stage, number, times, "permutations"))
    return np.sort(found)


def chances(scores: np.ndarray, by_chance: np.ndarray) -> np.ndarray:
    """Return the p value of each score, float64 in the same shape: above 0, at most 1, smaller is surer.

    It is the chance that the largest score of all is that high if new documents are like old ones. The real choice
    counts as one of the permutations, so no value is 0 (Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010).

    Args:
        scores: float of any shape, higher is more unusual.
        by_chance: float64 [times], ascending, from `largest_by_chance`.
    """
    reached = len(by_chance) - np.searchsorted(by_chance, scores - NEARLY)
    return (1 + reached) / (1 + len(by_chance))

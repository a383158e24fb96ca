"""What chance does: random exchanges of old and new texts, and how many of them reach a score.

Whichever texts are new, the groups and the neighbours are the same. If new documents are like old ones, every choice of
new ones is as likely as the real one. So the largest score of each random choice says how large
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
    """Texts, each once, and which of them new and old documents have.

    Attributes:
        new: bool [m], which texts a new document has.
        old: bool [m], which texts an old document has; a text can be both.
        copies: int64 [m], how many documents have each text.
    """

    new: np.ndarray
    old: np.ndarray
    copies: np.ndarray

    @classmethod
    def of(cls, group: np.ndarray, new: np.ndarray) -> "Batch":
        """Return the texts of documents.

        Args:
            group: int64 [n], for each document the number of its text, 0 to m - 1.
            new: bool [n], which documents are new.
        """
        copies = np.bincount(group)
        fresh = np.bincount(group, weights=new)
        return cls(fresh > 0, fresh < copies, copies)

    @property
    def fresh(self) -> np.ndarray:
        """Which texts only new documents have: bool [m]."""
        return self.new & ~self.old

    def exchanged(self, times: int, seed: int) -> Iterator["Batch"]:
        """Yield the same texts, of which others are new and old.

        Texts with as many copies are exchanged with each other: a frequent text is more often old than a rare one. A
        text that was sent 30 times at once is one text, and has nothing to be exchanged with.
        """
        chance = np.random.default_rng(seed)
        alike = [np.flatnonzero(self.copies == count) for count in np.unique(self.copies).tolist()]
        for _ in range(times):
            new, old = self.new.copy(), self.old.copy()
            for rows in alike:
                order = chance.permutation(rows)
                new[rows], old[rows] = self.new[order], self.old[order]
            yield Batch(new, old, self.copies)


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

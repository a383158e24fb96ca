"""Groups whose share of the new documents differs from their share of the old ones."""

from dataclasses import dataclass

import numpy as np

from ..analysis.chance import Batch, chances


@dataclass(frozen=True, slots=True)
class Shares:
    """The groups of new and of old texts.

    Attributes:
        new: float64 [k], the share of each group among the new texts, 0 to 1; equal texts count once.
        old: float64 [k], among the old texts.
        p: float64 [k], the chance that any group differs that much if new documents are like old ones.
    """

    new: np.ndarray
    old: np.ndarray
    p: np.ndarray


def compare_shares(batch: Batch, labels: np.ndarray, count: int, times: int, seed: int) -> Shares:
    """Compare the shares of groups.

    A group's score is the difference of its two shares, standardised by what the permutations give for this group. The
    largest score of each permutation decides for all groups, so that many groups do not mean many false alarms.

    Args:
        batch: The texts.
        labels: int64 [m], the group of each text, -1 for none, which counts for the total only.
        count: How many groups there are.
        times: Number of permutations.
        seed: Of the permutations.
    """
    parts = np.array([_shares(each, labels, count) for each in batch.exchanged(times, seed)])
    apart = parts[:, 0] - parts[:, 1]
    mean, spread = apart.mean(axis=0), np.maximum(apart.std(axis=0), 1e-12)
    new, old = _shares(batch, labels, count)

    def scores(difference: np.ndarray) -> np.ndarray:
        return np.abs(difference - mean) / spread

    by_chance = np.sort(scores(apart).max(axis=1, initial=0))
    return Shares(new, old, chances(scores(new - old), by_chance))


def _shares(batch: Batch, labels: np.ndarray, count: int) -> np.ndarray:
    """Return float64 [2, k] shares of the groups among the new texts and among the old ones."""
    found = []
    for part in (batch.new, batch.old):
        inside = labels[part]
        found.append(np.bincount(inside + 1, minlength=count + 1)[1:] / max(len(inside), 1))
    return np.array(found)

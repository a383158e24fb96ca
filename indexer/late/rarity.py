"""How rare tokens are: a late interaction counts rare tokens more than frequent ones."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Rarity:
    """Inverse document frequencies of token ids.

    Attributes:
        ids: int64 [n], the ids seen, ascending.
        values: float32 [n], greater than 0.
        unseen: The value of every other id, greater than all of `values`.
    """

    ids: np.ndarray
    values: np.ndarray
    unseen: float

    @classmethod
    def of(cls, passages: list[np.ndarray]) -> "Rarity":
        """Count in how many passages, given as their token ids, each id occurs."""
        once = [np.unique(ids) for ids in passages]
        ids, counts = np.unique(np.concatenate([*once, np.empty(0, np.int64)]), return_counts=True)
        return cls(
            ids.astype(np.int64), _inverse(counts, len(passages)), float(_inverse(np.zeros(1), len(passages))[0])
        )

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Return float32 [n], the weight of each id."""
        if not len(self.ids):
            return np.full(len(ids), self.unseen, np.float32)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.values[places], self.unseen).astype(np.float32)


def _inverse(counts: np.ndarray, total: int) -> np.ndarray:
    return np.log(1 + (total - counts + 0.5) / (counts + 0.5)).astype(np.float32)

"""How rare a model's tokens are in a collection: inverse document frequencies over a sample of its passages."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from ...indexer.chunker import passage_text
from ...indexer.encoder import Encoder
from ...indexer.view import Generation, View

SAMPLE = 1_000
"""Passages, spread evenly over the collection; a sample of 500 ranks as well (docs/reranking.md)."""


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


_known: "WeakKeyDictionary[Generation, Rarity]" = WeakKeyDictionary()


def rarity(view: View, encoder: Encoder) -> Rarity:
    """Return the rarities in a view, measured once for each generation of a collection."""
    found = _known.get(view.generation)
    if found is None:
        found = _known[view.generation] = Rarity.of([text.ids for text in encoder.tokenize(_sample(view))])
    return found


def is_measured(view: View) -> bool:
    """Whether the rarities in a view are known."""
    return view.generation in _known


def _sample(view: View) -> list[str]:
    rows = np.flatnonzero(view.generation.alive)
    passages = view.passages(rows[:: max(1, len(rows) // SAMPLE)][:SAMPLE].tolist())
    sql = "SELECT p.row, d.title, substr(d.text, p.start + 1, p.end - p.start) FROM passages p JOIN documents d"
    found = view.catalog.select_in(f"{sql} ON d.doc = p.doc WHERE p.row IN (?) ORDER BY p.row", list(passages))
    return [passage_text(title, text) for _, title, text in found]

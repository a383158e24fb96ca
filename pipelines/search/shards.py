"""The dense half of a search over shards: each shard's own candidates, and the best of all."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...indexer.store.view import View
from ...indexer.wording import counted
from .candidates import Candidates, DenseSearch, best_of


@dataclass(frozen=True, slots=True)
class ShardedDense:
    """Vector search over the shards of one view; see `DenseSearch`.

    Attributes:
        parts: For each shard its search, and int64 [rows], the row of the whole view that each of its rows is.
    """

    parts: Sequence[tuple[DenseSearch, np.ndarray]]

    @classmethod
    def over(cls, view: View, allowed: np.ndarray | None, breadth: int | None = None) -> "ShardedDense":
        """Prepare a search of every shard of a view, restricted to `allowed` rows (bool [rows]; None: all)."""
        unfiltered = allowed is None or allowed is view.generation.alive
        searches = []
        for part, rows in view.parts:
            own = part.generation.alive if unfiltered and part.generation.tombstones else None
            chosen = own if allowed is None or unfiltered else allowed[rows]
            searches.append((DenseSearch(part, chosen, breadth), rows))
        return cls(searches)

    def strategy(self, k: int) -> str:
        """Return a description of how a search for k passages runs."""
        told = list(dict.fromkeys(search.strategy(k) for search, _ in self.parts))
        shards = counted(len(self.parts), "shard")
        return f"{shards}: {told[0]}" if len(told) == 1 else f"{shards}, the first: {told[0]}" if told else shards

    def search(self, queries: np.ndarray, k: int) -> list[Candidates]:
        """Return the k best passages of all shards for each of float32 [m, d] queries."""
        found = list(_threads().map(lambda part: part[0].search(queries, k), self.parts))
        return [self._best([each[place] for each in found], k) for place in range(len(queries))]

    def _best(self, found: Sequence[Candidates], k: int) -> Candidates:
        """Return the k best candidates of all shards for one query, under the rows of the whole view."""
        scores = [each.scores for each in found]
        rows = [whole[each.rows] for each, (_, whole) in zip(found, self.parts, strict=True)]
        return best_of(
            np.concatenate([np.empty(0, np.float32), *scores]), np.concatenate([np.empty(0, np.int64), *rows]), k
        )


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads that search shards, as many as there are processors; FAISS releases Python's global lock."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="sonde-shard")

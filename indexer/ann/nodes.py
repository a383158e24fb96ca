"""Which rows stand behind each vector of an index."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from .exact import BLOCK
from .source import VectorSource, row_blocks


@dataclass(frozen=True)
class Nodes:
    """Distinct vectors (nodes, numbered as FAISS numbers them) and the rows that hold each.

    Rows with equal vectors share a node: a thousand identical texts would otherwise link only to each other in an
    HNSW graph, and cut off what lies behind them. `node` (int64 [r]) ascends, and `rows` (int64 [r]) within it.
    """

    node: np.ndarray
    rows: np.ndarray

    @classmethod
    def distinct(cls, vectors: VectorSource, rows: np.ndarray) -> "Nodes":
        """The nodes of ascending `rows`, numbered by first appearance."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64)).extended(vectors, rows)

    def __len__(self) -> int:
        return int(self.node[-1]) + 1 if len(self.node) else 0

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the rows of each node begin in `rows`; one entry more than nodes."""
        return np.searchsorted(self.node, np.arange(len(self) + 1))

    @cached_property
    def first(self) -> np.ndarray:
        """The first row of each node."""
        return self.rows[self.starts[:-1]]

    def extended(self, vectors: VectorSource, rows: np.ndarray) -> "Nodes":
        """With more rows: to the node that has their vector already, or to new nodes at the end."""
        known = _fingerprints(vectors, self.first)
        _, earliest, group = np.unique(
            np.concatenate([known, _fingerprints(vectors, rows)]), return_index=True, return_inverse=True
        )
        number = np.empty(len(earliest), dtype=np.int64)
        number[np.argsort(earliest)] = np.arange(len(earliest))
        node = np.concatenate([self.node, number[group[len(known) :]]])
        return Nodes._sorted(node, np.concatenate([self.rows, rows]))

    def moved_last(self, chosen: np.ndarray) -> "Nodes":
        """The same nodes numbered anew, the `chosen` ones (node numbers) after all others."""
        last = np.zeros(len(self), dtype=bool)
        last[chosen] = True
        number = np.empty(len(self), dtype=np.int64)
        number[np.argsort(last, kind="stable")] = np.arange(len(self))
        return Nodes._sorted(number[self.node], self.rows)

    def head(self, count: int) -> "Nodes":
        """The first `count` nodes alone."""
        end = np.searchsorted(self.node, count)
        return Nodes(self.node[:end], self.rows[:end])

    def under(self, allowed: np.ndarray) -> "Admitted":
        """What a mask over the rows (bool, at least as long as they reach) leaves."""
        kept = allowed[self.rows]
        if kept.all():
            return Admitted(None, None, len(self), len(self.rows))
        nodes = np.zeros(len(self), dtype=bool)
        nodes[self.node[kept]] = True
        return Admitted(allowed, np.packbits(nodes, bitorder="little"), int(nodes.sum()), int(kept.sum()))

    def rows_of(self, nodes: np.ndarray, allowed: np.ndarray | None, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """The admitted rows behind `nodes`, as (place in `nodes`, row); at most `limit`, the lowest, of each."""
        first = self.starts[nodes]
        count = self.starts[nodes + 1] - first
        if allowed is None:
            count = np.minimum(count, limit)
        place = np.repeat(np.arange(len(nodes)), count)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        rows = self.rows[first[place] + offset]
        if allowed is None:
            return place, rows
        kept = allowed[rows]
        return place[kept], rows[kept]

    @classmethod
    def _sorted(cls, node: np.ndarray, rows: np.ndarray) -> "Nodes":
        order = np.lexsort((rows, node))
        return cls(node[order], rows[order])


@dataclass(frozen=True)
class Admitted:
    """The part of an index that a search may answer from.

    `allowed` is the mask over rows and `bitmap` (uint8, one bit a node, lowest first) that over nodes; both None where
    all are admitted. `nodes` and `rows` count what is left.
    """

    allowed: np.ndarray | None
    bitmap: np.ndarray | None
    nodes: int
    rows: int


def _fingerprints(vectors: VectorSource, rows: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each vector. `rows` need not ascend."""
    order = np.argsort(rows, kind="stable")
    hashes = [
        blake2b(vector, digest_size=8).digest()
        for _, block in row_blocks(vectors, rows[order], BLOCK)
        for vector in np.ascontiguousarray(block)
    ]
    result = np.empty(len(rows), dtype=np.uint64)
    result[order] = np.frombuffer(b"".join(hashes), dtype=np.uint64)
    return result

"""Numbers of documents and passages: those of a shard, and those of the whole."""

from collections.abc import Mapping

import numpy as np


class Numbers:
    """Translates between the numbers of shards and those of the whole.

    A document's number tells its shard: it is the shard's own number times the number of shards, plus the shard's. A
    row of the whole is the passage's place among all passages in the order in which they came, as in one collection:
    so equal scores, which are ordered by row, have the same order.
    """

    def __init__(self, shards: int, orders: Mapping[int, np.ndarray]) -> None:
        """Number the passages.

        Args:
            shards: How many shards there are.
            orders: By shard, int64 [rows], ascending: when each passage came, as `order.npy` says.
        """
        self.shards = shards
        numbers = np.repeat(np.array(list(orders), np.int64), [len(order) for order in orders.values()])
        own = np.concatenate([np.empty(0, np.int64), *(np.arange(len(order)) for order in orders.values())])
        came = np.concatenate([np.empty(0, np.int64), *orders.values()])
        order = np.argsort(came, kind="stable")
        self.shard_of, self.own_rows = numbers[order].astype(np.int32), own[order]
        self.rows = {shard: np.flatnonzero(self.shard_of == shard) for shard in orders}
        """By shard, int64 [rows], ascending: the row of the whole that each of its rows is."""

    def __len__(self) -> int:
        return len(self.own_rows)

    def documents(self, shard: int, own: np.ndarray) -> np.ndarray:
        """Return int64 [n], documents of the whole; -1 stays -1."""
        return np.where(own >= 0, own * self.shards + shard, -1)

    def own(self, kind: str, number: int) -> tuple[int, int]:
        """Return the shard of a document ("doc") or passage ("row") of the whole, and its number there."""
        if kind == "doc":
            return number % self.shards, number // self.shards
        if not 0 <= number < len(self):
            return -1, -1
        return int(self.shard_of[number]), int(self.own_rows[number])

    def whole(self, kind: str, shard: int, own: int | None) -> int | None:
        """Return the number in the whole of a shard's document ("doc") or passage ("row"); None stays None."""
        if own is None:
            return None
        return own * self.shards + shard if kind == "doc" else int(self.rows[shard][own])

"""Numbers of documents and passages: those of a shard, and those of the whole."""

from collections.abc import Mapping

import numpy as np


class Numbers:
    """Translates between the numbers of shards and those of the whole.

    A document has one number: its shard's is that of the whole. It tells the shard, by its remainder, and grows in the
    order in which documents first came. A row of the whole is the passage's place among all passages in the order in
    which they came. Both orders are those of one collection, so ties, samples and seeds have the same outcome.
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

    def own(self, kind: str, number: int) -> tuple[int, int]:
        """Return the shard of a document ("doc") or passage ("row") of the whole, and its number there."""
        if kind == "doc":
            return number % self.shards, number
        if not 0 <= number < len(self):
            return -1, -1
        return int(self.shard_of[number]), int(self.own_rows[number])

    def row(self, shard: int, own: int | None) -> int | None:
        """Return the row of the whole that a shard's row is; None stays None."""
        return None if own is None else int(self.rows[shard][own])

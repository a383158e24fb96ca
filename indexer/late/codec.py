"""Compress token embeddings: similar ones are pooled, weighted by rarity, projected and stored in 48 bytes."""

import hashlib
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

SHARES = ((4, 24), (2, 80), (1, 128))
"""Bits of a number, and how many components get them, those of the largest variance first: 384 bits in all. That is
nearly the division that loses least; 96 components in 4 bits lose twice as much (docs/decisions/0038)."""
FULL = 96
"""Embeddings of up to this many dimensions keep all components, in 4 bits each."""
UNPOOLED, POOL, MOST = 32, 2, 90
"""A passage keeps up to 32 tokens as they are. Of more, two become one, and 256 become 90 at the most: 4.5 kB."""
WINDOW = 256
LEAST = 10
"""Tokens for each dimension of the model below which no components are learned."""
TINY = 1e-12
_POSITIVE = {
    1: (0.7979,),
    2: (0.4528, 1.5104),
    4: (0.1284, 0.3881, 0.6568, 0.9424, 1.2562, 1.6181, 2.0691, 2.7326),
}
"""The levels above 0 that lose least of a normal variable (Max, "Quantizing for minimum distortion", 1960)."""


def levels(bits: int) -> np.ndarray:
    """Return float32 [2 ** bits], the numbers that the codes stand for, ascending, in standard deviations."""
    half = np.array(_POSITIVE[bits], np.float32)
    return np.concatenate([-half[::-1], half])


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


@dataclass(frozen=True, eq=False)
class Codec:
    """What is learned from some passages of a collection, and then used for all.

    A pooled token is a row of `width` bytes: its codes, and its weight.

    Attributes:
        mean: float32 [d], the mean of the pooled tokens.
        components: float32 [kept, d], orthogonal; each is as long as the standard deviation along it.
        rarity: How rare tokens are, for the weights of pooled tokens.
        tokens: How many tokens it was learned from.
    """

    mean: np.ndarray
    components: np.ndarray
    rarity: Rarity
    tokens: int

    @classmethod
    def learn(cls, ids: list[np.ndarray], vectors: list[np.ndarray]) -> "Codec":
        """Learn from passages, given as int64 [n] and float32 [n, d] for each; LEAST * d tokens or more are needed."""
        together = np.concatenate([_pooled(each, _groups(each)) for each in vectors]).astype(np.float64)
        mean = together.mean(axis=0)
        variances, directions = np.linalg.eigh(np.cov(together - mean, rowvar=False))
        dimension = len(mean)
        best = np.argsort(-variances, kind="stable")[: sum(count for _, count in shares(dimension))]
        lengths = np.sqrt(np.maximum(variances[best], TINY))
        components = directions[:, best].T * lengths[:, None]
        # A direction and its opposite are equally good: the larger part is positive on every machine.
        components *= np.sign(components[np.arange(len(best)), np.abs(components).argmax(axis=1)])[:, None]
        tokens = sum(map(len, ids))
        return cls(mean.astype(np.float32), components.astype(np.float32), Rarity.of(ids), tokens)

    @property
    def width(self) -> int:
        """Bytes of a pooled token: the codes, and one for the weight."""
        return sum(-(-count * bits // 8) for bits, count in shares(len(self.mean))) + 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that was learned: indexes with the same one can be read together."""
        parts = (self.mean, self.components, self.rarity.ids, self.rarity.values, np.float64(self.rarity.unseen))
        return hashlib.sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in parts)).hexdigest()

    def pack(self, ids: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Return uint8 [pooled, width] for a passage's tokens: int64 [n] and float32 [n, d], n at least 1."""
        # In 16 bits first, as tokens are while they wait for the codec: both ways give the same bytes.
        vectors = vectors.astype(np.float16).astype(np.float32)
        groups = _groups(vectors)
        weights = np.bincount(groups, weights=self.rarity(ids))
        codes = self._codes(_pooled(vectors, groups))
        share = np.ceil(weights / max(weights.max(), TINY) * 255)
        return np.column_stack([codes, np.clip(share, 1, 255).astype(np.uint8)])

    def similarities(self, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return float32 [q, pooled]: cosines of a query's tokens, float32 [q, d] of length 1, to pooled tokens.

        Both sides are compared as the components show them: what the components lose of a token, they lose of the
        query's too, and without its length the cosines of all rare words would be too low.
        """
        asked = self._scaled(query - self.mean)
        asked = self.mean + asked @ self.components
        asked /= np.maximum(np.linalg.norm(asked, axis=1, keepdims=True), TINY)
        numbers = self._numbers(rows)
        length = np.sqrt(np.maximum(numbers**2 @ self._variances + 2 * numbers @ self._offset + self._base, TINY))
        return ((asked @ self.mean)[:, None] + (asked @ self.components.T) @ numbers.T) / length

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Return float32 [pooled], the weights of pooled tokens; only their ratio inside a passage has a meaning."""
        return rows[:, -1].astype(np.float32)

    @cached_property
    def _variances(self) -> np.ndarray:
        return np.einsum("kd,kd->k", self.components, self.components)

    @cached_property
    def _offset(self) -> np.ndarray:
        return self.components @ self.mean

    @cached_property
    def _base(self) -> float:
        return float(self.mean @ self.mean)

    def _scaled(self, centred: np.ndarray) -> np.ndarray:
        return centred @ self.components.T / self._variances

    def _codes(self, vectors: np.ndarray) -> np.ndarray:
        numbers, parts, done = self._scaled(vectors - self.mean), [], 0
        for bits, count in shares(len(self.mean)):
            parts.append(rounded(numbers[:, done : done + count], bits))
            done += count
        return np.concatenate(parts, axis=1)

    def _numbers(self, rows: np.ndarray) -> np.ndarray:
        found, done = np.empty((len(rows), len(self.components)), np.float32), [0, 0]
        for bits, count in shares(len(self.mean)):
            size = -(-count * bits // 8)
            numbers = _table(bits)[rows[:, done[0] : done[0] + size]].reshape(len(rows), -1)
            found[:, done[1] : done[1] + count] = numbers[:, :count]
            done = [done[0] + size, done[1] + count]
        return found


def shares(dimension: int) -> list[tuple[int, int]]:
    """Return pairs of bits and the number of components that are stored in them, for embeddings of this dimension."""
    if dimension <= FULL:
        return [(4, dimension)]
    found, left = [], dimension
    for bits, count in SHARES:
        found += [(bits, min(count, left))] if left else []
        left -= min(count, left)
    return found


def rounded(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Return uint8 [n, bytes]: the nearest level of each of float [n, k], the first number in the highest bits."""
    steps, per_byte = levels(bits), 8 // bits
    codes = np.searchsorted((steps[1:] + steps[:-1]) / 2, numbers).astype(np.uint8)
    codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % per_byte)))
    shifts = (bits * np.arange(per_byte)[::-1]).astype(np.uint8)
    return np.bitwise_or.reduce(codes.reshape(len(codes), -1, per_byte) << shifts, axis=2)


@cache
def _table(bits: int) -> np.ndarray:
    """Return the numbers that each byte stands for, float32 [256, 8 / bits]."""
    shifts = bits * np.arange(8 // bits)[::-1]
    return levels(bits)[(np.arange(256)[:, None] >> shifts) & ((1 << bits) - 1)]


def token_rows(tokens: int) -> int:
    """Return the greatest number of pooled tokens that a passage of that many tokens gets."""
    return min(max(-(-tokens // POOL), min(tokens, UNPOOLED)), MOST * -(-tokens // WINDOW))


def _groups(vectors: np.ndarray) -> np.ndarray:
    """Return int64 [n], the group of each token, from 0: Ward's method joins the tokens that are most alike.

    Clavié, Chaffin and Adams, "Reducing the Footprint of Multi-Vector Retrieval with Minimal Performance Impact via
    Token Pooling", 2024.
    """
    count, wanted = len(vectors), token_rows(len(vectors))
    if wanted >= count:
        return np.arange(count)
    from fastcluster import linkage

    squared = np.maximum(2 - 2 * (vectors @ vectors.T), 0)
    distances = np.sqrt(squared[np.triu_indices(count, 1)], dtype=np.float64)
    return _cut(linkage(distances, "ward"), wanted)


def _cut(tree: np.ndarray, most: int) -> np.ndarray:
    """Return int64 [n], the group of each of n tokens, numbered in the order of the tree: joins before single tokens.

    Args:
        tree: float64 [n - 1, 4]: each join's two nodes, distance and size, the closest first; join i is node n + i.
        most: Number of groups. There are fewer if the last joins have the same distance.
    """
    count = len(tree) + 1
    nodes, sizes = tree[:, :2].astype(np.int64).tolist(), [1] * count + tree[:, 3].astype(np.int64).tolist()
    place = [0] * (2 * count - 1)  # how many tokens come before each node
    starts = np.ones(count, np.int64)  # 1 where a group starts
    joined = (tree[:, 2] <= tree[count - most - 1, 2]).tolist()
    for join in range(count - 2, -1, -1):
        first, second = sorted(nodes[join], key=count.__gt__)
        place[first] = place[count + join]
        place[second] = place[first] + sizes[first]
        if joined[join]:
            starts[place[second]] = 0
    return (np.cumsum(starts) - 1)[place[:count]]


def _pooled(vectors: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return float32 [groups, d], the mean of each group, of length 1."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    sums = np.add.reduceat(vectors[order], starts, axis=0)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), TINY)

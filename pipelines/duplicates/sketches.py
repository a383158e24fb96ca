"""Sets that are probably alike: MinHash and locality-sensitive hashing (Broder, SEQUENCES 1997).

The hashes are those of `datasketch` 2, so that the same pairs are found.
"""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha1

import numpy as np

PERMUTATIONS = 128
MISSED = 0.9
"""Weight of a pair that is missed, against 1 - MISSED of one that is proposed wrongly."""
STEPS = 2_000
"""Parts of the interval from 0 to 1 over which the chances of an error are summed."""


class Sketches:
    """Sketches of sets of texts, which find earlier sets with much in common."""

    def __init__(self, least: float) -> None:
        """Prepare to find sets whose Jaccard similarity is at least `least`, above 0 and below 1."""
        random = np.random.RandomState(1)
        self._factors = random.randint(0, 1 << 31, PERMUTATIONS, np.uint32) * np.uint32(2) + np.uint32(1)
        self._offsets = random.randint(0, 1 << 32, PERMUTATIONS, np.uint32)
        bands, self._width = _bands(least)
        self._buckets: list[defaultdict[bytes, list[int]]] = [defaultdict(list) for _ in range(bands)]
        self._count = 0

    def add(self, texts: Iterable[str]) -> list[int]:
        """Add a set; return the numbers of the earlier sets that are probably like it, from 0, ascending."""
        digests = (sha1(text.encode("utf-8", "replace")).digest() for text in texts)
        hashes = _mixed(np.array([int.from_bytes(digest[:4], "little") for digest in digests], np.uint32))
        sketch = (hashes[:, None] * self._factors + self._offsets).min(axis=0)
        found: set[int] = set()
        for band, buckets in enumerate(self._buckets):
            bucket = buckets[sketch[band * self._width : (band + 1) * self._width].tobytes()]
            found.update(bucket)
            bucket.append(self._count)
        self._count += 1
        return sorted(found)


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """Return uint32 [n] hashes whose bits all depend on each other, by the last step of MurmurHash3."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    return hashes


def _bands(least: float) -> tuple[int, int]:
    """Return into how many bands of how many hashes to divide a sketch, for the smallest weighted chance of an error.

    Two sets share a band of r hashes with the chance s ** r, where s is their Jaccard similarity.
    """
    similarity = (np.arange(STEPS) + 0.5) / STEPS
    below = np.clip(least * STEPS - np.arange(STEPS), 0, 1)  # how much of each part is below the limit

    def error(bands: int, width: int) -> float:
        apart = (1 - similarity**width) ** bands
        return float(((1 - MISSED) * (1 - apart) * below + MISSED * apart * (1 - below)).sum())

    shapes = [(b, r) for b in range(1, PERMUTATIONS + 1) for r in range(1, PERMUTATIONS // b + 1)]
    return min(shapes, key=lambda shape: error(*shape))

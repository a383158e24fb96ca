"""Places where new documents lie together and old ones do not.

For each new text, count how many of its 5, 7, 10 … 50 nearest texts are new. The score is minus the logarithm of the
chance of that many if new ones were drawn at random. It counts only where old texts are at most half as frequent as
elsewhere: a place with many old ones has grown, and did not appear.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

import numpy as np

from ...indexer.progress import Notify, silent
from .neighbours import neighbours
from .statistics import Batch, chances, largest_by_chance

SCALES = (5, 7, 10, 15, 20, 30, 50)
"""Numbers of nearest texts that are looked at."""
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Place:
    """New texts that lie together.

    Attributes:
        rows: int64, the vectors of the new texts, ascending.
        old: How many old texts lie among them.
        p: The chance that any such place is found if new documents are like old ones.
        near: How many of the `scale` nearest texts of its surest text are new.
        scale: One of `SCALES`.
        expected: How many of them would be new by chance.
    """

    rows: np.ndarray
    old: int
    p: float
    near: int
    scale: int
    expected: float


def around(vectors: np.ndarray, notify: Notify = silent) -> np.ndarray:
    """Return int64 [m, k] rows of the nearest other vectors of each, the nearest first; k is 50, or m - 1 if less."""
    rows, _ = neighbours(vectors, vectors, SCALES[-1] + 1, notify)
    own = rows == np.arange(len(rows))[:, None]
    own[~own.any(axis=1), -1] = True  # more copies than neighbours: the text itself is not among them
    return rows[~own].reshape(len(rows), rows.shape[1] - 1)


def find_places(
    batch: Batch, table: np.ndarray, alarms: float, times: int, seed: int, notify: Notify = silent
) -> list[Place]:
    """Return the places that chance does not explain, the surest first.

    Args:
        batch: The texts.
        table: int64 [m, k], the nearest other vectors of each vector, from `around`.
        alarms: Largest p value of a text from which a place starts.
        times: Number of permutations.
        seed: Of the permutations.
        notify: Receives progress.
    """
    scales = [scale for scale in SCALES if scale <= table.shape[1]]
    if not scales:
        return []

    share = float(batch.fresh.mean())
    unusual = {scale: _unusual(scale, share) for scale in scales}

    def largest(exchanged: Batch) -> float:
        return float(scored(exchanged.fresh, table, unusual)[1].max(initial=0))

    rows, scores, near = scored(batch.fresh, table, unusual)
    by_chance = largest_by_chance(batch, largest, times, seed, notify)
    p = chances(scores.max(axis=1, initial=0), by_chance)
    alarming = np.flatnonzero((p <= alarms) & (scores.max(axis=1, initial=0) > 0))
    best = scores[alarming].argmax(axis=1)
    highest = scores[alarming, best]
    sure = _Sure(rows[alarming], np.array(scales)[best], p[alarming], near[alarming, best], highest)
    return _joined(batch, table, sure, share)


def _unusual(scale: int, share: float) -> np.ndarray:
    """Return float64 [scale + 1]: the score of 0, 1, 2 … new ones among the nearest texts, at a share of new texts."""
    counts = np.arange(scale + 1)
    ways = np.log([comb(scale, count) for count in counts.tolist()])
    share = min(max(share, TINY), 1 - TINY)
    exactly = ways + counts * np.log(share) + (scale - counts) * np.log1p(-share)
    or_more = np.logaddexp.accumulate(exactly[::-1])[::-1]
    return np.where(counts < scale * (1 + share) / 2, 0, -np.minimum(or_more, 0))


def scored(
    fresh: np.ndarray, table: np.ndarray, unusual: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the score of each new text at each scale.

    Args:
        fresh: bool [m], which texts are new.
        table: int64 [m, k], the nearest other texts of each.
        unusual: The score of each number of new neighbours, by scale, ascending.

    Returns:
        int64 [n] new texts; float64 [n, scales] scores; int64 [n, scales] new ones among the nearest texts.
    """
    rows, scales = np.flatnonzero(fresh), list(unusual)
    starts = [0, *scales[:-1]]
    near = np.add.reduceat(fresh[table[rows, : scales[-1]]], starts, axis=1, dtype=np.int64).cumsum(axis=1)
    scores = np.stack([unusual[scale][near[:, column]] for column, scale in enumerate(scales)], axis=1)
    return rows, scores, near


@dataclass(frozen=True, slots=True)
class _Sure:
    """New texts with unusually many new neighbours: vector, scale, p value, new neighbours and score, [n] each."""

    rows: np.ndarray
    scales: np.ndarray
    p: np.ndarray
    near: np.ndarray
    scores: np.ndarray


def _joined(batch: Batch, table: np.ndarray, sure: _Sure, share: float) -> list[Place]:
    """Return the places: texts that are neighbours of each other, with the texts around most of them."""
    if not len(sure.rows):
        return []
    place = np.full(len(batch.copies), -1)
    place[sure.rows] = np.arange(len(sure.rows))
    start = np.repeat(np.arange(len(sure.rows)), sure.scales)
    end = place[np.concatenate([table[row, :scale] for row, scale in zip(sure.rows, sure.scales, strict=True)])]
    parts = _connected(start[end >= 0], end[end >= 0], len(sure.rows))
    members = [np.flatnonzero(parts == part) for part in np.unique(parts)]
    found = _places(batch, table, sure, members, share)
    return sorted(found, key=lambda one: (one.p, -len(one.rows), one.rows[0]))


def _connected(start: np.ndarray, end: np.ndarray, count: int) -> np.ndarray:
    """Return for each of `count` texts the first one, int64, that links lead to, from `start` to `end` or back."""
    parts = np.arange(count)
    while True:
        first = parts.copy()
        np.minimum.at(first, start, parts[end])
        np.minimum.at(first, end, parts[start])
        first = first[first]
        if np.array_equal(first, parts):
            return parts
        parts = first


def _places(batch: Batch, table: np.ndarray, sure: _Sure, members: list[np.ndarray], share: float) -> list[Place]:
    new, taken, found = batch.fresh, set(sure.rows.tolist()), []
    for some in sorted(members, key=lambda some: (-len(some), sure.rows[some[0]])):
        named = Counter(row for one in some for row in _as_far_as_new(new, table[sure.rows[one], : sure.scales[one]]))
        often = [row for row, count in named.items() if 2 * count >= len(some)]
        joining = [row for row in often if new[row] and row not in taken]
        taken |= set(joining)
        rows = np.sort(np.concatenate([sure.rows[some], np.array(joining, np.int64)]))
        best = some[int(sure.scores[some].argmax())]
        scale = int(sure.scales[best])
        old = sum(not new[row] for row in often)
        found.append(Place(rows, old, float(sure.p[best]), int(sure.near[best]), scale, scale * share))
    return found


def _as_far_as_new(fresh: np.ndarray, nearest: np.ndarray) -> list[int]:
    """Return the nearest texts up to the last new one: old texts that are farther do not lie among the new ones."""
    return nearest[: int(np.flatnonzero(fresh[nearest])[-1]) + 1].tolist()

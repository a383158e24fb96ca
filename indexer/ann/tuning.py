"""The search parameters that reach a target recall, found on the collection's own vectors."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from . import kinds
from .exact import exact_search
from .source import VectorSource

if TYPE_CHECKING:
    from .index import AnnIndex

K = 10
SAFETY = 0.35
"""Share of the gap between the target and 1 that is aimed at on top, so that the target holds on unseen queries."""


def tune(index: "AnnIndex", vectors: VectorSource, queries: np.ndarray, target: float) -> "AnnIndex":
    """The index with the least effort that reaches the target on `queries` (float32 [m, d]), or with the most.

    First the number of candidates per answer: looking wide, the fewest that lose no more to the codes' error than half
    of what the target leaves to lose. Then the breadth of the search.
    """
    goal = target + SAFETY * (1 - target)
    truth = _truth(index, vectors, queries)
    ladder = kinds.breadths(index.info.kind, index.index)

    def reached(breadth: int, factor: int) -> float:
        return _recall(index.tuned(breadth, factor), vectors, queries, truth)

    factor = 1
    if not kinds.is_lossless(index.info.kind):
        wide = ladder[len(ladder) * 3 // 4]
        bearable = reached(wide, kinds.FACTORS[-1]) - (1 - goal) / 2
        factor = _least(kinds.FACTORS, lambda step: reached(wide, step), bearable)
    return index.tuned(_least(ladder, lambda step: reached(step, factor), goal), factor)


def recall(index: "AnnIndex", vectors: VectorSource, queries: np.ndarray) -> float:
    """Recall@10 against the exact scan; an answer that ties with the tenth counts, whatever its row."""
    return _recall(index, vectors, queries, _truth(index, vectors, queries))


def latency_ms(index: "AnnIndex", vectors: VectorSource, queries: np.ndarray) -> float:
    """Median milliseconds of one search for 10, rescoring included, over the queries one by one."""
    seconds = []
    for query in queries:
        start = perf_counter()
        index.search(query[None], K, vectors=vectors)
        seconds.append(perf_counter() - start)
    return 1000 * float(np.median(seconds)) if seconds else 0.0


def _truth(index: "AnnIndex", vectors: VectorSource, queries: np.ndarray) -> np.ndarray:
    """The score that an answer must reach, per query: that of the tenth row, or of the last."""
    scores, rows = exact_search(vectors, queries, K, rows=index.nodes.rows)
    return scores[:, (rows[0] >= 0).sum() - 1]


def _recall(index: "AnnIndex", vectors: VectorSource, queries: np.ndarray, truth: np.ndarray) -> float:
    scores, _ = index.search(queries, K, vectors=vectors)
    expected = min(K, len(index.nodes.rows))
    return float((scores >= truth[:, None]).sum(axis=1).mean() / expected)


def _least(ladder: Sequence[int], reached: Callable[[int], float], goal: float) -> int:
    """The smallest step whose recall reaches the goal, or the last; recall grows with the step."""
    place = bisect_left(ladder, goal, key=reached)
    return ladder[min(place, len(ladder) - 1)]

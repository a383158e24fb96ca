"""Fill an index, measure it, and find the search parameters that reach a target recall."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from . import kinds
from .exact import BLOCK, VectorSource, exact_search
from .settings import AnnInfo, Kind

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

    factors, wide = kinds.factors(index.info.kind), ladder[len(ladder) * 3 // 4]
    factor = factors[0]
    if len(factors) > 1:
        bearable = reached(wide, factors[-1]) - (1 - goal) / 2
        factor = _least(factors, lambda step: reached(wide, step), bearable)
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


QUERIES = 800
"""Half of them tune the index, the other half measures it."""
ENOUGH = 100
TIMED = 50

Notify = Callable[[str, int, int], None]
"""Told of progress: what is being done, how much of it is done, how much there is."""


def say_nothing(stage: str, done: int, total: int) -> None:
    """Progress that nobody follows."""


def held_out(kind: Kind, at_most: int) -> int:
    """How many vectors stay outside as queries; none if they would be too few, or could not follow one by one."""
    return 0 if kind in ("exact", "cagra") or at_most < ENOUGH else min(QUERIES, at_most)


def grow(
    index: "AnnIndex", vectors: VectorSource, held: int, random: np.random.Generator, notify: Notify
) -> "AnnIndex":
    """Put the nodes that FAISS does not hold yet into it, and measure it before the last `held` of them follow.

    An index that was never tuned, or that no longer reaches its target, is tuned on one half of the queries and then
    measured on the other. Where none are held out, stored vectors with some noise take their place.
    """
    inside = len(index.nodes) - held
    _insert(index, vectors, inside, notify)
    partial = index.over(index.nodes.head(inside))
    if index.info.kind != "exact":
        notify("tuning", 0, 1)
        partial = _measured(partial, vectors, _queries(index, vectors, held, random))
    index = index.over(index.nodes, partial.info)
    _insert(index, vectors, len(index.nodes), notify)
    return index


def timed(index: "AnnIndex", vectors: VectorSource, random: np.random.Generator) -> AnnInfo:
    """The description with the index's latency and its size in memory."""
    some = np.sort(random.choice(index.nodes.first, min(TIMED, len(index.nodes)), replace=False))
    size = kinds.bytes_needed(index.info.kind, index.info.dimension, len(index.nodes))
    return replace(index.info, latency_ms=latency_ms(index, vectors, vectors.read(some)), bytes=size)


def _insert(index: "AnnIndex", vectors: VectorSource, until: int, notify: Notify) -> None:
    """Add the nodes from the first that FAISS lacks up to `until`; a CAGRA graph is built again with all of them."""
    start = index.index.ntotal
    if index.info.kind == "cagra" and start < until:
        notify("building the graph", 0, until)
        index.index = index.place.graph(vectors, index.nodes.first[:until])
        return
    for begin in range(start, until, BLOCK):
        index.index.add(vectors.read(index.nodes.first[begin : min(begin + BLOCK, until)]))
        notify("indexing", min(begin + BLOCK, until) - start, until - start)


def _measured(index: "AnnIndex", vectors: VectorSource, queries: np.ndarray) -> "AnnIndex":
    target = index.info.target
    tuning, testing = queries[::2], queries[1::2] if len(queries) > 1 else queries
    if not index.info.queries or recall(index, vectors, testing) < target:
        index = tune(index, vectors, tuning, target)
    value = recall(index, vectors, testing)
    return index.over(index.nodes, replace(index.info, recall=value, reached=value >= target, queries=len(testing)))


def _queries(index: "AnnIndex", vectors: VectorSource, held: int, random: np.random.Generator) -> np.ndarray:
    if held:
        return vectors.read(index.nodes.first[-held:])
    stored = vectors.read(np.sort(random.choice(index.nodes.first, min(QUERIES, len(index.nodes)), replace=False)))
    noise = random.standard_normal(stored.shape, dtype=np.float32) / np.sqrt(stored.shape[1])
    return stored + 0.5 * noise * np.linalg.norm(stored, axis=1, keepdims=True)

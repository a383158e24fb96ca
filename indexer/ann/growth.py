"""Putting vectors into an index, and measuring it with those that are not in it yet."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from . import kinds
from .exact import BLOCK
from .settings import AnnInfo, Kind
from .source import VectorSource
from .tuning import latency_ms, recall, tune

if TYPE_CHECKING:
    from .index import AnnIndex

QUERIES = 800
"""Half of them tune the index, the other half measures it."""
ENOUGH = 100
TIMED = 50

Notify = Callable[[str, int, int], None]
"""Told of progress: what is being done, how much of it is done, how much there is."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody follows."""


def held_out(kind: Kind, at_most: int) -> int:
    """How many vectors stay outside as queries; none of the exact kind, and none if they would be too few."""
    return 0 if kind == "exact" or at_most < ENOUGH else min(QUERIES, at_most)


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
    """Add the nodes from the first that FAISS lacks up to `until`."""
    start = index.index.ntotal
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

"""The exact scan: ground truth for tuning, and the search of small subsets and newer rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..errors import UsageError

_WIDE = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


class VectorSource(Protocol):
    """Vectors numbered from 0, at the precision in which they are stored, handed out as float32."""

    @property
    def dimension(self) -> int:
        """Components of one vector."""
        ...

    def __len__(self) -> int:
        """Number of rows, dead ones included."""
        ...

    def read(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of `rows` (int64 [n]), in that order, as float32 [n, dimension]."""
        ...

    def chunks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in order, as (first row, float32 [at most `size`, dimension])."""
        ...


@dataclass(frozen=True, eq=False)
class ArraySource:
    """A float16 matrix [rows, dimension], in memory or memory-mapped, as a `VectorSource`."""

    half: np.ndarray

    @property
    def dimension(self) -> int:
        """Components of one vector."""
        return self.half.shape[1]

    def __len__(self) -> int:
        return len(self.half)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of `rows` as float32."""
        return to_float32(self.half[rows])

    def chunks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in order, as (first row, float32 block)."""
        for start in range(0, len(self.half), size):
            yield start, to_float32(self.half[start : start + size])


def to_float32(half: np.ndarray) -> np.ndarray:
    """float16 values as float32, exactly: a table look-up, five times as fast as NumPy's `astype`."""
    return _WIDE[half.view(np.uint16)]


def row_blocks(source: VectorSource, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The vectors of ascending `rows` in blocks of at most `BLOCK`, as (rows int64 [m], float32 [m, d]).

    A dense selection is cut out of a sequential pass; a sparse one is gathered.
    """
    if 3 * len(rows) < len(source):
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            yield block, source.read(block)
        return
    for start, vectors in source.chunks(BLOCK):
        first, last = np.searchsorted(rows, (start, start + len(vectors)))
        if last - first == len(vectors):
            yield rows[first:last], vectors
        elif last > first:
            yield rows[first:last], vectors[rows[first:last] - start]


BLOCK = 8192
PAIRS = 16384
ROUNDING = 4e-6
"""Relative error that a blocked float32 product may carry; candidates this close to the k-th are scored again."""


def exact_search(
    vectors: VectorSource,
    queries: np.ndarray,
    k: int,
    *,
    allowed: np.ndarray | None = None,
    rows: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest inner products among all rows, those where `allowed` is true, or `rows`.

    Args:
        vectors: The stored vectors; read in blocks, so memory stays flat.
        queries: float32 [m, d].
        k: Answers per query, at least 1.
        allowed: bool [number of rows].
        rows: int64, in any order; duplicates count once. Takes the place of `allowed`.

    Returns:
        Scores float32 [m, k], highest first, and rows int64 [m, k]. Equal scores are ordered by row; missing
        places hold -inf and -1.

    Raises:
        UsageError: k below 1, or queries or masks that do not fit the vectors.
    """
    queries = as_queries(queries, vectors.dimension, k)
    if rows is not None:
        wanted = np.unique(np.asarray(rows, dtype=np.int64))
    elif allowed is not None:
        wanted = np.flatnonzero(allowed)
    else:
        wanted = np.arange(len(vectors), dtype=np.int64)
    best = Best(len(queries), k)
    for block, values in row_blocks(vectors, wanted):
        for start in range(0, len(queries), 1024):
            part = slice(start, start + 1024)
            query, column = _near_the_top(queries[part], values, best.scores[part, -1], k)
            query += start
            best.add(query, block[column], inner_products(queries, query, values, column))
    return best.scores, best.rows


def as_queries(queries: np.ndarray, dimension: int, k: int) -> np.ndarray:
    """The queries as contiguous float32 [m, dimension]; UsageError if they or k is not valid."""
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise UsageError(f"queries have shape {queries.shape}, the vectors need (n, {dimension})")
    if k < 1:
        raise UsageError(f"k is {k}; ask for at least 1 neighbour")
    return queries


def inner_products(queries: np.ndarray, query: np.ndarray, vectors: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Inner products of the pairs (queries[query[i]], vectors[column[i]]), float32.

    Every score that leaves this package is computed here, pair by pair in one order of summation, so that equal
    vectors get equal scores to the last bit wherever they lie.
    """
    scores = np.empty(len(query), dtype=np.float32)
    for start in range(0, len(query), PAIRS):
        part = slice(start, start + PAIRS)
        scores[part] = np.einsum("ij,ij->i", queries[query[part]], vectors[column[part]])
    return scores


class Best:
    """The best k rows seen so far of each of m queries."""

    def __init__(self, m: int, k: int) -> None:
        self.scores = np.full((m, k), -np.inf, dtype=np.float32)
        self.rows = np.full((m, k), -1, dtype=np.int64)

    def add(self, query: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> None:
        """Merge scored rows, each seen once in the object's life, given as flat arrays over (query, row)."""
        if not len(query):
            return
        touched = np.unique(query)
        held_query, held_place = np.nonzero(self.rows[touched] >= 0)
        held = touched[held_query], held_place
        query = np.concatenate([held[0], query])
        scores = np.concatenate([self.scores[held], scores])
        rows = np.concatenate([self.rows[held], rows])
        order = np.lexsort((rows, -scores, query))
        query, scores, rows = query[order], scores[order], rows[order]
        starts = np.searchsorted(query, touched)
        place = np.arange(len(query)) - np.repeat(starts, np.diff(np.append(starts, len(query))))
        kept = place < self.rows.shape[1]
        self.scores[query[kept], place[kept]] = scores[kept]
        self.rows[query[kept], place[kept]] = rows[kept]


def _near_the_top(queries: np.ndarray, vectors: np.ndarray, floor: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (query, column) that may be among the best k, given each query's k-th score so far."""
    scores = queries @ vectors.T
    slack = ROUNDING * np.abs(scores).max(axis=1, initial=0)
    if scores.shape[1] > k and np.isneginf(floor).any():
        floor = np.maximum(floor, np.partition(scores, -k, axis=1)[:, -k])
    query, column = np.nonzero(scores >= (floor - slack)[:, None])
    return query, column

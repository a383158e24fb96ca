"""What the index reads from: rows of vectors, wherever they lie."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

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
        return widen(self.half[rows])

    def chunks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in order, as (first row, float32 block)."""
        for start in range(0, len(self.half), size):
            yield start, widen(self.half[start : start + size])


def widen(half: np.ndarray) -> np.ndarray:
    """float16 values as float32, exactly: a table look-up, five times as fast as NumPy's `astype`."""
    return _WIDE[half.view(np.uint16)]


def row_blocks(source: VectorSource, rows: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The vectors of ascending `rows` in blocks of at most `size`, as (rows int64 [m], float32 [m, d]).

    A dense selection is cut out of a sequential pass; a sparse one is gathered.
    """
    if 3 * len(rows) < len(source):
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            yield block, source.read(block)
        return
    for start, vectors in source.chunks(size):
        first, last = np.searchsorted(rows, (start, start + len(vectors)))
        if last - first == len(vectors):
            yield rows[first:last], vectors
        elif last > first:
            yield rows[first:last], vectors[rows[first:last] - start]

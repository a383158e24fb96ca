"""Vectors on disk: append-only float16 segments, memory-mapped, numbered as one long matrix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .ann import widen
from .errors import SondeError
from .files import sha256, write_durably


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of vectors: rows `start` to `start + count` of the collection."""

    number: int
    start: int
    count: int
    sha256: str

    def path(self, folder: Path) -> Path:
        """Return the segment's file inside the folder of vectors."""
        return folder / f"{self.number:06d}.npy"


def write_segment(folder: Path, number: int, start: int, vectors: np.ndarray) -> Segment:
    """Write vectors [n, d] as the float16 segment `number`; it exists once a transaction names it."""
    path = folder / f"{number:06d}.npy"
    write_durably(path, lambda stream: np.save(stream, vectors.astype(np.float16), allow_pickle=False))
    return Segment(number, start, len(vectors), sha256(path))


class Segments:
    """Read access to all vectors of one generation; rows keep their numbers over all segments."""

    def __init__(self, folder: Path, segments: Sequence[Segment], dimension: int) -> None:
        self.dimension = dimension
        self._starts = np.array([segment.start for segment in segments], dtype=np.int64)
        self._maps = [_open(segment, folder, dimension) for segment in segments]
        self._rows = segments[-1].start + segments[-1].count if segments else 0

    def __len__(self) -> int:
        return self._rows

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of `rows` (int64 [n], in any order) as float32 [n, d]."""
        rows = np.asarray(rows, dtype=np.int64)
        found = np.empty((len(rows), self.dimension), dtype=np.float16)
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        for owner in np.unique(owners):
            mine = owners == owner
            found[mine] = self._maps[owner][rows[mine] - self._starts[owner]]
        return widen(found)

    def chunks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, float32 [m, d]) over all rows in order, at most `size` rows at a time."""
        for start, vectors in zip(self._starts, self._maps, strict=True):
            for offset in range(0, len(vectors), size):
                yield int(start) + offset, widen(np.ascontiguousarray(vectors[offset : offset + size]))


def _open(segment: Segment, folder: Path, dimension: int) -> np.ndarray:
    path = segment.path(folder)
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise SondeError(f"vector segment {path} is damaged ({error}): run `sonde repair {folder.parent}`") from None
    if vectors.shape != (segment.count, dimension) or vectors.dtype != np.float16:
        raise SondeError(
            f"vector segment {path} holds {vectors.dtype} {vectors.shape}, expected float16 "
            f"({segment.count}, {dimension}): run `sonde repair {folder.parent}`"
        )
    return vectors

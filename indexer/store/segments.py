"""Vectors on disk: append-only float16 segments, numbered as one long matrix."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np

from ..ann import to_float32
from ..errors import SondeError
from ..files import sha256, write_durably
from ..small_files import reading_array
from ..wording import counted
from .lock import whole_of

SCATTERED = 1_024
"""Up to this many rows are read one by one, more through a mapping."""
KEPT = 32 << 20
"""Bytes of vectors up to which the mapping is kept: a few rows are read from it in a third of the time."""
OFF = 0.02
"""How far the squared length of a normalised embedding may be from 1; float16 rounds it by 0.001."""


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
    return write_parts(folder, number, start, [vectors.astype(np.float16)])


def write_parts(folder: Path, number: int, start: int, parts: Sequence[np.ndarray]) -> Segment:
    """Write float16 [n, d] parts, one after the other, as the segment `number`."""
    path, count = folder / f"{number:06d}.npy", sum(len(part) for part in parts)
    header = {"descr": "<f2", "fortran_order": False, "shape": (count, parts[0].shape[1])}

    def write(stream: IO[bytes]) -> None:
        np.lib.format.write_array_header_1_0(stream, header)
        for part in parts:
            stream.write(np.ascontiguousarray(part).data.cast("B"))

    write_durably(path, write)
    return Segment(number, start, count, sha256(path))


class Segments:
    """Read access to all vectors of one generation; rows keep their numbers over all segments.

    Files are opened once and stay readable after `compact` or a merge has removed them. If they are large, they are
    mapped only while many rows are read, so that they do not count as memory of a process that serves searches.

    If the embeddings are `normalized`, each one that is read is checked: FAISS keeps copies of its own, so a search
    finds a row whose stored embedding is damaged, and would give it a false score.
    """

    def __init__(self, folder: Path, segments: Sequence[Segment], dimension: int, *, normalized: bool = False) -> None:
        self.dimension = dimension
        self._folder = folder
        self._normalized = normalized
        self._starts = np.array([segment.start for segment in segments], dtype=np.int64)
        for before, segment in pairwise(segments):
            if segment.start != before.start + before.count:
                raise _damaged(segment.path(folder), f"its first row is {segment.start:,}")
        self._files = [_File(segment, folder, dimension) for segment in segments]
        self._rows = segments[-1].start + segments[-1].count if segments else 0
        self._small = self._rows * dimension * 2 <= KEPT

    def __len__(self) -> int:
        return self._rows

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of `rows` (int64 [n], in any order) as float32 [n, d].

        Raises:
            SondeError: A row does not exist, or its embedding is damaged.
        """
        rows = np.asarray(rows, dtype=np.int64)
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        if len(rows) and (owners.min() < 0 or rows.max() >= self._rows):
            raise SondeError(f"rows {rows.min():,} to {rows.max():,} are not all in the segments: run `sonde verify`")
        if len(rows) <= SCATTERED and not self._small and hasattr(os, "pread"):
            return self._checked(to_float32(self._one_by_one(rows, owners)))
        if len(self._files) == 1:
            return self._checked(to_float32(self._files[0].mapped(self._small)[rows]))
        found = np.empty((len(rows), self.dimension), dtype=np.float16)
        for owner in np.unique(owners):
            mine = owners == owner
            found[mine] = self._files[owner].mapped(self._small)[rows[mine] - self._starts[owner]]
        return self._checked(to_float32(found))

    def _checked(self, vectors: np.ndarray) -> np.ndarray:
        """Return float32 [n, d] vectors that can be used.

        Zeros are accepted, although a lost page of a file reads as zeros, too. A static model, or an encoder of the
        caller's own, embeds a text without known words as zeros, and `sonde repair` writes zeros for lost embeddings of
        deleted passages, which scans read. `sonde verify` tells them apart by the digest of the file.
        """
        if self._normalized:
            squares = np.einsum("ij,ij->i", vectors, vectors)
            sound = (np.abs(squares - 1) <= OFF) | (squares == 0)
            if not sound.all():
                whole = whole_of(self._folder.parent)
                said = f"{counted(int((~sound).sum()), 'embedding')} read from {self._folder} cannot be right"
                raise SondeError(f"{whole} is damaged ({said}): run `sonde verify {whole}`", code="damaged")
        return vectors

    def _one_by_one(self, rows: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """Return float16 [n, d]. Grouping a few rows by file takes longer than reading them."""
        size = self.dimension * 2
        files = [(file.descriptor, file.offset) for file in self._files]
        places = zip(owners.tolist(), (rows - self._starts[owners]).tolist(), strict=True)
        parts = [os.pread(files[owner][0], size, files[owner][1] + row * size) for owner, row in places]
        return np.frombuffer(b"".join(parts), dtype=np.float16).reshape(-1, self.dimension)

    def chunks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, float32 [m, d]) over all rows in order, at most `size` rows at a time."""
        for start, file in zip(self._starts, self._files, strict=True):
            vectors = file.mapped()
            for offset in range(0, len(vectors), size):
                part = np.ascontiguousarray(vectors[offset : offset + size])
                yield int(start) + offset, self._checked(to_float32(part))

    def raw(self) -> Iterator[np.ndarray]:
        """Yield the float16 [n, d] vectors of each segment in order, mapped and not copied."""
        return (file.mapped() for file in self._files)


class _File:
    """One open segment."""

    def __init__(self, segment: Segment, folder: Path, dimension: int) -> None:
        path = segment.path(folder)
        self._stream = path.open("rb")
        self._shape = (segment.count, dimension)
        self._kept: np.ndarray | None = None
        try:
            with reading_array():
                shape, kind = _header(self._stream)
        except ValueError as error:
            raise _damaged(path, str(error)) from None
        self.descriptor, self.offset = self._stream.fileno(), self._stream.tell()
        if shape != self._shape or kind != np.float16:
            raise _damaged(path, f"it holds {kind} {shape}, expected float16 {self._shape}")
        if os.fstat(self._stream.fileno()).st_size != self.offset + segment.count * dimension * 2:
            raise _damaged(path, "it is cut off")

    def mapped(self, keep: bool = False) -> np.ndarray:
        """Return all vectors, float16 [n, d], mapped for as long as they are used, or as the file is open."""
        if self._kept is not None:
            return self._kept
        vectors = np.asarray(np.memmap(self._stream, np.float16, "r", self.offset, self._shape))
        self._kept = vectors if keep else None
        return vectors


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Read the header of a .npy file and leave the stream at its data."""
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("it is not a .npy file of version 1.0")
    shape, transposed, kind = np.lib.format.read_array_header_1_0(stream)
    if transposed:
        raise ValueError("its rows are not contiguous")
    return shape, kind


def _damaged(path: Path, why: str) -> SondeError:
    said = f"vector segment {path} is damaged ({why}): run `sonde repair {whole_of(path.parent.parent)}`"
    return SondeError(said, code="damaged")

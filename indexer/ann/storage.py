"""An index on disk: `info.json` names a generation, the FAISS file, and the rows behind each vector."""

import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b, file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SondeError
from ..files import CHECK_DISK, DISK_FAILED, WINDOWS, replace_file, share, sync_file, sync_folder
from ..small_files import read_json, reading_array
from .devices import faiss
from .exact import VectorSource, row_blocks
from .settings import AnnInfo


@dataclass(frozen=True)
class Nodes:
    """Distinct vectors (nodes, numbered as FAISS numbers them) and the rows that hold each.

    Rows with equal vectors share a node: a thousand identical texts would otherwise link only to each other in an
    HNSW graph, and cut off what lies behind them. `node` (int64 [r]) ascends, and `rows` (int64 [r]) within it.
    """

    node: np.ndarray
    rows: np.ndarray

    @classmethod
    def distinct(cls, vectors: VectorSource, rows: np.ndarray) -> "Nodes":
        """The nodes of ascending `rows`, numbered by first appearance."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64)).extended(vectors, rows)

    def __len__(self) -> int:
        return int(self.node[-1]) + 1 if len(self.node) else 0

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the rows of each node begin in `rows`; one entry more than nodes."""
        return np.searchsorted(self.node, np.arange(len(self) + 1))

    @cached_property
    def first(self) -> np.ndarray:
        """The first row of each node."""
        return self.rows[self.starts[:-1]]

    def extended(self, vectors: VectorSource, rows: np.ndarray) -> "Nodes":
        """With more rows: to the node that has their vector already, or to new nodes at the end."""
        known = _fingerprints(vectors, self.first)
        _, earliest, group = np.unique(
            np.concatenate([known, _fingerprints(vectors, rows)]), return_index=True, return_inverse=True
        )
        number = np.empty(len(earliest), dtype=np.int64)
        number[np.argsort(earliest)] = np.arange(len(earliest))
        node = np.concatenate([self.node, number[group[len(known) :]]])
        return Nodes._sorted(node, np.concatenate([self.rows, rows]))

    def moved_last(self, chosen: np.ndarray) -> "Nodes":
        """The same nodes renumbered, the `chosen` ones (node numbers) after all others."""
        last = np.zeros(len(self), dtype=bool)
        last[chosen] = True
        number = np.empty(len(self), dtype=np.int64)
        number[np.argsort(last, kind="stable")] = np.arange(len(self))
        return Nodes._sorted(number[self.node], self.rows)

    def head(self, count: int) -> "Nodes":
        """The first `count` nodes alone."""
        end = np.searchsorted(self.node, count)
        return Nodes(self.node[:end], self.rows[:end])

    def under(self, allowed: np.ndarray) -> "Admitted":
        """What a mask over the rows (bool, at least as long as they reach) leaves."""
        kept = allowed[self.rows]
        if kept.all():
            return Admitted(None, None, len(self), len(self.rows))
        nodes = np.zeros(len(self), dtype=bool)
        nodes[self.node[kept]] = True
        return Admitted(allowed, np.packbits(nodes, bitorder="little"), int(nodes.sum()), int(kept.sum()))

    def rows_of(self, nodes: np.ndarray, allowed: np.ndarray | None, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """The admitted rows behind `nodes`, as (place in `nodes`, row); at most `limit`, the lowest, of each."""
        first = self.starts[nodes]
        count = self.starts[nodes + 1] - first
        if allowed is None:
            count = np.minimum(count, limit)
        place = np.repeat(np.arange(len(nodes)), count)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        rows = self.rows[first[place] + offset]
        if allowed is None:
            return place, rows
        kept = allowed[rows]
        return place[kept], rows[kept]

    @classmethod
    def _sorted(cls, node: np.ndarray, rows: np.ndarray) -> "Nodes":
        order = np.lexsort((rows, node))
        return cls(node[order], rows[order])


@dataclass(frozen=True)
class Admitted:
    """The part of an index that a search may answer from.

    `allowed` is the mask over rows and `bitmap` (uint8, one bit a node, lowest first) that over nodes; both None where
    all are admitted. `nodes` and `rows` count what is left.
    """

    allowed: np.ndarray | None
    bitmap: np.ndarray | None
    nodes: int
    rows: int


def _fingerprints(vectors: VectorSource, rows: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each vector. `rows` need not ascend."""
    order = np.argsort(rows, kind="stable")
    hashes = [
        blake2b(vector, digest_size=8).digest()
        for _, block in row_blocks(vectors, rows[order])
        for vector in np.ascontiguousarray(block)
    ]
    result = np.empty(len(rows), dtype=np.uint64)
    result[order] = np.frombuffer(b"".join(hashes), dtype=np.uint64)
    return result


INFO, INDEX, ROWS = "info.json", "index.faiss", "rows.npy"


def write_index(index: Any, nodes: Nodes, info: AnnInfo, folder: Path) -> AnnInfo:
    """Write a FAISS index with its nodes so that a reader finds either the old one whole or the new one whole.

    Returns:
        The description with its digest and true size.

    Raises:
        SondeError: The folder cannot be written, or the disk is full; the index that was there is untouched.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder, ignore_cleanup_errors=True) as name:
            return _publish(index, nodes, info, folder, Path(name))
    except (OSError, RuntimeError) as error:
        said = f"the index cannot be written to {folder} ({error}): {CHECK_DISK}"
        raise SondeError(said, code=DISK_FAILED) from error


MOST_DEAD, SLACK = 4, 1_000_000
"""Maximum number of covered rows for each row in the index, and rows beyond that; it is rebuilt long before."""
UNREADABLE = (SondeError, OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, MemoryError)
"""What the bytes of a damaged index can raise."""


def read_index(folder: Path, *, mapped_from: int | None = None) -> tuple[Any, Nodes, AnnInfo]:
    """The index that was saved in `folder`, checked against its digest.

    Args:
        folder: Where `write` put it.
        mapped_from: Leave the codes of an index of this many bytes or more on disk, and let the system page them in.

    Raises:
        SondeError: It is missing, damaged, or of an unknown form; it can be rebuilt from the vectors.
    """
    try:
        info = _info(folder)
        try:
            return _read(folder, info, mapped_from)
        except (SondeError, OSError):
            # A writer may have replaced the generation between the two reads.
            newer = _info(folder)
            if newer.digest == info.digest:
                raise
            return _read(folder, newer, mapped_from)
    except UNREADABLE as error:
        raise SondeError(
            f"the vector index in {folder} cannot be used ({error}); rebuild it from the embeddings"
        ) from error


def checked_info(folder: Path) -> AnnInfo | None:
    """The description of an index that this process has read whole, if its files are still the same; else None.

    A caller that only needs to know what the index covers does not read hundreds of megabytes again.
    """
    try:
        info = _info(folder)
        return info if _CHECKED.get(folder) == _stamp(folder / info.digest[:16], info) else None
    except UNREADABLE:
        return None


_Stamp = tuple[str, tuple[tuple[int, int, int], ...]]
_CHECKED: dict[Path, _Stamp] = {}
"""By folder: the digest of the index that was read there, and what its files looked like."""


def _stamp(generation: Path, info: AnnInfo) -> _Stamp:
    states = [(generation / name).stat() for name in (INDEX, ROWS)]
    return info.digest, tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states)


def _info(folder: Path) -> AnnInfo:
    return AnnInfo.from_dict(read_json(folder / INFO))


def _read(folder: Path, info: AnnInfo, mapped_from: int | None) -> tuple[Any, Nodes, AnnInfo]:
    generation = folder / info.digest[:16]
    before = _stamp(generation, info)
    if _digest(generation) != info.digest:
        raise SondeError("its content does not match its digest")
    nodes = _nodes(generation / ROWS, info)
    flags = faiss().IO_FLAG_MMAP_IFC if is_mapped(info, mapped_from) else 0
    index = _index(generation / INDEX, flags)
    if index.ntotal != len(nodes) or index.d != info.dimension:
        raise SondeError(f"it holds {index.ntotal} vectors of {index.d} numbers, not {len(nodes)} of {info.dimension}")
    _CHECKED[folder] = before
    return index, nodes, info


def is_mapped(info: AnnInfo, mapped_from: int | None) -> bool:
    """Whether `read_index` leaves the codes of an index on disk."""
    return mapped_from is not None and info.bytes >= mapped_from


def _index(path: Path, flags: int) -> Any:
    if WINDOWS and not str(path).isascii():  # there, FAISS opens only files whose whole path is ASCII
        with path.open("rb") as stream:
            return faiss().read_index(faiss().PyCallbackIOReader(stream.read))
    return faiss().read_index(str(path), flags)


def _nodes(path: Path, info: AnnInfo) -> Nodes:
    """Read which rows hold which vector, and check that the numbers fit the index."""
    with reading_array():
        node, rows = np.load(path, allow_pickle=False)
    steps = np.diff(node, prepend=-1) if len(node) else node
    if node.dtype != np.int64 or rows.dtype != np.int64 or ((steps != 0) & (steps != 1)).any() or node[:1].any():
        raise SondeError("its vectors are not numbered in order")
    if len(rows) and (rows.min() < 0 or rows.max() >= info.rows or np.bincount(rows).max() > 1):
        raise SondeError(f"its rows are not among the first {info.rows}")
    if info.rows > MOST_DEAD * len(rows) + SLACK:
        raise SondeError(f"it has {len(rows):,} rows, but is recorded as covering {info.rows:,}")
    return Nodes(node, rows)


def _publish(index: Any, nodes: Nodes, info: AnnInfo, folder: Path, new: Path) -> AnnInfo:
    """Sync the new files, give them their name, point `info.json` at it, and only then sweep what it replaces."""
    with (new / INDEX).open("wb") as stream:  # FAISS's own file does not report an error at its end
        faiss().write_index(index, faiss().PyCallbackIOWriter(stream.write))
    np.save(new / ROWS, np.stack([nodes.node, nodes.rows]))
    size = sum((new / name).stat().st_size for name in (INDEX, ROWS))
    info = replace(info, digest=_digest(new), bytes=size)
    (new / INFO).write_text(json.dumps(info.to_dict(), indent=1), "utf-8")
    for path in new.iterdir():
        sync_file(path)
    sync_folder(new)
    generation = folder / info.digest[:16]
    (new / INFO).replace(folder / f"{INFO}.new")
    if generation.exists():
        shutil.rmtree(generation)
    share(new)
    new.rename(generation)
    replace_file(folder / f"{INFO}.new", folder / INFO)
    sync_folder(folder)
    for other in folder.iterdir():
        if other.is_dir() and other != generation:
            shutil.rmtree(other, ignore_errors=True)
    return info


def _digest(generation: Path) -> str:
    """SHA-256 over the SHA-256 of each file."""
    whole = sha256()
    for name in (INDEX, ROWS):
        with (generation / name).open("rb") as file:
            whole.update(file_digest(file, "sha256").digest())
    return whole.hexdigest()

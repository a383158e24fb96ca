"""Where vectors are searched: in main memory, or on a GPU while it has memory for them."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..errors import UsageError
from ..progress import tell
from .devices import out_of_memory
from .exact import BLOCK, VectorSource
from .gpu import Copy, Found, Gpu, Scan, gpu_of, graph, scan_of
from .kinds import GPU_SCAN_VECTORS
from .settings import GPU_KINDS, Kind
from .storage import Admitted, Nodes

T = TypeVar("T")

SMALL_SUBSET = 5_000
"""Up to this many vectors are read and scored directly, without an inverted file or a GPU."""
LARGEST_SUBSET = 500_000
"""If a GPU takes no filter, it gets a copy of the vectors that pass the filter, up to this many."""
WIDER = 4
"""A scan on a GPU returns this many times the answers, because it rounds queries and may swap near ties."""
AT_LEAST = 32


class Place:
    """Main memory: FAISS on the CPU answers, so each method that a GPU would answer returns None."""

    name = "cpu"

    def compares_all(self, kind: Kind) -> bool:
        """Whether an index of this kind is scanned here, although it is not an exact one."""
        return False

    def find(
        self, kind: Kind, index: Any, queries: np.ndarray, count: int, breadth: int, admitted: Admitted
    ) -> Found | None:
        """The nearest nodes; None: search the index in main memory."""
        return None

    def find_among(
        self, queries: np.ndarray, count: int, admitted: Admitted, nodes: Nodes, vectors: VectorSource
    ) -> Found | None:
        """The same by a scan of the admitted nodes alone."""
        return None

    def newer(
        self, queries: np.ndarray, count: int, rows: np.ndarray, start: int, vectors: VectorSource
    ) -> Found | None:
        """The nearest of ascending `rows`, all from row `start` on, counted from there; None: scan them here."""
        return None

    def takes_filter(self, kind: Kind) -> bool:
        """Whether `find` applies a bitmap."""
        return False

    def graph(self, vectors: VectorSource, rows: np.ndarray) -> Any:
        """A CAGRA graph over `rows`; UsageError on a CPU."""
        raise UsageError("a graph of kind 'cagra' is built on a GPU: choose another kind for this CPU")


IN_MEMORY = Place()


class OnGpu(Place):
    """One GPU and what it holds: an index's vectors, those that pass a filter, and the newer rows.

    If its memory is too small, queries go in smaller batches. If that does not help either, the CPU answers from then
    on, and a notice says so once.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.name = gpu.name
        self._full = False
        self._held: tuple[Any, int, Scan | Copy] | None = None
        self._subset: tuple[np.ndarray, Scan] | None = None
        self._tail: tuple[int, Scan] | None = None

    def compares_all(self, kind: Kind) -> bool:
        """An HNSW graph over float16 vectors has no GPU form, but its vectors have one."""
        return kind == "hnsw" and not self._full

    def find(
        self, kind: Kind, index: Any, queries: np.ndarray, count: int, breadth: int, admitted: Admitted
    ) -> Found | None:
        """The nearest nodes; None if the GPU cannot find them."""

        def ask() -> Found | None:
            held = self._of(kind, index)
            if isinstance(held, Scan):
                return held.search(queries, _wider(count, admitted.nodes), admitted.bitmap)
            return held.search(queries, count, breadth, admitted.bitmap)

        return self._unless_full(ask)

    def find_among(
        self, queries: np.ndarray, count: int, admitted: Admitted, nodes: Nodes, vectors: VectorSource
    ) -> Found | None:
        """A scan of the admitted nodes, which stay on the GPU for the next search with the same mask."""
        bitmap = admitted.bitmap
        if bitmap is None or not SMALL_SUBSET < admitted.nodes <= LARGEST_SUBSET:
            return None
        chosen = np.flatnonzero(np.unpackbits(bitmap, count=len(nodes), bitorder="little"))

        def ask() -> Found | None:
            if self._subset is None or self._subset[0] is not bitmap:
                self._subset = None  # free the memory of the old one before the new one is made
                scan = Scan(self.gpu, vectors.dimension)
                for begin in range(0, len(chosen), 4 * BLOCK):
                    scan.add(vectors.read(nodes.first[chosen[begin : begin + 4 * BLOCK]]))
                self._subset = bitmap, scan
            return self._subset[1].search(queries, _wider(count, admitted.nodes))

        found = self._unless_full(ask)
        return None if found is None else Found(_numbered(chosen, found.nodes), found.unseen)

    def newer(
        self, queries: np.ndarray, count: int, rows: np.ndarray, start: int, vectors: VectorSource
    ) -> Found | None:
        """A scan of the rows after `start`, which stay on the GPU and grow with the collection."""
        if len(rows) <= SMALL_SUBSET:
            return None

        def ask() -> Found | None:
            if self._tail is None or self._tail[0] != start:
                self._tail = start, Scan(self.gpu, vectors.dimension)
            tail = self._tail[1]
            for begin in range(start + len(tail), int(rows[-1]) + 1, BLOCK):
                tail.add(vectors.read(np.arange(begin, min(begin + BLOCK, int(rows[-1]) + 1))))
            bitmap = None
            if len(rows) < len(tail):
                if not self.takes_filter("exact"):
                    return None
                inside = np.zeros(len(tail), dtype=bool)
                inside[rows - start] = True
                bitmap = np.packbits(inside, bitorder="little")
            return tail.search(queries, _wider(count, len(rows)), bitmap)

        return self._unless_full(ask)

    def takes_filter(self, kind: Kind) -> bool:
        """With cuVS, all but float16 inverted files."""
        return self.gpu.filters("exact" if kind == "hnsw" else kind)

    def graph(self, vectors: VectorSource, rows: np.ndarray) -> Any:
        """A CAGRA graph over `rows`, in the form that a CPU can search too."""
        return graph(self.gpu, vectors, rows)

    def _of(self, kind: Kind, index: Any) -> Scan | Copy:
        """The GPU's copy of the index, sent again if vectors were added since."""
        if self._held is None or self._held[0] is not index or self._held[1] != index.ntotal:
            self._held = self._subset = self._tail = None
            scanned = kind in ("exact", "hnsw")
            form = scan_of(self.gpu, _codes(kind, index)) if scanned else Copy(self.gpu, kind, index)
            self._held = index, int(index.ntotal), form
        return self._held[2]

    def _unless_full(self, ask: Callable[[], T | None]) -> T | None:
        if self._full:
            return None
        try:
            with self.gpu.lock:
                return ask()
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
        self._full = True
        self._held = self._subset = self._tail = None
        tell(f"{self.name} has no memory left for the index: the CPU searches it")
        return None


def place_for(kind: Kind, vectors: int, device: str) -> Place:
    """Where an index of this kind and number of vectors is searched; `device` as `search_device` names it."""
    if device == "cpu" or not (kind in GPU_KINDS or (kind == "hnsw" and vectors <= GPU_SCAN_VECTORS)):
        return IN_MEMORY
    return OnGpu(gpu_of(device))


def _codes(kind: Kind, index: Any) -> Any:
    from .devices import faiss

    return faiss().downcast_index(index.storage) if kind == "hnsw" else index


def _wider(count: int, most: int) -> int:
    return min(WIDER * count + AT_LEAST, most)


def _numbered(chosen: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Numbers within a subset as numbers of nodes; -1 stays."""
    return np.where(found >= 0, chosen[found], -1)

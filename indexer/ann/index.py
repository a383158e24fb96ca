"""A FAISS index over the distinct vectors of a collection, and the search that rescores what it finds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SondeError, UsageError
from . import kinds
from .exact import Best, VectorSource, as_queries, exact_search, inner_products
from .gpu import GpuIndex
from .settings import GPU_KINDS, AnnInfo, Device
from .storage import Admitted, Nodes, read_index, write_index
from .tuning import Notify, grow, held_out, say_nothing, timed

QUERIES = 512
SAMPLE = 1_000
"""Vectors that an index is made for to see what its kind consists of."""
CODES_PER_STEP = 32
"""Codes that a scan under a filter reads in the time of one step of a graph search (0.15 us against 5)."""
SMALL_SUBSET = 5_000
"""Vectors that are read and scored at once rather than looked for in an inverted file."""
SPARE = 4
"""Candidates beyond those asked for, since FAISS rounds its sums otherwise and may swap near ties at the end."""
DEPTH = 0.25
"""Recall@k stays level when the breadth grows with this power of k (200,000 vectors, k from 10 to 100)."""

_NOTHING: tuple[np.ndarray | None, Admitted] = (None, Admitted(None, None, 0, 0))


class AnnIndex:
    """An index that answers with exact scores.

    FAISS proposes candidates; their scores are then computed from the stored vectors, so that a score does not depend
    on the kind of index. Searching is safe from several threads at once. On device "cuda" a copy on the GPU answers
    what has no filter.
    """

    def __init__(self, index: Any, nodes: Nodes, info: AnnInfo, device: Device = "cpu", mapped: bool = False) -> None:
        self.index = index
        self.nodes = nodes
        self.info = info
        self.device: Device = device
        self._mapped = mapped
        self._gpu = GpuIndex(info.kind, index) if device == "cuda" else None
        self._remembered = _NOTHING

    def search(
        self, queries: np.ndarray, k: int, *, allowed: np.ndarray | None = None, vectors: VectorSource
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k rows with the largest inner product, for each query.

        Args:
            queries: float32 [m, d].
            k: Answers per query, at least 1.
            allowed: bool [rows]: only these rows may be answers; entries beyond `info.rows` are ignored. Where the same
                mask serves many searches, make it read-only: it is then prepared once.
            vectors: The source that the index was built from; it may have grown since.

        Returns:
            Scores float32 [m, k], highest first, and rows int64 [m, k]. Equal scores are ordered by row; places
            beyond the min(k, number of allowed rows) answers hold -inf and -1.

        Raises:
            UsageError: k below 1, or queries or a mask that do not fit the vectors.
        """
        queries = as_queries(queries, self.info.dimension, k)
        if allowed is not None and len(allowed) < self.info.rows:
            raise UsageError(f"the mask covers {len(allowed)} rows, the index {self.info.rows}")
        admitted = self._admitted(allowed)
        best = Best(len(queries), k)
        for start in range(0, len(queries), QUERIES):
            part = slice(start, start + QUERIES)
            best.scores[part], best.rows[part] = self._search_block(queries[part], k, admitted, vectors)
        return best.scores, best.rows

    def scans(self, k: int, admitted: int) -> bool:
        """Whether a search for k among `admitted` vectors compares with each of them, and so is exact."""
        total = len(self.nodes)
        if self.info.kind == "exact":
            return True
        if kinds.is_graph(self.info.kind):
            return admitted * admitted / total <= CODES_PER_STEP * self._breadth(k, 1.0)
        return admitted <= max(SMALL_SUBSET, 2 * k * self.info.factor)

    def _breadth(self, k: int, share: float) -> int:
        """The tuned efSearch or nprobe, raised for many answers and for a filter that admits `share`.

        Searches ask for four times the answers that are wanted, so up to 20 the breadth tuned for 10 will do.
        """
        return int(self.info.breadth / share * max(1.0, k / 20) ** DEPTH)

    def _admitted(self, allowed: np.ndarray | None) -> Admitted:
        """What the mask leaves. A mask that cannot be written to is worked out once and remembered."""
        if allowed is None or allowed[: self.info.rows].all():
            return Admitted(None, None, len(self.nodes), len(self.nodes.rows))
        mask, admitted = self._remembered
        if mask is allowed:
            return admitted
        admitted = self.nodes.under(allowed)
        if not allowed.flags.writeable:
            self._remembered = allowed, admitted
        return admitted

    def _search_block(
        self, queries: np.ndarray, k: int, admitted: Admitted, vectors: VectorSource
    ) -> tuple[np.ndarray, np.ndarray]:
        best = Best(len(queries), k)
        found = self._candidates(queries, k, admitted)
        query, column = np.nonzero(found >= 0)
        nodes = found[query, column]
        distinct, inverse = np.unique(nodes, return_inverse=True)
        scores = inner_products(queries, query, vectors.read(self.nodes.first[distinct]), inverse)
        place, rows = self.nodes.rows_of(nodes, admitted.allowed, k)
        best.add(query[place], rows, scores[place])
        short = np.flatnonzero((best.rows >= 0).sum(axis=1) < min(k, admitted.rows))
        if len(short):
            rows = self.nodes.rows if admitted.allowed is None else self.nodes.rows[admitted.allowed[self.nodes.rows]]
            best.scores[short], best.rows[short] = exact_search(vectors, queries[short], k, rows=rows)
        return best.scores, best.rows

    def _candidates(self, queries: np.ndarray, k: int, admitted: Admitted) -> np.ndarray:
        """Nodes to be scored, int64 [m, candidates]; none where reading the rows themselves is the better way."""
        kind = self.info.kind
        wanted = min(k * self.info.factor + SPARE, admitted.nodes)
        if self._gpu is not None and admitted.bitmap is None and wanted:
            found = self._gpu.candidates(queries, wanted, self._breadth(k, 1.0))
            if found is not None:
                return found
        if not self.scans(k, admitted.nodes):
            breadth = self._breadth(k, admitted.nodes / len(self.nodes))
            return kinds.candidates(kind, self.index, queries, wanted, breadth, admitted.bitmap)
        if admitted.nodes and (kind == "exact" or kinds.is_graph(kind)):
            return kinds.scan(kind, self.index, queries, wanted, admitted.bitmap)
        return np.empty((len(queries), 0), dtype=np.int64)

    def tuned(self, breadth: int, factor: int) -> "AnnIndex":
        """The same index searched with other parameters."""
        parameters = kinds.parameters(self.info.kind, self.index, breadth, factor)
        return self.over(self.nodes, replace(self.info, parameters=parameters))

    def save(self, folder: Path) -> AnnInfo:
        """Write it to `folder` so that a reader finds the old index whole or the new one; `load` reads it.

        Raises:
            SondeError: The folder cannot be written; what was there is untouched.
        """
        self.info = write_index(self.index, self.nodes, self.info, folder)
        return self.info

    def over(self, nodes: Nodes, info: AnnInfo | None = None) -> "AnnIndex":
        """The same FAISS index with other nodes or another description."""
        return AnnIndex(self.index, nodes, info or self.info)

    def add(
        self,
        vectors: VectorSource,
        start: int,
        stop: int,
        *,
        alive: np.ndarray | None = None,
        notify: Notify = say_nothing,
    ) -> AnnInfo:
        """Index the rows from `start`, the first that is not yet covered, up to `stop`.

        Recall is measured again, with some of the new vectors as queries before they go in; where it has fallen below
        the target, the search is tuned again. Nobody may search this object meanwhile.

        Raises:
            UsageError: The rows do not follow those that are covered, or do not exist; or the index is memory-mapped.
        """
        if self._mapped:
            raise UsageError("a memory-mapped index takes no rows; load it without mmap to add to it")
        if start != self.info.rows or not start <= stop <= len(vectors):
            raise UsageError(
                f"rows {start} to {stop} cannot be added: the index covers {self.info.rows} of {len(vectors)}"
            )
        rows = np.arange(start, stop) if alive is None else start + np.flatnonzero(alive[start:stop])
        nodes = self.nodes.extended(vectors, rows)
        held = held_out(self.info.kind, len(nodes) - len(self.nodes))
        info = replace(self.info, rows=stop, vectors=len(nodes))
        random = np.random.default_rng(info.seed)
        grown = grow(AnnIndex(self.index, nodes, info), vectors, held, random, notify)
        self.nodes, self.info = grown.nodes, grown.info
        self._gpu = GpuIndex(info.kind, self.index) if self.device == "cuda" else None
        self._remembered = _NOTHING
        self.info = timed(self, vectors, random)
        return self.info


def load_index(folder: Path, *, mmap: bool = False, device: Device = "cpu") -> AnnIndex:
    """The index that was saved in `folder`, checked against its digest.

    `mmap` leaves the codes on disk, to be paged in as they are needed. With `device` "cuda" a copy goes to the GPU, if
    the kind has a form there.

    Raises:
        SondeError: It is missing, damaged, or of an unknown form; it can be rebuilt from the vectors.
        MissingExtraError: The device is "cuda" and FAISS was built without it.
    """
    index, nodes, info = read_index(folder, mmap=mmap)
    expected = kinds.layers(kinds.create_index(info.kind, info.dimension, SAMPLE, 0))
    if (found := kinds.layers(index)) != expected:  # one from a stranger could keep its lists in a file of the user's
        raise SondeError(f"the vector index in {folder} consists of {', '.join(found)}, not {', '.join(expected)}")
    return AnnIndex(index, nodes, info, device if info.kind in GPU_KINDS else "cpu", mmap)

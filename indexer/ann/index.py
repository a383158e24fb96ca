"""A FAISS index over the distinct vectors of a collection, and the search that rescores what it finds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SondeError, UsageError
from . import kinds
from .devices import search_device
from .exact import Best, VectorSource, as_queries, exact_search, inner_products
from .gpu import Found
from .place import IN_MEMORY, SMALL_SUBSET, Place, place_for
from .settings import AnnInfo
from .storage import Admitted, Nodes, is_mapped, read_index, write_index
from .tuning import K, Notify, grow, held_out, say_nothing, timed

QUERIES = 512
SAMPLE = 1_000
"""Vectors that an index is made for to see what its kind consists of."""
CODES_PER_STEP = 32
"""Codes that a scan under a filter reads in the time of one step of a graph search (0.15 us against 5)."""
SPARE = 4
"""Candidates beyond those asked for, since FAISS rounds its sums otherwise and may swap near ties at the end."""
DEPTH = 0.25
"""Recall@k stays level when the breadth grows with this power of k (200,000 vectors, k from 10 to 100)."""
CODES = 0.6
"""Recall@k stays level when the candidates that short codes find grow with this power of k (100,000 and 500,000
vectors, k from 10 to 200)."""

_NOTHING: tuple[np.ndarray | None, Admitted] = (None, Admitted(None, None, 0, 0))


class AnnIndex:
    """An index that answers with exact scores.

    FAISS proposes candidates; their scores are then computed from the stored vectors, so that a score does not depend
    on the kind of index or on the device. Searching is safe from several threads at once. `place` is where the index
    is searched. The FAISS index itself stays in main memory, is saved, and runs the searches that a GPU cannot run.
    """

    def __init__(self, index: Any, nodes: Nodes, info: AnnInfo, place: Place = IN_MEMORY, mapped: bool = False) -> None:
        self.index = index
        self.nodes = nodes
        self.info = info
        self.place = place
        self._mapped = mapped
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
        return self.place.compares_all(self.info.kind) or self._scans(k, admitted)

    def _scans(self, k: int, admitted: int) -> bool:
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
        found, unseen = self._candidates(queries, k, admitted, vectors)
        query, column = np.nonzero(found >= 0)
        nodes = found[query, column]
        distinct, inverse = np.unique(nodes, return_inverse=True)
        scores = inner_products(queries, query, vectors.read(self.nodes.first[distinct]), inverse)
        place, rows = self.nodes.rows_of(nodes, admitted.allowed, k)
        best.add(query[place], rows, scores[place])
        expected = min(k, admitted.rows)
        short = np.flatnonzero(((best.rows >= 0).sum(axis=1) < expected) | doubtful(best, unseen, expected))
        if len(short):
            rows = self.nodes.rows if admitted.allowed is None else self.nodes.rows[admitted.allowed[self.nodes.rows]]
            best.scores[short], best.rows[short] = exact_search(vectors, queries[short], k, rows=rows)
        return best.scores, best.rows

    def _candidates(self, queries: np.ndarray, k: int, admitted: Admitted, vectors: VectorSource) -> Found:
        """Nodes to score; none if it is better to read the rows themselves."""
        kind, everything = self.info.kind, np.full(len(queries), -np.inf, np.float32)
        wanted = min(k * self.info.factor + SPARE, admitted.nodes)
        if wanted and (found := self._elsewhere(queries, k, wanted, admitted, vectors)):
            return found
        if not self._scans(k, admitted.nodes):
            breadth = self._breadth(k, admitted.nodes / len(self.nodes))
            factor = max(1.0, self.info.k_factor * (wanted / (K + SPARE)) ** (CODES - 1))
            found = kinds.candidates(kind, self.index, queries, wanted, breadth, admitted.bitmap, factor)
            return Found(found, everything)
        if admitted.nodes and (kind == "exact" or kinds.is_graph(kind)):
            return Found(kinds.scan(kind, self.index, queries, wanted, admitted.bitmap), everything)
        return Found(np.empty((len(queries), 0), dtype=np.int64), everything)

    def _elsewhere(
        self, queries: np.ndarray, k: int, wanted: int, admitted: Admitted, vectors: VectorSource
    ) -> Found | None:
        """What the device of the index finds; None if main memory must be searched.

        A filter goes to the GPU as a bitmap if FAISS applies one there; otherwise the admitted vectors go there.
        """
        kind, place = self.info.kind, self.place
        scanned = kind == "exact" or place.compares_all(kind)
        if admitted.bitmap is None or (place.takes_filter(kind) and (scanned or not self._scans(k, admitted.nodes))):
            breadth = self._breadth(k, admitted.nodes / len(self.nodes))
            found = place.find(kind, self.index, queries, wanted, breadth, admitted)
        else:
            found = place.find_among(queries, wanted, admitted, self.nodes, vectors)
        return found and Found(_inside(found.nodes, admitted.bitmap), found.unseen)

    def search_newer(
        self, queries: np.ndarray, k: int, *, rows: np.ndarray, vectors: VectorSource
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best of ascending `rows` (int64), which the index does not hold yet: an exact scan, on its device.

        Returns:
            As `search`.

        Raises:
            UsageError: As `search`.
        """
        queries = as_queries(queries, self.info.dimension, k)
        start = self.info.rows
        found = self.place.newer(queries, k, rows, start, vectors) if len(rows) else None
        if found is None:
            return exact_search(vectors, queries, k, rows=rows)
        best = Best(len(queries), k)
        query, column = np.nonzero(found.nodes >= 0)
        distinct, inverse = np.unique(start + found.nodes[query, column], return_inverse=True)
        scores = inner_products(queries, query, vectors.read(distinct), inverse)
        best.add(query, distinct[inverse], scores)
        expected = min(k, len(rows))
        short = np.flatnonzero(((best.rows >= 0).sum(axis=1) < expected) | doubtful(best, found.unseen, expected))
        if len(short):
            best.scores[short], best.rows[short] = exact_search(vectors, queries[short], k, rows=rows)
        return best.scores, best.rows

    def tuned(self, breadth: int, factor: int | None = None) -> "AnnIndex":
        """The same index searched with other parameters; a `factor` of None keeps the number of candidates."""
        factor = self.info.parameters.get("k_factor", self.info.factor) if factor is None else factor
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
        return AnnIndex(self.index, nodes, info or self.info, self.place)

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
            raise UsageError("a memory-mapped index takes no rows; load it whole to add to it")
        if start != self.info.rows or not start <= stop <= len(vectors):
            raise UsageError(
                f"rows {start} to {stop} cannot be added: the index covers {self.info.rows} of {len(vectors)}"
            )
        rows = np.arange(start, stop) if alive is None else start + np.flatnonzero(alive[start:stop])
        nodes = self.nodes.extended(vectors, rows)
        held = held_out(self.info.kind, len(nodes) - len(self.nodes))
        why = self.info.reason.rpartition("; ")[2]
        reason = kinds.described(self.info.kind, self.info.dimension, len(nodes), why)
        device = self.place.name.partition(":")[0]
        info = replace(self.info, rows=stop, vectors=len(nodes), reason=reason, device=device)
        random = np.random.default_rng(info.seed)
        grown = grow(self.over(nodes, info), vectors, held, random, notify)
        self.index, self.nodes, self.info = grown.index, grown.nodes, grown.info
        self._remembered = _NOTHING
        self.info = timed(self, vectors, random)
        return self.info


def load_index(folder: Path, *, mapped_from: int | None = None, device: str = "cpu") -> AnnIndex:
    """The index that was saved in `folder`, checked against its digest.

    On a CPU, the codes of an index of `mapped_from` bytes or more stay on disk, to be paged in as they are needed; none
    can be added then. `device` is where it is searched, with the name that users give it. A GPU gets a copy at the
    first search, if the kind has a GPU form.

    Raises:
        SondeError: It is missing, damaged, or of an unknown form; it can be rebuilt from the vectors.
        UsageError: The machine has GPUs, but not this one.
    """
    where = search_device(device)
    mapped_from = mapped_from if where == "cpu" else None
    index, nodes, info = read_index(folder, mapped_from=mapped_from)
    expected = kinds.layers(kinds.create_index(info.kind, info.dimension, SAMPLE, 0))
    if (found := kinds.layers(index)) != expected:  # one from a stranger could keep its lists in a file of the user's
        raise SondeError(f"the vector index in {folder} consists of {', '.join(found)}, not {', '.join(expected)}")
    return AnnIndex(index, nodes, info, place_for(info.kind, len(nodes), where), is_mapped(info, mapped_from))


def doubtful(best: Best, unseen: np.ndarray, expected: int) -> np.ndarray:
    """Bool [m]: whether something that was not found may be one of the `expected` best of a query."""
    return np.isfinite(unseen) & (best.scores[:, expected - 1] <= unseen)


def _inside(nodes: np.ndarray, bitmap: np.ndarray | None) -> np.ndarray:
    """The nodes, int64 [m, count], with -1 for those that a bitmap leaves out."""
    if bitmap is None:
        return nodes
    kept = np.unpackbits(bitmap, bitorder="little").astype(bool)
    return np.where(kept[nodes] & (nodes >= 0), nodes, -1)

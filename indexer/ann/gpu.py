"""FAISS on one GPU: its copy of an index, searches of this copy, and building an index there."""

from collections.abc import Callable, Iterator
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..progress import tell
from . import kinds
from .devices import faiss, faiss_gpu, out_of_memory, search_device
from .exact import BLOCK, ROUNDING, VectorSource
from .settings import Kind

T = TypeVar("T")

MOST_CANDIDATES = 2048
"""FAISS's own GPU code returns no more candidates and probes no more cells; with more, it ends the process."""
MOST_OF_A_GRAPH = 1024
"""Longest list of candidates that cuVS keeps in a CAGRA search by each of its methods."""
FILTERED: tuple[Kind, ...] = ("exact", "ivf-sq8", "ivf-pq", "cagra")
"""Kinds that cuVS searches, and so filters. FAISS's own GPU code ignores a filter without an error."""
WIDER_DEGREE = 128
"""Links of a vector in the graph that a CAGRA graph is pruned from: FAISS's own value."""


class Found(NamedTuple):
    """What a GPU found.

    `nodes` (int64 [m, count]) are best first, -1 where there are none. `unseen` (float32 [m]) bounds the score of
    everything else after an exact scan; it is -inf if nothing is left out, or if the scan is not exact.
    """

    nodes: np.ndarray
    unseen: np.ndarray


class Gpu:
    """One GPU. FAISS's working memory there is shared by all indexes, and serves one thread at a time."""

    def __init__(self, device: str) -> None:
        module = faiss_gpu()
        self.name = device
        self.number = int(device.partition(":")[2] or 0)
        self.lock = RLock()
        self.has_cuvs = "CUVS" in module.get_compile_options()
        self.resources = module.StandardGpuResources()

    def filters(self, kind: Kind) -> bool:
        """Whether an index of this kind takes a filter here."""
        return self.has_cuvs and kind in FILTERED

    def flat(self, dimension: int, *, half: bool) -> Any:
        """An empty index that compares with every vector, inner product, float16 or float32."""
        module = faiss()
        config = module.GpuIndexFlatConfig()
        config.device, config.useFloat16, config.use_cuvs = self.number, half, self.has_cuvs
        return module.GpuIndexFlatIP(self.resources, dimension, config)

    def put(self, kind: Kind, index: Any) -> Any:
        """A copy of an inverted file or a CAGRA graph.

        In Python, cuVS is off by default in FAISS 1.15.
        """
        options = faiss().GpuClonerOptions()
        options.use_cuvs = self.filters(kind)
        return faiss().index_cpu_to_gpu(self.resources, self.number, index, options)

    def products(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Inner products of all pairs of float32 [n, d] and [m, d] vectors, float32 [n, m]."""
        module = faiss()
        some, others = np.ascontiguousarray(some, np.float32), np.ascontiguousarray(others, np.float32)
        metric = module.METRIC_INNER_PRODUCT
        with self.lock:
            return module.pairwise_distance_gpu(self.resources, some, others, metric=metric, device=self.number)


_GPUS: dict[tuple[int, str], Gpu] = {}


def gpu_of(device: str) -> Gpu:
    """The GPU of this name, "cuda:0" and so on; its resources are made once in a process.

    Raises:
        MissingExtraError: FAISS was built without GPU support.
        UsageError: It finds no GPU.
    """
    key = (id(faiss_gpu()), device)
    if key not in _GPUS:
        _GPUS[key] = Gpu(device)
    return _GPUS[key]


def gpu_here() -> Gpu | None:
    """The GPU that `computing_on` names, or the first; None if there is none or the CPU was requested."""
    device = search_device()
    return None if device == "cpu" else gpu_of(device)


def on_gpu(what: str, there: Callable[[Gpu], T], here: Callable[[], T]) -> T:
    """What `there` returns on the GPU; what `here` returns if there is none, or no memory left on it for `what`."""
    gpu = gpu_here()
    if gpu is not None:
        try:
            with gpu.lock:
                return there(gpu)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
        tell(f"{gpu.name} has no memory left for {what}: the CPU does it")
    return here()


class Scan:
    """Vectors on a GPU, all of which each query is compared with; numbered from 0 in the order of adding."""

    def __init__(self, gpu: Gpu, dimension: int, *, half: bool = True) -> None:
        self.gpu = gpu
        self.half = half
        self.index = gpu.flat(dimension, half=half)
        self.length = 0.0
        self.batch = MOST_QUERIES

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def add(self, vectors: np.ndarray) -> None:
        """Add float32 [n, d] vectors; with float16 precision, each must be exact in float16."""
        with self.gpu.lock:
            self.index.add(np.ascontiguousarray(vectors))
        self.length = max(self.length, float(np.linalg.norm(vectors, axis=1).max(initial=0)))

    def search(self, queries: np.ndarray, count: int, bitmap: np.ndarray | None = None) -> Found | None:
        """The best `count` vectors; None if the GPU cannot return that many.

        The GPU rounds queries to float16. `unseen` includes the most that this can change a score that was left out.
        """
        if count > MOST_CANDIDATES:
            return None
        params = None if bitmap is None else faiss().SearchParameters(sel=faiss().IDSelectorBitmap(bitmap))
        scores, nodes = _in_batches(self, queries, lambda some: self.index.search(some, count, params=params))
        whole = len(self) if bitmap is None else int(np.bitwise_count(bitmap).sum())
        if count >= whole:
            return Found(nodes, np.full(len(queries), -np.inf, np.float32))
        asked = queries.astype(np.float16).astype(np.float32) if self.half else queries
        lost = np.linalg.norm(queries - asked, axis=1) + ROUNDING * np.linalg.norm(queries, axis=1)
        return Found(nodes, (scores[:, -1] + lost * self.length).astype(np.float32))


class Copy:
    """An inverted file or a CAGRA graph on a GPU."""

    def __init__(self, gpu: Gpu, kind: Kind, index: Any) -> None:
        self.gpu = gpu
        self.kind = kind
        self.batch = MOST_QUERIES
        self._source = index  # a CAGRA graph on a GPU keeps reading the vectors of the index it was copied from
        with gpu.lock:
            self.index = gpu.put(kind, index)

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def search(self, queries: np.ndarray, count: int, breadth: int, bitmap: np.ndarray | None) -> Found | None:
        """The nearest `count` vectors; None if the GPU cannot return that many."""
        params = self._parameters(count, breadth, bitmap)
        if params is None:
            return None
        nodes = _in_batches(self, queries, lambda some: self.index.search(some, count, params=params))[1]
        return Found(nodes, np.full(len(queries), -np.inf, np.float32))

    def _parameters(self, count: int, breadth: int, bitmap: np.ndarray | None) -> Any:
        module = faiss()
        selector = None if bitmap is None else module.IDSelectorBitmap(bitmap)
        if self.kind == "cagra":
            kept = 32 * -(-max(breadth, count) // 32)
            return module.SearchParametersCagra(itopk_size=kept, sel=selector) if kept <= MOST_OF_A_GRAPH else None
        probes = min(breadth, self._source_cells())
        if max(count, probes) > MOST_CANDIDATES:
            return None
        return module.SearchParametersIVF(nprobe=probes, sel=selector)

    def _source_cells(self) -> int:
        return int(faiss().extract_index_ivf(self._source).nlist)


MOST_QUERIES = 512
"""Queries in one call; halved until they fit the GPU's memory."""


def _in_batches(
    held: Scan | Copy, queries: np.ndarray, search: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and nodes of all queries, in batches that fit the GPU's memory; raises its error if one query does not."""
    while True:
        try:
            with held.gpu.lock:
                found = [search(some) for some in _batches(queries, held.batch)]
            return np.concatenate([scores for scores, _ in found]), np.concatenate([nodes for _, nodes in found])
        except (RuntimeError, MemoryError) as error:
            held.batch = min(held.batch, len(queries)) // 2
            if not held.batch or not out_of_memory(error):
                raise


def _batches(queries: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(queries), size):
        yield np.ascontiguousarray(queries[start : start + size])


def scan_of(gpu: Gpu, index: Any) -> Scan:
    """The vectors of a float16 scalar quantiser, on the GPU at the same precision."""
    scan = Scan(gpu, index.d)
    for begin in range(0, index.ntotal, 4 * BLOCK):
        scan.add(index.reconstruct_n(begin, min(4 * BLOCK, index.ntotal - begin)))
    return scan


def fill(gpu: Gpu, kind: Kind, index: Any, sample: np.ndarray, vectors: VectorSource, rows: np.ndarray) -> Any:
    """The empty inverted file, trained on `sample` and filled with `rows` on the GPU, back in main memory."""
    module = faiss()
    with gpu.lock:
        accelerated = gpu.put(kind, index)
        kinds.seed_clustering(accelerated, index.cp.seed)
        accelerated.train(sample)
        for begin in range(0, len(rows), 4 * BLOCK):
            accelerated.add(vectors.read(rows[begin : begin + 4 * BLOCK]))
        return module.index_gpu_to_cpu(accelerated)


def graph(gpu: Gpu, vectors: VectorSource, rows: np.ndarray) -> Any:
    """A CAGRA graph over the vectors of `rows`, built on the GPU, as the HNSW index that a CPU can search too.

    CAGRA takes all vectors at once, in float32: FAISS's own tests skip float16 with inner products, because that search
    hangs. (Ootomo et al., CAGRA, ICDE 2024.)
    """
    module = faiss()
    config = module.GpuIndexCagraConfig()
    config.device, config.use_cuvs = gpu.number, True
    config.graph_degree, config.intermediate_graph_degree = kinds.DEGREE, WIDER_DEGREE
    with gpu.lock:
        built = module.GpuIndexCagra(gpu.resources, vectors.dimension, module.METRIC_INNER_PRODUCT, config)
        values = vectors.read(rows)  # FAISS keeps no copy: it reads them again when it converts the index back
        built.train(values)
        return module.index_gpu_to_cpu(built)


def free_bytes(gpu: Gpu) -> int | None:
    """Free memory of a GPU in bytes, from PyTorch; None if PyTorch does not see the GPU."""
    import torch

    if not torch.cuda.is_available() or gpu.number >= torch.cuda.device_count():
        return None
    return int(torch.cuda.mem_get_info(gpu.number)[0])

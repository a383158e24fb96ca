"""The kinds of FAISS index, and which of them fits a collection's size and the free memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .devices import faiss, threads
from .settings import AnnSettings, Kind

LINKS = 32
DEGREE = 64
"""Links of a vector in a CAGRA graph: FAISS's own value, and that of an HNSW graph with `LINKS`."""
FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
BREADTHS = tuple(
    16 * step for step in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 256)
)
"""Values of efSearch that the tuning may choose."""

_CODE_BITS: dict[Kind, int] = {
    "exact": 16, "hnsw": 16, "hnsw-sq8": 8, "ivf": 16, "ivf-sq8": 8, "ivf-fastscan": 10, "ivf-rabitq": 1, "cagra": 32
}  # fmt: skip
PQ_CODES = (96, 64, 56, 48, 40, 32, 28, 24, 20, 16, 12, 8, 4, 3, 2, 1)
"""Bytes of a product quantiser's code for which FAISS has GPU code with and without cuVS."""
PQ_LEAST = 256
"""Values that a product quantiser learns for each byte; it needs a vector for each."""
PRODUCT_KINDS: tuple[Kind, ...] = ("ivf-pq", "ivf-fastscan")
"""Kinds with a product quantiser."""
ROTATED: tuple[Kind, ...] = ("ivf-fastscan", "ivf-rabitq")
"""Kinds that turn the vectors at random first, so that each part of a short code has as much to tell as the others."""


def is_lossless(kind: Kind) -> bool:
    """Whether the index holds the float16 vectors as they are, so that its own order is the right one."""
    return kind in ("exact", "hnsw", "cagra")


def is_graph(kind: Kind) -> bool:
    """Whether the kind is a graph, which a CPU searches as HNSW."""
    return kind.startswith("hnsw") or kind == "cagra"


def code_bytes(kind: Kind, dimension: int) -> int:
    """Bytes of one vector's code."""
    if kind == "ivf-pq":
        return next(size for size in PQ_CODES if dimension % size == 0 and (4 * size <= dimension or size == 1))
    return _CODE_BITS[kind] * dimension // 8


def create_index(kind: Kind, dimension: int, vectors: int, seed: int) -> Any:
    """An empty index that is fit for about this many vectors, inner product."""
    module = faiss()
    metric, quantizer = module.METRIC_INNER_PRODUCT, module.ScalarQuantizer
    if kind == "exact":
        return module.IndexScalarQuantizer(dimension, quantizer.QT_fp16, metric)
    if kind == "cagra":
        return module.IndexHNSWCagra(dimension, DEGREE // 2, metric)
    if is_graph(kind):
        code = quantizer.QT_fp16 if kind == "hnsw" else quantizer.QT_8bit
        return module.IndexHNSWSQ(dimension, code, LINKS, metric)
    index = module.index_factory(dimension, _factory(kind, dimension, lists(vectors, kind)), metric)
    seed_clustering(inverted_file(index), seed + 1)
    if kind in PRODUCT_KINDS:
        clustering = inverted_file(index).pq.cp
        clustering.seed, clustering.min_points_per_centroid = seed + 1, 1
    return index


def inverted_file(index: Any) -> Any:
    """The inverted file within an index of an `ivf` kind."""
    module = faiss()
    found = module.extract_index_ivf(module.downcast_index(getattr(index, "base_index", index)))
    return module.downcast_index(found)


def layers(index: Any) -> list[str]:
    """The names of FAISS's classes that an index consists of: itself, what it stores its codes in, and its lists."""
    module = faiss()
    found = [type(module.downcast_index(index)).__name__]
    for name in ("index", "storage", "base_index", "refine_index"):
        if getattr(index, name, None) is not None:
            found += layers(module.downcast_index(getattr(index, name)))
    if isinstance(index, module.IndexIVF):
        found.append(type(module.downcast_InvertedLists(index.invlists)).__name__)
    return found


def seed_clustering(index: Any, seed: int) -> None:
    """Let an inverted file cluster with this seed, for ten rounds, and without warnings on small samples."""
    index.cp.seed, index.cp.niter, index.cp.min_points_per_centroid = seed, 10, 1


def lists(vectors: int, kind: Kind = "ivf") -> int:
    """Cells of an inverted file: the power of two near four square roots, with 39 vectors or more in each.

    Short codes are scanned so fast that fewer and larger cells serve better: 1.5 square roots (benchmarks/README.md).
    """
    roots = 1.5 if kind == "ivf-fastscan" else 4
    wanted = 2 ** round(np.log2(roots * np.sqrt(max(vectors, 1))))
    return int(max(1, min(wanted, vectors // 39)))


def training_size(kind: Kind, vectors: int) -> int:
    """Vectors that the training wants to see; 0 where nothing is learnt."""
    if is_lossless(kind):
        return 0
    return min(vectors, 10_000 if is_graph(kind) else max(10_000, 64 * lists(vectors, kind)))


def bytes_needed(kind: Kind, dimension: int, vectors: int) -> int:
    """Memory of an index, in bytes, from its layout."""
    code = code_bytes(kind, dimension) + 16
    links = 4 * (2 * LINKS + 2) + 16 if is_graph(kind) else 0
    cells = 4 * dimension * lists(vectors, kind) if kind.startswith("ivf") else 0
    return vectors * (code + links + 16) + cells


def bytes_on_gpu(kind: Kind, dimension: int, vectors: int) -> int:
    """Memory of an index on a GPU, in bytes, from its layout."""
    beside = {"exact": 0, "cagra": 4 * DEGREE}.get(kind, 8)
    cells = 4 * dimension * lists(vectors, kind) if kind.startswith("ivf") else 0
    return vectors * (code_bytes(kind, dimension) + beside) + cells


def factors(kind: Kind) -> Sequence[int]:
    """The numbers of candidates per answer to choose from, ascending; one value where the codes lose nothing."""
    return (1,) if is_lossless(kind) else FACTORS


def breadths(kind: Kind, index: Any) -> Sequence[int]:
    """The efSearch or nprobe values to choose from, ascending; one value for the exact kind."""
    if kind == "exact":
        return (0,)
    if is_graph(kind):
        return BREADTHS
    cells = inverted_file(index).nlist
    return sorted({min(cells, round(2 ** (step / 4))) for step in range(49)})


def candidates(
    kind: Kind,
    index: Any,
    queries: np.ndarray,
    count: int,
    breadth: int,
    bitmap: np.ndarray | None,
    k_factor: float = 1.0,
) -> np.ndarray:
    """The nodes that the index finds nearest, int64 [m, count], best first, -1 where there are none.

    `bitmap` (uint8, one bit a node) holds those that may be found. Where short codes find candidates for longer ones,
    they find `k_factor` times as many.
    """
    module = faiss()
    selector = None if bitmap is None else module.IDSelectorBitmap(bitmap)
    if kind == "exact":
        params = module.SearchParameters(sel=selector)
    elif is_graph(kind):
        params = module.SearchParametersHNSW(efSearch=max(breadth, count), sel=selector)
    else:
        params = _inverted_file_parameters(kind, breadth, selector, k_factor)
    # FAISS divides queries among threads, so those that wait for one query only keep other work from the cores.
    with threads(1 if len(queries) == 1 else None):
        if kind == "cagra":
            return _from_the_nearest_of_some(index, queries, count, params)
        return index.search(queries, count, params=params)[1]


SOME, STARTS = 1_024, 8


def _from_the_nearest_of_some(index: Any, queries: np.ndarray, count: int, params: Any) -> np.ndarray:
    """The nodes that a graph leads to from the nearest of evenly spaced ones.

    A CAGRA graph may have no link between two groups of vectors. FAISS, which searches it as an HNSW graph, begins at
    one node that its upper layers lead to: where they led into the wrong group, it found nothing of the right one.
    """
    module = faiss()
    some = np.unique(np.linspace(0, index.ntotal - 1, min(SOME, index.ntotal), dtype=np.int64))
    starts = min(STARTS, len(some))
    among = module.SearchParameters(sel=module.IDSelectorArray(some))
    queries = np.ascontiguousarray(queries, np.float32)
    scores, nearest = index.storage.search(queries, starts, params=among)
    nearest, at = nearest.astype(np.int32), module.swig_ptr
    found, nodes = np.empty((len(queries), count), np.float32), np.empty((len(queries), count), np.int64)
    apart = 1  # a search from each start
    index.search_level_0(
        len(queries), at(queries), count, at(nearest), at(scores), at(found), at(nodes), starts, apart, params
    )
    return nodes


def scan(kind: Kind, index: Any, queries: np.ndarray, count: int, bitmap: np.ndarray | None) -> np.ndarray:
    """The same by a scan of all codes, or of the admitted ones: for a graph or the exact kind."""
    codes = index if kind == "exact" else index.storage
    return candidates("exact", faiss().downcast_index(codes), queries, count, 0, bitmap)


def _factory(kind: Kind, dimension: int, cells: int) -> str:
    product = f"PQ{code_bytes('ivf-pq', dimension)}"
    short = f"PQ{dimension // 2 if dimension % 2 == 0 else dimension}x4fs,Refine(SQ8)"
    codes = {"ivf": "SQfp16", "ivf-sq8": "SQ8", "ivf-fastscan": short, "ivf-pq": product, "ivf-rabitq": "RaBitQ"}[kind]
    return f"{'RR,' if kind in ROTATED else ''}IVF{cells},{codes}"


def _inverted_file_parameters(kind: Kind, probes: int, selector: Any, k_factor: float) -> Any:
    module = faiss()
    if kind not in ROTATED:
        return module.SearchParametersIVF(nprobe=probes, sel=selector)
    if kind == "ivf-rabitq":
        inner = module.IVFRaBitQSearchParameters(nprobe=probes, sel=selector, qb=8)
        return module.SearchParametersPreTransform(index_params=inner)
    inner = module.SearchParametersPreTransform(index_params=module.SearchParametersIVF(nprobe=probes, sel=selector))
    return module.IndexRefineSearchParameters(k_factor=k_factor, base_index_params=inner)


def parameters(kind: Kind, index: Any, breadth: int, factor: int) -> dict[str, int]:
    """What the index was built and is searched with, under FAISS's names; `factor` is candidates per answer.

    Those are rescored from the stored vectors; in the kind of short codes, from the longer codes beside them.
    """
    if kind == "exact":
        return {"factor": 1}
    if kind == "cagra":
        return {"graph_degree": DEGREE, "itopk_size": breadth, "factor": factor}
    if is_graph(kind):
        return {"M": LINKS, "efConstruction": index.hnsw.efConstruction, "efSearch": breadth, "factor": factor}
    cells = {"nlist": inverted_file(index).nlist, "nprobe": breadth}
    return cells | ({"k_factor": factor, "factor": 1} if kind == "ivf-fastscan" else {"factor": factor})


EXACT_BYTES = 40 << 20
"""A scan of this many bytes takes about 2 ms on 2 cores (measured: 38 MB, 50,000 x 384 float16, in 1.6 ms)."""
GPU_SCAN_VECTORS = 5_000_000
BUDGET_SHARE = 0.25
GPU_SHARE = 0.5
"""Of a GPU's free memory; models and FAISS's working memory need the rest."""


@dataclass(frozen=True, slots=True)
class OnGpu:
    """What a GPU offers to an index: its free memory in bytes (None: not known), and whether FAISS has cuVS there."""

    free: int | None
    cuvs: bool


def choose_kind(settings: AnnSettings, dimension: int, vectors: int, gpu: OnGpu | None = None) -> tuple[Kind, str]:
    """The kind to build for this many distinct vectors, and one line that says why."""
    if settings.kind not in (None, "auto"):
        kind, why = settings.kind, "as asked"
    else:
        import psutil

        budget = settings.memory_budget or int(BUDGET_SHARE * psutil.virtual_memory().available)
        kind, why = _on_gpu(dimension, vectors, budget, gpu) if gpu else _on_cpu(dimension, vectors, budget)
    return kind, described(kind, dimension, vectors, why)


def described(kind: Kind, dimension: int, vectors: int, why: str) -> str:
    """Return in words how many vectors an index holds, of which kind it is, its size, and why it was chosen."""
    return f"{vectors:,} vectors: {kind}, {bytes_needed(kind, dimension, vectors) / 1e6:,.0f} MB; {why}"


def suits_cpu(kind: Kind, dimension: int, vectors: int) -> bool:
    """Whether a CPU searches this kind fast; a scan of many vectors needs a GPU."""
    return kind != "exact" or 2 * dimension * vectors <= EXACT_BYTES


def _on_cpu(dimension: int, vectors: int, budget: int) -> tuple[Kind, str]:
    limit = f"{budget / 1e6:,.0f} MB"
    if 2 * dimension * vectors <= EXACT_BYTES:
        return "exact", "small enough to compare with every vector"
    for kind in ("ivf-fastscan", "ivf-rabitq"):
        if bytes_needed(kind, dimension, vectors) <= budget:
            return kind, f"an inverted file, within the budget of {limit}"
    return "ivf-rabitq", f"the smallest kind, and still above the budget of {limit}"


def _on_gpu(dimension: int, vectors: int, budget: int, gpu: OnGpu) -> tuple[Kind, str]:
    """A GPU scans all vectors in the time that a CPU takes for a graph, so it does so while they fit.

    Main memory holds a second copy, which is saved, so the budget counts too.
    """
    room = None if gpu.free is None else int(GPU_SHARE * gpu.free)
    limits = f"the budget of {budget / 1e6:,.0f} MB" + (f" and {room / 1e6:,.0f} MB of the GPU" if room else "")
    for kind in _GPU_ORDER:
        fits = bytes_needed(kind, dimension, vectors) <= budget
        fits_gpu = room is None or bytes_on_gpu(kind, dimension, vectors) <= room
        too_many = kind == "exact" and vectors > GPU_SCAN_VECTORS
        if fits and fits_gpu and not too_many and (gpu.cuvs or kind != "cagra"):
            return kind, f"on the GPU, within {limits}"
    return _GPU_ORDER[-1], f"the smallest kind on the GPU, and still above {limits}"


_GPU_ORDER: tuple[Kind, ...] = ("exact", "cagra", "ivf-sq8", "ivf-pq")
"""Kinds for a GPU, the best first. Not "ivf": FAISS does not filter it there, and it is twice as large."""

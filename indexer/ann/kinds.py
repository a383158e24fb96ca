"""The kinds of FAISS index, and which of them fits a collection's size and the free memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil

from .library import faiss
from .settings import GPU_KINDS, AnnSettings, Kind

LINKS = 32
FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
BREADTHS = tuple(
    16 * step for step in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 256)
)
"""Values of efSearch that the tuning may choose."""

_CODE_BITS: dict[Kind, int] = {"exact": 16, "hnsw": 16, "hnsw-sq8": 8, "ivf": 16, "ivf-sq8": 8, "ivf-rabitq": 1}


def is_lossless(kind: Kind) -> bool:
    """Whether the index holds the float16 vectors as they are, so that its own order is the right one."""
    return kind in ("exact", "hnsw")


def is_graph(kind: Kind) -> bool:
    """Whether the kind is an HNSW graph."""
    return kind.startswith("hnsw")


def create_index(kind: Kind, dimension: int, vectors: int, seed: int) -> Any:
    """An empty index that is fit for about this many vectors, inner product."""
    module = faiss()
    metric, quantizer = module.METRIC_INNER_PRODUCT, module.ScalarQuantizer
    if kind == "exact":
        return module.IndexScalarQuantizer(dimension, quantizer.QT_fp16, metric)
    if is_graph(kind):
        code = quantizer.QT_fp16 if kind == "hnsw" else quantizer.QT_8bit
        return module.IndexHNSWSQ(dimension, code, LINKS, metric)
    index = module.index_factory(dimension, _factory(kind, lists(vectors)), metric)
    seed_clustering(module.extract_index_ivf(index), seed + 1)
    return index


def layers(index: Any) -> list[str]:
    """The names of FAISS's classes that an index consists of: itself, what it stores its codes in, and its lists."""
    module = faiss()
    found = [type(module.downcast_index(index)).__name__]
    for name in ("index", "storage"):
        if getattr(index, name, None) is not None:
            found += layers(module.downcast_index(getattr(index, name)))
    if isinstance(index, module.IndexIVF):
        found.append(type(module.downcast_InvertedLists(index.invlists)).__name__)
    return found


def seed_clustering(index: Any, seed: int) -> None:
    """Let an inverted file cluster with this seed, for ten rounds, and without warnings on small samples."""
    index.cp.seed, index.cp.niter, index.cp.min_points_per_centroid = seed, 10, 1


def lists(vectors: int) -> int:
    """Cells of an inverted file: the power of two near four square roots, with 39 vectors or more in each."""
    wanted = 2 ** round(np.log2(4 * np.sqrt(max(vectors, 1))))
    return int(max(1, min(wanted, vectors // 39)))


def training_size(kind: Kind, vectors: int) -> int:
    """Vectors that the training wants to see; 0 where nothing is learnt."""
    if is_lossless(kind):
        return 0
    return min(vectors, 10_000 if is_graph(kind) else max(10_000, 64 * lists(vectors)))


def bytes_needed(kind: Kind, dimension: int, vectors: int) -> int:
    """Memory of an index, in bytes, from its layout."""
    code = _CODE_BITS[kind] * dimension // 8 + 16
    links = 4 * (2 * LINKS + 2) + 16 if is_graph(kind) else 0
    cells = 4 * dimension * lists(vectors) if kind.startswith("ivf") else 0
    return vectors * (code + links + 16) + cells


def breadths(kind: Kind, index: Any) -> Sequence[int]:
    """The efSearch or nprobe values to choose from, ascending; one value for the exact kind."""
    if kind == "exact":
        return (0,)
    if is_graph(kind):
        return BREADTHS
    cells = faiss().extract_index_ivf(index).nlist
    return sorted({min(cells, round(2 ** (step / 2))) for step in range(25)})


def candidates(
    kind: Kind, index: Any, queries: np.ndarray, count: int, breadth: int, bitmap: np.ndarray | None
) -> np.ndarray:
    """The nodes that the index finds nearest, int64 [m, count], best first, -1 where there are none.

    `bitmap` (uint8, one bit a node) holds those that may be found.
    """
    module = faiss()
    selector = None if bitmap is None else module.IDSelectorBitmap(bitmap)
    if kind == "exact":
        params = module.SearchParameters(sel=selector)
    elif is_graph(kind):
        params = module.SearchParametersHNSW(efSearch=max(breadth, count), sel=selector)
    else:
        params = _inverted_file_parameters(kind, breadth, selector)
    return index.search(queries, count, params=params)[1]


def scan(kind: Kind, index: Any, queries: np.ndarray, count: int, bitmap: np.ndarray | None) -> np.ndarray:
    """The same by a scan of all codes, or of the admitted ones: for a graph or the exact kind."""
    codes = index if kind == "exact" else index.storage
    return candidates("exact", faiss().downcast_index(codes), queries, count, 0, bitmap)


def _factory(kind: Kind, cells: int) -> str:
    codes = {"ivf": "SQfp16", "ivf-sq8": "SQ8", "ivf-rabitq": "RaBitQ"}[kind]
    return f"{'RR,' if kind == 'ivf-rabitq' else ''}IVF{cells},{codes}"


def _inverted_file_parameters(kind: Kind, probes: int, selector: Any) -> Any:
    module = faiss()
    if kind != "ivf-rabitq":
        return module.SearchParametersIVF(nprobe=probes, sel=selector)
    inner = module.IVFRaBitQSearchParameters(nprobe=probes, sel=selector, qb=8)
    return module.SearchParametersPreTransform(index_params=inner)


def parameters(kind: Kind, index: Any, breadth: int, factor: int) -> dict[str, int]:
    """What the index was built and is searched with, under FAISS's names; `factor` is candidates per answer."""
    if kind == "exact":
        return {"factor": 1}
    if is_graph(kind):
        return {"M": LINKS, "efConstruction": index.hnsw.efConstruction, "efSearch": breadth, "factor": factor}
    return {"nlist": faiss().extract_index_ivf(index).nlist, "nprobe": breadth, "factor": factor}


EXACT_BYTES = 40 << 20
"""A scan of this many bytes takes about 2 ms on 2 cores (measured: 38 MB, 50,000 x 384 float16, in 1.6 ms)."""
GRAPH_VECTORS = 2_000_000
"""Above this many vectors a graph takes the better part of an hour to build on 2 cores; inverted files do not."""
GPU_SCAN_VECTORS = 5_000_000
BUDGET_SHARE = 0.25


def choose_kind(settings: AnnSettings, dimension: int, vectors: int) -> tuple[Kind, str]:
    """The kind to build for this many distinct vectors, and one line that says why."""
    if settings.kind not in (None, "auto"):
        kind, why = settings.kind, "as asked"
    else:
        budget = settings.memory_budget or int(BUDGET_SHARE * psutil.virtual_memory().available)
        kind, why = (_on_gpu if settings.device == "cuda" else _on_cpu)(dimension, vectors, budget)
    return kind, f"{vectors:,} vectors: {kind}, {bytes_needed(kind, dimension, vectors) / 1e6:,.0f} MB; {why}"


def _on_cpu(dimension: int, vectors: int, budget: int) -> tuple[Kind, str]:
    limit = f"{budget / 1e6:,.0f} MB"
    if 2 * dimension * vectors <= EXACT_BYTES:
        return "exact", "small enough to compare with every vector"
    if vectors <= GRAPH_VECTORS:
        for kind in ("hnsw", "hnsw-sq8"):
            if bytes_needed(kind, dimension, vectors) <= budget:
                return kind, f"a graph, within the budget of {limit}"
    for kind in ("ivf-sq8", "ivf-rabitq"):
        if bytes_needed(kind, dimension, vectors) <= budget:
            return kind, f"an inverted file, within the budget of {limit}"
    return "ivf-rabitq", f"the smallest kind, and still above the budget of {limit}"


def _on_gpu(dimension: int, vectors: int, budget: int) -> tuple[Kind, str]:
    """A GPU compares with every vector in the time that a CPU takes for a graph, so it does while they fit."""
    for kind in GPU_KINDS:
        if bytes_needed(kind, dimension, vectors) <= budget and (kind != "exact" or vectors <= GPU_SCAN_VECTORS):
            return kind, f"on the GPU, within the budget of {budget / 1e6:,.0f} MB"
    return GPU_KINDS[-1], f"the smallest kind on the GPU, and still above the budget of {budget / 1e6:,.0f} MB"

"""Which kind of index fits a collection's size and the memory at hand."""

import psutil

from .kinds import bytes_needed
from .settings import GPU_KINDS, AnnSettings, Kind

EXACT_BYTES = 40 << 20
"""A scan of so many bytes takes about 2 ms on 2 cores (measured: 38 MB, 50,000 x 384 float16, in 1.6 ms)."""
GRAPH_VECTORS = 2_000_000
"""Above so many vectors a graph takes the better part of an hour to build on 2 cores; inverted files do not."""
GPU_SCAN_VECTORS = 5_000_000
BUDGET_SHARE = 0.25


def choose(settings: AnnSettings, dimension: int, vectors: int) -> tuple[Kind, str]:
    """The kind to build for so many distinct vectors, and one line that says why."""
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

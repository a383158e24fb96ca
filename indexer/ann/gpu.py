"""Building on the GPU, and a copy of the index there for searches without a filter."""

from threading import Lock
from typing import Any

import numpy as np

from . import kinds
from .exact import BLOCK, VectorSource
from .library import faiss, faiss_gpu
from .settings import Kind

MOST_CANDIDATES = 2048
"""FAISS's GPU indexes give no more answers, and probe no more cells, than this."""


class GpuIndex:
    """A copy of a FAISS index on the first GPU. The index in main memory stays the one that is saved and filtered.

    FAISS's GPU indexes ignore `IDSelector`, so they serve unfiltered searches alone, one thread at a time.
    """

    def __init__(self, kind: Kind, index: Any) -> None:
        module = faiss_gpu()
        self._resources = module.StandardGpuResources()
        self._lock = Lock()
        self._probes = kind != "exact"
        place = module.index_cpu_to_gpu if self._probes else _flat
        self._index = place(self._resources, 0, index)

    def candidates(self, queries: np.ndarray, count: int, breadth: int) -> np.ndarray | None:
        """The nearest nodes, int64 [m, count], -1 where there are none; None where the GPU cannot return that many."""
        if max(count, breadth) > MOST_CANDIDATES:
            return None
        params = faiss().SearchParametersIVF(nprobe=breadth) if self._probes else None
        with self._lock:
            return self._index.search(queries, count, params=params)[1]


def fill(index: Any, sample: np.ndarray, vectors: VectorSource, rows: np.ndarray) -> Any:
    """The empty inverted file, trained on `sample` and filled with `rows` on the GPU, back in main memory."""
    module = faiss_gpu()
    resources = module.StandardGpuResources()
    accelerated = module.index_cpu_to_gpu(resources, 0, index)
    kinds.seed_clustering(accelerated, index.cp.seed)
    accelerated.train(sample)
    for begin in range(0, len(rows), 4 * BLOCK):
        accelerated.add(vectors.read(rows[begin : begin + 4 * BLOCK]))
    return module.index_gpu_to_cpu(accelerated)


def _flat(resources: Any, device: int, index: Any) -> Any:
    """The vectors of a float16 scalar quantiser, which has no GPU form, in a flat index of the same precision."""
    module = faiss()
    config = module.GpuIndexFlatConfig()
    config.device, config.useFloat16 = device, True
    flat = module.GpuIndexFlatIP(resources, index.d, config)
    for begin in range(0, index.ntotal, 4 * BLOCK):
        flat.add(index.reconstruct_n(begin, min(4 * BLOCK, index.ntotal - begin)))
    return flat

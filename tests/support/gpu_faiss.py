"""A stand-in for the GPU part of FAISS 1.15, over the CPU library: the calls that Sonde makes, and their limits.

It keeps what a test must be able to see: which index was built, loaded, moved and asked, on which GPU, with which
parameters. It refuses what the real one refuses, with its words, and ignores what the real one ignores: without cuVS
a filter has no effect. The real classes were read in FAISS 1.15.0 (`faiss/gpu`) and in the wheel faiss-gpu-cuvs 1.15.1.
"""

import weakref
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import faiss
import numpy as np

real: Any = faiss

NO_MEMORY = {
    True: "Error in allocMemory at StandardGpuResources.cpp:554: Error: CUDA memory allocation error",
    False: "StandardGpuResources: alloc fail type FlatData dev 0 space Device (cudaMalloc error out of memory [2])\n",
}
"""What FAISS raises with and without cuVS, shortened."""


@dataclass
class Call:
    """One call to the GPU: what was done, on which device, with which kind of index, and the rest by name."""

    name: str
    device: int
    index: str
    more: dict[str, Any] = field(default_factory=dict)


class GpuFaiss(ModuleType):
    """The module; everything that is not listed here is FAISS's own.

    `most_queries` and `most_vectors` are what fits the GPU's memory: more of them in one call raise.
    """

    def __init__(self, gpus: int = 2, cuvs: bool = True) -> None:
        super().__init__("faiss")
        self.gpus, self.cuvs = gpus, cuvs
        self.calls: list[Call] = []
        self.most_queries = self.most_vectors = 1 << 40
        self.GpuIndexFlatConfig = _config
        self.GpuIndexCagraConfig = _cagra_config
        self.GpuClonerOptions = lambda: SimpleNamespace(use_cuvs=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)

    def get_num_gpus(self) -> int:
        return self.gpus

    def get_compile_options(self) -> str:
        return "OPTIMIZE GPU NVIDIA_CUVS " if self.cuvs else "OPTIMIZE GPU "

    def StandardGpuResources(self) -> object:  # noqa: N802
        self.calls.append(Call("resources", -1, ""))
        return object()

    def GpuIndexFlatIP(self, resources: object, dimension: int, config: Any) -> "Flat":  # noqa: N802
        return Flat(self, dimension, config)

    def GpuIndexCagra(self, resources: object, dimension: int, metric: int, config: Any) -> "Cagra":  # noqa: N802
        if not self.cuvs:
            raise AttributeError("module 'faiss' has no attribute 'GpuIndexCagra'")
        assert metric == real.METRIC_INNER_PRODUCT
        return Cagra(self, config.device, real.IndexHNSWCagra(dimension, config.graph_degree // 2, metric))

    def SearchParametersCagra(self, itopk_size: int = 64, sel: Any = None) -> Any:  # noqa: N802
        return SimpleNamespace(itopk_size=itopk_size, sel=sel)

    def index_cpu_to_gpu(self, resources: object, device: int, index: Any, options: Any = None) -> "Held":
        index = real.downcast_index(index)
        copy = real.deserialize_index(real.serialize_index(index))
        cuvs = bool(options and options.use_cuvs)
        self.seen("put", device, copy, cuvs=cuvs)
        self.fits(vectors=index.ntotal)
        if isinstance(index, real.IndexHNSWCagra):
            return Cagra(self, device, copy)
        if isinstance(index, real.IndexIVF):
            return InvertedFile(self, device, copy, cuvs)
        raise RuntimeError("This index type is not implemented on GPU.")

    def index_gpu_to_cpu(self, held: "Held") -> Any:
        self.seen("fetch", held.device, held.cpu)
        if isinstance(held, Cagra):
            assert held.vectors() is not None, "the real one would read memory that is free"
        return real.deserialize_index(real.serialize_index(held.cpu))

    def extract_index_ivf(self, index: Any) -> Any:
        return real.extract_index_ivf(index)

    def pairwise_distance_gpu(
        self, resources: object, some: np.ndarray, others: np.ndarray, metric: int = 1, device: int = -1
    ) -> np.ndarray:
        assert metric == real.METRIC_INNER_PRODUCT and some.dtype == others.dtype == np.float32
        self.calls.append(Call("products", device, "", {"shape": (len(some), len(others))}))
        self.fits(queries=len(some))
        return some @ others.T

    def Clustering(self, dimension: int, k: int, parameters: Any) -> "Clustering":  # noqa: N802
        return Clustering(self, dimension, k, parameters)

    def copy_array_to_vector(self, values: np.ndarray, vector: Any) -> None:
        real.copy_array_to_vector(values, vector)

    def seen(self, name: str, device: int, index: Any, **more: Any) -> None:
        self.calls.append(Call(name, device, type(index).__name__, more))

    def fits(self, queries: int = 0, vectors: int = 0) -> None:
        if queries > self.most_queries or vectors > self.most_vectors:
            raise RuntimeError(NO_MEMORY[self.cuvs])

    def of(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]


def _config() -> Any:
    return SimpleNamespace(device=0, useFloat16=False, use_cuvs=False)


def _cagra_config() -> Any:
    return SimpleNamespace(device=0, use_cuvs=False, graph_degree=64, intermediate_graph_degree=128)


class Held:
    """An index on a GPU; `cuvs` says whether cuVS searches it, and so whether a filter counts."""

    def __init__(self, module: GpuFaiss, device: int, cpu: Any, cuvs: bool) -> None:
        if not 0 <= device < module.gpus:
            raise RuntimeError(f"'config_.device < getNumDevices()' failed: Invalid GPU device {device}")
        self.module, self.device, self.cpu, self.cuvs = module, device, cpu, cuvs
        self.d = cpu.d

    @property
    def ntotal(self) -> int:
        return self.cpu.ntotal

    @property
    def cp(self) -> Any:
        return self.cpu.cp

    def train(self, vectors: np.ndarray) -> None:
        self.module.seen("train", self.device, self.cpu, vectors=len(vectors))
        self.module.fits(vectors=len(vectors))
        self.cpu.train(vectors)

    def add(self, vectors: np.ndarray) -> None:
        self.module.seen("add", self.device, self.cpu, vectors=len(vectors))
        self.module.fits(vectors=self.ntotal + len(vectors))
        self.cpu.add(vectors)

    def search(self, queries: np.ndarray, k: int, *, params: Any = None) -> tuple[np.ndarray, np.ndarray]:
        assert queries.dtype == np.float32 and queries.flags.c_contiguous
        most = 16384 if self.cuvs else 2048
        if not 0 < k <= most:
            raise RuntimeError(f"GPU index only supports min/max-K selection up to {most} (requested {k})")
        selector = getattr(params, "sel", None)
        more = {name: getattr(params, name) for name in ("nprobe", "itopk_size") if hasattr(params, name)}
        self.module.seen(
            "search", self.device, self.cpu, queries=len(queries), k=k, filtered=selector is not None, cuvs=self.cuvs,
            **more,
        )  # fmt: skip
        self.module.fits(queries=len(queries))
        return self.answer(queries, k, params, selector if self.cuvs else None)

    def answer(self, queries: np.ndarray, k: int, params: Any, selector: Any) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class Flat(Held):
    """`GpuIndexFlatIP`. With `useFloat16` it rounds vectors and queries."""

    def __init__(self, module: GpuFaiss, dimension: int, config: Any) -> None:
        if config.use_cuvs and not module.cuvs:
            raise RuntimeError("cuVS has not been compiled into the current version so it cannot be used.")
        super().__init__(module, config.device, real.IndexFlatIP(dimension), config.use_cuvs)
        self.half = config.useFloat16
        module.seen("flat", config.device, self.cpu, half=self.half, cuvs=config.use_cuvs)

    def add(self, vectors: np.ndarray) -> None:
        super().add(self._rounded(vectors))

    def reset(self) -> None:
        self.cpu.reset()

    def answer(self, queries: np.ndarray, k: int, params: Any, selector: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.cpu.search(self._rounded(queries), k, params=real.SearchParameters(sel=selector))

    def _rounded(self, vectors: np.ndarray) -> np.ndarray:
        return vectors.astype(np.float16).astype(np.float32) if self.half else vectors


class InvertedFile(Held):
    """`GpuIndexIVFScalarQuantizer` and `GpuIndexIVFPQ`. A float16 quantiser never runs in cuVS."""

    def __init__(self, module: GpuFaiss, device: int, cpu: Any, cuvs: bool) -> None:
        half = getattr(getattr(cpu, "sq", None), "qtype", None) == real.ScalarQuantizer.QT_fp16
        if isinstance(cpu, real.IndexIVFPQ):
            assert cpu.pq.nbits == 8 and cpu.by_residual and cpu.d % cpu.pq.M == 0
        super().__init__(module, device, cpu, cuvs and module.cuvs and not half)

    def answer(self, queries: np.ndarray, k: int, params: Any, selector: Any) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(params, real.SearchParametersIVF):
            raise RuntimeError("GPU IVF index: passed unhandled SearchParameters class to search function")
        if not 0 < params.nprobe <= min(2048, self.cpu.nlist if self.cuvs else 2048):
            raise RuntimeError(f"GPU IVF index only supports nprobe selection up to 2048 (requested {params.nprobe})")
        return self.cpu.search(queries, k, params=real.SearchParametersIVF(nprobe=params.nprobe, sel=selector))


class Cagra(Held):
    """`GpuIndexCagra`: takes all vectors at once; nothing can be added to it."""

    def __init__(self, module: GpuFaiss, device: int, cpu: Any) -> None:
        super().__init__(module, device, cpu, True)
        self.vectors: Any = lambda: None

    def train(self, vectors: np.ndarray) -> None:
        assert self.ntotal == 0
        self.vectors = weakref.ref(vectors)
        self.module.seen("train", self.device, self.cpu, vectors=len(vectors))
        self.module.fits(vectors=len(vectors))
        self.cpu.add(vectors)

    def add(self, vectors: np.ndarray) -> None:
        raise RuntimeError("adding vectors is not supported by GpuIndexCagra.")

    def answer(self, queries: np.ndarray, k: int, params: Any, selector: Any) -> tuple[np.ndarray, np.ndarray]:
        if k > params.itopk_size:
            raise RuntimeError(f"topk = {k} must be smaller than itopk_size = {params.itopk_size}")
        asked = real.SearchParametersHNSW(efSearch=params.itopk_size, sel=selector)
        return self.cpu.search(queries, k, params=asked)


class Clustering:
    """`Clustering` with an index on the GPU, which it empties and fills in each round."""

    def __init__(self, module: GpuFaiss, dimension: int, k: int, parameters: Any) -> None:
        self.module, self.k = module, k
        self.inner = real.Clustering(dimension, k, parameters)

    @property
    def centroids(self) -> Any:
        return self.inner.centroids

    def train(self, vectors: np.ndarray, index: Any, weights: Any = None) -> None:
        if not isinstance(index, Flat):
            self.inner.train(vectors, index)
            return
        self.module.seen("kmeans", index.device, index.cpu, k=self.k, vectors=len(vectors))
        self.module.fits(vectors=len(vectors))
        self.inner.train(vectors, index.cpu)


def stand_in(monkeypatch: Any, gpus: int = 2, cuvs: bool = True, free: int | None = None) -> GpuFaiss:
    """Put the stand-in in FAISS's place for a test; `free` is the free memory of each GPU in bytes."""
    import sys

    from sonde.indexer.ann import build, gpu

    module = GpuFaiss(gpus, cuvs)
    monkeypatch.setitem(sys.modules, "faiss", module)
    monkeypatch.setattr(gpu, "_GPUS", {})
    monkeypatch.setattr(sys.modules[build.__module__], "free_bytes", lambda _: free)
    return module

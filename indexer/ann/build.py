"""From vectors to a tuned and measured index."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import UsageError
from ..progress import tell
from . import kinds
from .devices import faiss, faiss_gpu, out_of_memory, search_device, threads
from .exact import VectorSource
from .gpu import Gpu, fill, free_bytes, gpu_of
from .index import AnnIndex
from .kinds import PQ_LEAST, PRODUCT_KINDS, OnGpu, choose_kind
from .place import place_for
from .settings import GPU_KINDS, TARGET, AnnInfo, AnnSettings, Kind
from .storage import Nodes
from .tuning import Notify, grow, held_out, say_nothing, timed


def build(
    vectors: VectorSource,
    settings: AnnSettings,
    *,
    alive: np.ndarray | None = None,
    notify: Notify = say_nothing,
) -> AnnIndex:
    """An index over the vectors, of a kind that fits them, tuned until recall@10 reaches the target.

    The queries of the tuning are vectors of the collection itself, left out of the index meanwhile. An HNSW graph
    grows on several threads whose order the system decides: two builds differ in their links, and where recall is
    below 1, now and then in an answer. With `threads=1`, and for every other kind, equal input gives an equal index.
    On a GPU, this is true only for the exact kind, because the order of sums changes each time. If the GPU has no
    memory left, the CPU builds the index, and a notice says so.

    Args:
        vectors: The stored vectors.
        settings: Kind, target, memory budget, seed, threads.
        alive: bool [rows]; rows where it is false are left out.
        notify: Called with (stage, done, total) as the work goes on.

    Raises:
        UsageError: There is no live row, `alive` does not fit the rows, there is no such GPU, or it cannot build the
            kind.
        MissingExtraError: FAISS is not installed, or not its GPU build for device "cuda".
    """
    rows = _live_rows(vectors, alive)
    if settings.device.startswith("cuda"):
        faiss_gpu()
    device = search_device(settings.device)
    try:
        return _built(vectors, settings, rows, device, notify)
    except (RuntimeError, MemoryError) as error:
        if device == "cpu" or not out_of_memory(error):
            raise
    tell(f"{device} has no memory left to build the index: the CPU builds it")
    kind = None if settings.kind == "cagra" else settings.kind
    return _built(vectors, replace(settings, kind=kind), rows, "cpu", notify)


def _built(vectors: VectorSource, settings: AnnSettings, rows: np.ndarray, device: str, notify: Notify) -> AnnIndex:
    gpu = None if device == "cpu" else gpu_of(device)
    random = np.random.default_rng(settings.seed)
    with threads(settings.threads):
        notify("reading vectors", 0, len(rows))
        nodes = Nodes.distinct(vectors, rows)
        offers = None if gpu is None else OnGpu(free_bytes(gpu), gpu.has_cuvs)
        kind, reason = choose_kind(settings, vectors.dimension, len(nodes), offers)
        gpu = _builder(kind, gpu)
        place = place_for(kind, len(nodes), device)
        held = held_out(kind, len(nodes) // 10)
        nodes = nodes.moved_last(random.choice(len(nodes), held, replace=False))
        index, trained_on = _trained(settings, kind, gpu, vectors, nodes.head(len(nodes) - held), random, notify)
        info = AnnInfo(
            kind=kind,
            rows=len(vectors),
            vectors=len(nodes),
            dimension=vectors.dimension,
            metric=settings.metric,
            target=TARGET if settings.target_recall is None else settings.target_recall,
            trained_on=trained_on,
            reason=reason,
            seed=settings.seed,
            versions={"faiss": faiss().__version__, "numpy": np.__version__},
            device=place.name.partition(":")[0],
        )
        built = grow(AnnIndex(index, nodes, info, place), vectors, held, random, notify)
        built.info = timed(built, vectors, random)
        return built


def _builder(kind: Kind, gpu: Gpu | None) -> Gpu | None:
    """The GPU that builds an index of this kind; None for the CPU.

    Raises:
        UsageError: Only a GPU with cuVS can, and there is none.
    """
    if kind == "cagra" and (gpu is None or not gpu.has_cuvs):
        raise UsageError("a graph of kind 'cagra' needs a GPU and FAISS with cuVS: see docs/gpu.md")
    return gpu if kind in GPU_KINDS else None


def _live_rows(vectors: VectorSource, alive: np.ndarray | None) -> np.ndarray:
    if alive is not None and len(alive) != len(vectors):
        raise UsageError(f"the mask of live rows covers {len(alive)} rows, the vectors have {len(vectors)}")
    rows = np.arange(len(vectors)) if alive is None else np.flatnonzero(alive)
    if not len(rows):
        raise UsageError("there is no live row to index; add documents first")
    return rows


def _trained(
    settings: AnnSettings,
    kind: Kind,
    gpu: Gpu | None,
    vectors: VectorSource,
    nodes: Nodes,
    random: np.random.Generator,
    notify: Notify,
) -> tuple[Any, int]:
    """An index whose codes and cells have learnt from a sample of the nodes, and the size of that sample.

    On the GPU the nodes are put in at the same time.
    """
    index = kinds.create_index(kind, vectors.dimension, len(nodes), settings.seed)
    size = kinds.training_size(kind, len(nodes))
    if size:
        notify("training", 0, size)
        sample = vectors.read(np.sort(random.choice(nodes.first, size, replace=False)))
        sample = np.resize(sample, (max(PQ_LEAST, size), vectors.dimension)) if kind in PRODUCT_KINDS else sample
        if gpu is not None:
            return fill(gpu, kind, index, sample, vectors, nodes.first), size
        index.train(sample)
    return index, size

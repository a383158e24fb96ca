"""UMAP and HDBSCAN on a GPU through cuML, the extra `cuml`; without it, or without a GPU, the CPU's libraries are used.

With a seed, cuML gives the same result again on the same GPU with the same versions, but it is slower. Its results
differ from those of the CPU's libraries: the groups are similar, but their numbers, edges and places differ.
"""

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any, TypeVar

import numpy as np

from ...indexer.ann.gpu import Gpu, gpu_here, on_gpu

T = TypeVar("T")


def has_cuml() -> bool:
    """Whether there is a GPU to compute on, and cuML."""
    if gpu_here() is None:
        return False
    try:
        import_module("cuml")
    except ImportError:
        return False
    return True


def cuml_package() -> tuple[str, ...]:
    """Return the distribution of cuML if it computes here, else nothing; a run stores its version."""
    if not has_cuml():
        return ()
    return tuple(name for name in ("cuml-cu13", "cuml-cu12") if _installed(name))


def with_cuml(what: str, there: Callable[[], T], here: Callable[[], T]) -> T:
    """Return what `there` gives on the GPU with cuML, or what `here` gives if there is no cuML, or no memory left."""
    if not has_cuml():
        return here()

    def on_device(gpu: Gpu) -> T:
        with import_module("cupy").cuda.Device(gpu.number):
            return there()

    return on_gpu(what, on_device, here)


def project_with_cuml(
    vectors: np.ndarray, nearest: tuple[np.ndarray, np.ndarray], *, dimensions: int, spread_out: float, start: str,
    rounds: int, seed: int,
) -> np.ndarray:  # fmt: skip
    """Return float32 [n, dimensions] places by cuML's UMAP (Nolet et al., arXiv:2008.00325).

    Args:
        vectors: float32 [n, d], of length 1.
        nearest: int64 [n, k] rows and float32 [n, k] cosine distances of the neighbours, each vector itself first.
        dimensions: Of the places.
        spread_out: UMAP's `min_dist`.
        start: "spectral" or "random".
        rounds: Of the layout.
        seed: Makes the result repeatable on this GPU.
    """
    model = import_module("cuml.manifold").UMAP(
        n_neighbors=nearest[0].shape[1], n_components=dimensions, metric="cosine", min_dist=spread_out, init=start,
        n_epochs=rounds, random_state=seed, precomputed_knn=nearest, build_algo="brute_force_knn",
        output_type="numpy",
    )  # fmt: skip
    return np.asarray(model.fit_transform(np.ascontiguousarray(vectors)), np.float32)


def groups_with_cuml(places: np.ndarray, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each place, int64 [n], -1 for none, and how firmly it belongs, float64 [n], by HDBSCAN.

    Args:
        places: float [n, d].
        **settings: `min_cluster_size`, `min_samples`, `max_cluster_size`.
    """
    model = import_module("cuml.cluster").HDBSCAN(output_type="numpy", **settings)
    found = model.fit(np.ascontiguousarray(places, np.float32))
    return np.asarray(found.labels_, np.int64), np.nan_to_num(np.asarray(found.probabilities_, np.float64))


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True

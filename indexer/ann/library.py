"""FAISS itself, loaded when it is first needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..errors import MissingExtraError, UsageError

GPU_COMMAND = "pip uninstall -y faiss-cpu, then pip install 'faiss-gpu>=1.15' (see docs/gpu.md)"
"""Both packages hold the module faiss, so the one in the base has to go first."""


def faiss() -> Any:
    """The FAISS module; MissingExtraError where it is not installed."""
    try:
        return import_module("faiss")
    except ModuleNotFoundError as error:
        raise MissingExtraError("FAISS", "all", "vector search") from error


def has_gpu() -> bool:
    """Whether the installed FAISS can use a GPU and finds one; MissingExtraError where FAISS is not installed."""
    module = faiss()
    return hasattr(module, "StandardGpuResources") and module.get_num_gpus() > 0


def faiss_gpu() -> Any:
    """The FAISS module, checked to reach a GPU.

    Raises:
        MissingExtraError: FAISS was built without GPU support.
        UsageError: It has GPU support, and finds no GPU.
    """
    module = faiss()
    if not hasattr(module, "StandardGpuResources"):
        raise MissingExtraError("FAISS with GPU support", "", "an index on device 'cuda'", GPU_COMMAND)
    if module.get_num_gpus() < 1:
        raise UsageError("device 'cuda' was asked for and FAISS finds no GPU; use device 'cpu'")
    return module


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let FAISS use `count` threads within the block, and as many as before after it."""
    module = faiss()
    before = module.omp_get_max_threads()
    if count is not None:
        module.omp_set_num_threads(count)
    try:
        yield
    finally:
        module.omp_set_num_threads(before)


def faiss_package() -> str:
    """Return the distribution that FAISS came in."""
    from importlib import metadata

    for name in ("faiss-gpu-cuvs", "faiss-gpu"):
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return name
    return "faiss-cpu"

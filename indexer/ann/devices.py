"""FAISS, the device on which it searches vectors, and what happens if a GPU has no memory left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from ..errors import MissingExtraError, UsageError
from ..progress import tell

C = TypeVar("C")

GPU_COMMAND = "pip uninstall -y faiss-cpu, then pip install 'faiss-gpu>=1.15' (see docs/gpu.md)"
"""Both packages hold the module faiss, so the one in the base has to go first."""

_ASKED: ContextVar[str] = ContextVar("device", default="auto")

_OUT_OF_MEMORY = ("memory allocation error", "alloc fail", "out of memory", "out_of_memory")
"""Texts of FAISS's errors: the first with cuVS, the second without it, the others from CUDA or RMM."""


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


@contextmanager
def computing_on(device: str) -> Iterator[None]:
    """Let the block compute on this device: "auto", "cpu", "cuda", "cuda:1" or a list of them."""
    token = _ASKED.set(device)
    try:
        yield
    finally:
        _ASKED.reset(token)


def on_its_device(cls: type[C]) -> type[C]:
    """Let each public method of a class compute on the device of its collection, in `stored` or `collection`."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _on_its_device(value))
    return cls


def _on_its_device(method: FunctionType) -> Callable[..., Any]:
    @wraps(method)
    def on_device(self: Any, *given: Any, **named: Any) -> Any:
        with computing_on((getattr(self, "stored", None) or self.collection).device):
            return method(self, *given, **named)

    return on_device


def search_device(device: str = "auto") -> str:
    """Return the device that vectors are searched on: "cpu", or "cuda:0", "cuda:1" and so on.

    The first device of a list holds the index. "auto" is the device of the enclosing `computing_on`. Without one, it is
    the first GPU, or the CPU if there is none. If FAISS has no GPU support, a requested GPU computes only embeddings.

    Raises:
        UsageError: The machine has GPUs, but not this one.
    """
    named = (_ASKED.get() if device == "auto" else device).split(",")[0].strip()
    if named in ("cpu", "mps"):
        return "cpu"
    if not _reaches_gpu():
        if named != "auto":
            tell(f"the installed FAISS has no GPU support, so searches run on the CPU: {GPU_COMMAND}")
        return "cpu"
    number, count = int(named.partition(":")[2] or 0), faiss().get_num_gpus()
    if number >= count:
        raise UsageError(f"this machine has no device 'cuda:{number}': it has {', '.join(_names(count))}, cpu")
    return f"cuda:{number}"


def _reaches_gpu() -> bool:
    try:
        return has_gpu()
    except MissingExtraError:  # the code that needs FAISS reports it
        return False


def _names(count: int) -> list[str]:
    return [f"cuda:{number}" for number in range(count)]


def out_of_memory(error: BaseException) -> bool:
    """Whether an error of FAISS, CUDA or cuML means that a GPU had no memory left."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in _OUT_OF_MEMORY)

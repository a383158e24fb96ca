"""What identifies a model, and how to run it on this machine: devices, precision, batch size."""

import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from ..errors import MissingExtraError, SondeError, UsageError, arg, is_unicode

LARGEST_DIMENSION = 65_536
"""No embedding is longer."""
DTYPES = ("float32", "bfloat16", "float16", "int8")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model and the settings under which a collection was embedded with it.

    Attributes:
        name: As `load_encoder` takes it: the default's short name, "static", a hub's "org/name" or an absolute folder.
        revision: The hub's commit, or None for a local model.
        digest: SHA-256 over the weights; for the static tier over its base's digest and the recipe.
        dimension: Length of a vector, after any truncation.
        max_tokens: The window: the most tokens, special ones and prompt included, that one text may take.
        query_prompt: Put in front of every query.
        document_prompt: Put in front of every passage.
        normalize: Whether vectors have length 1.
        dtype: Precision of the forward pass; "int8" is ONNX Runtime's dynamic quantization on a CPU.
        truncate_dim: Matryoshka truncation, applied before normalising; None keeps all dimensions.
        similarity: "cosine", or "dot" where the model says so and vectors are not normalised. Higher is nearer.
        kind: "transformer" or "static".
    """

    name: str
    revision: str | None
    digest: str
    dimension: int
    max_tokens: int
    query_prompt: str
    document_prompt: str
    normalize: bool
    dtype: str
    truncate_dim: int | None
    similarity: str
    kind: str

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits over all that changes a vector; neither the name nor the device does."""
        values = asdict(self)
        del values["name"], values["revision"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, which `from_dict` reads back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            SondeError: A field is missing, unknown or of another type.
        """
        types: dict[str, Any] = {field.name: field.type for field in fields(cls)}
        given = values if isinstance(values, dict) else {}
        odd = set(types) ^ set(given)
        odd |= {name for name in types.keys() & given.keys() if not isinstance(given[name], types[name])}
        odd = odd or {name for name, value in given.items() if not _FITS.get(name, _is_text)(value)}
        if odd:
            named = ", ".join(sorted(odd))
            raise SondeError(f"the collection's model description is damaged or of another version (fields: {named})")
        return cls(**given)


def _is_text(value: object) -> bool:
    """Whether a value is no text, or one that UTF-8 can express; JSON can hold a lone surrogate, which it cannot."""
    return not isinstance(value, str) or is_unicode(value)


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "dimension": lambda value: 0 < value <= LARGEST_DIMENSION,
    "max_tokens": lambda value: value > 0,
    "truncate_dim": lambda value: value is None or 0 < value <= LARGEST_DIMENSION,
    "dtype": lambda value: value in DTYPES,
    "similarity": lambda value: value in ("cosine", "dot"),
}


def device_names(device: str) -> list[str]:
    """Return the names in a list of devices, whether this machine has them or not. Does not load torch.

    Raises:
        UsageError: A name is unknown.
    """
    names = [name.strip() for name in device.split(",")]
    if bad := next((name for name in names if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name)), None):
        said = f"unknown device {bad!r}: give auto, cpu, cuda, cuda:1, mps, or a list such as cuda:0,cuda:1"
        raise UsageError(said, code="unknown-option", field="device", value=bad)
    return names


def resolve_devices(device: str) -> list[str]:
    """Return the devices that "auto", "cpu", "cuda", "cuda:1", "mps" or a list such as "cuda:0,cuda:1" stands for.

    "auto" is the first GPU, else Apple's, else the CPU. Naming a device twice runs two replicas on it.

    Raises:
        UsageError: A name is unknown, or this machine has no such device.
        MissingExtraError: There may be such a device, but PyTorch, which computes on it, is not installed.
    """
    names = device_names(device)
    present = available_devices()
    if device == "auto":
        return [present[0]]
    names = ["cuda:0" if name == "cuda" else name for name in names]
    if absent := next((name for name in names if name not in present), None):
        if _may_have_gpu() and not has_torch():
            raise MissingExtraError("PyTorch", "all", f"{arg('device')} {absent}")
        said = f"this machine has no device {absent!r}: it has {', '.join(present)}"
        raise UsageError(said, code="not-found", field="device", value=absent, alternatives=present)
    return names


def cores() -> int:
    """Return how many threads compute at once on a CPU: $OMP_NUM_THREADS, else the cores that this process may use."""
    stated = os.environ.get("OMP_NUM_THREADS", "")
    if stated.isdecimal() and int(stated):
        return int(stated)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def available_devices() -> list[str]:
    """Return the devices that torch can use here, the fastest first; torch is not loaded where it could find none."""
    if not _may_have_gpu() or not has_torch():
        return ["cpu"]
    import torch

    found = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*found, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def resolve_dtype(dtype: str, device: str) -> str:
    """Return the precision: "auto" is float16 on an NVIDIA GPU and float32 elsewhere.

    Raises:
        UsageError: It is unknown, or the device cannot compute in it.
    """
    if dtype == "auto":
        return "float16" if device.startswith("cuda") else "float32"
    if dtype not in DTYPES:
        said = f"unknown dtype {dtype!r}: give auto, {', '.join(DTYPES)}"
        raise UsageError(said, code="unknown-option", field="dtype", value=dtype, alternatives=("auto", *DTYPES))
    if dtype == "int8" and device != "cpu":
        said = f"dtype int8 runs on the CPU, not on {device}: give {arg('device')} cpu, or float16 on a GPU"
        raise UsageError(said, code="conflict", field="dtype", value=dtype)
    return dtype


def has_torch() -> bool:
    """Whether torch is installed, which only the full installation brings; it is not imported."""
    return importlib.util.find_spec("torch") is not None


def _may_have_gpu() -> bool:
    """Whether there is a driver of a GPU: on Linux its file (in WSL another), on Windows its library."""
    if sys.platform == "linux":
        return any(Path(name).exists() for name in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd"))
    if sys.platform == "win32":
        from ctypes.util import find_library

        return find_library("nvcuda") is not None
    return True


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """Devices and precision, resolved, and the options which change vectors; None takes the model's own.

    Attributes:
        dtype: What the collection remembers.
        compute: What the forward pass computes in.
    """

    devices: list[str]
    dtype: str
    compute: str
    truncate_dim: int | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    normalize: bool = True
    max_tokens: int | None = None

    @classmethod
    def of(
        cls,
        device: str,
        dtype: str,
        *,
        truncate_dim: int | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        normalize: bool = True,
        max_tokens: int | None = None,
    ) -> Self:
        """Resolve device and precision.

        Raises:
            UsageError: One is unknown, this machine lacks it, or they do not go together.
        """
        devices = resolve_devices("cpu" if dtype == "int8" and device == "auto" else device)
        dtype = resolve_dtype(dtype, devices[0])
        compute = "float32" if dtype == "int8" else dtype
        return cls(devices, dtype, compute, truncate_dim, query_prompt, document_prompt, normalize, max_tokens)

    @classmethod
    def like(cls, spec: ModelSpec, device: str, *, half_on_cpu: bool = False) -> Self:
        """Take the settings of a collection; a CPU computes half precision in float32, unless `half_on_cpu`.

        Raises:
            UsageError: This machine lacks the device, or it cannot compute in the collection's precision.
        """
        wanted = cls.of(device, spec.dtype)
        half = wanted.devices[0] == "cpu" and spec.dtype in ("float16", "bfloat16") and not half_on_cpu
        return cls(
            wanted.devices,
            spec.dtype,
            "float32" if half else wanted.compute,
            spec.truncate_dim,
            spec.query_prompt,
            spec.document_prompt,
            spec.normalize,
            spec.max_tokens,
        )

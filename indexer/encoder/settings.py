"""How a model is to be run: what was asked for, resolved against this machine."""

from dataclasses import dataclass
from typing import Self

from .devices import resolve_devices, resolve_dtype
from .spec import ModelSpec


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
    def like(cls, spec: ModelSpec, device: str) -> Self:
        """Take the settings of a collection; what a GPU did in half precision, a CPU does in float32.

        Raises:
            UsageError: This machine lacks the device, or it cannot compute in the collection's precision.
        """
        wanted = cls.of(device, spec.dtype)
        half = wanted.devices[0] == "cpu" and spec.dtype in ("float16", "bfloat16")
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

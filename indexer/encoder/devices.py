"""Devices and precisions: what was asked for against what this machine has."""

import re

from ..errors import UsageError
from .spec import DTYPES


def resolve_devices(device: str) -> list[str]:
    """Return the devices that "auto", "cpu", "cuda", "cuda:1", "mps" or a list such as "cuda:0,cuda:1" stands for.

    "auto" is the first GPU, else Apple's, else the CPU. Naming a device twice runs two replicas on it.

    Raises:
        UsageError: A name is unknown, or this machine has no such device.
    """
    present = available_devices()
    if device == "auto":
        return [present[0]]
    names = [name.strip() for name in device.split(",")]
    if bad := next((name for name in names if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name)), None):
        raise UsageError(f"unknown device {bad!r}: give auto, cpu, cuda, cuda:1, mps, or a list such as cuda:0,cuda:1")
    names = ["cuda:0" if name == "cuda" else name for name in names]
    if absent := next((name for name in names if name not in present), None):
        raise UsageError(f"this machine has no device {absent!r}: it has {', '.join(present)}")
    return names


def available_devices() -> list[str]:
    """Return the devices that torch can use here, the fastest first."""
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
        raise UsageError(f"unknown dtype {dtype!r}: give auto, {', '.join(DTYPES)}")
    if dtype == "int8" and device != "cpu":
        raise UsageError(f"dtype int8 runs on the CPU, not on {device}: give --device cpu, or float16 on a GPU")
    return dtype

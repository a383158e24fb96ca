"""Smaller and faster forms of a bi-encoder, and what each costs at work: time, memory, size of the weights."""

import ctypes
import gc
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ...indexer.encoder import STATIC_MODEL, Encoder, load_encoder
from ...indexer.encoder.assembly import quantize
from ...indexer.encoder.loading import quiet
from ...indexer.encoder.settings import resolve_devices
from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from ..similarity.similarity import load_symmetric

EXACT = "float32"
DTYPES = (EXACT, "bfloat16", "float16")
PER_CHANNEL, PER_TENSOR = "int8", "int8-tensor"
PRUNED = "pruned"
SHARE = 0.2
"""Share of the weights of each linear layer that pruning sets to zero, unless another is named."""
DIMENSIONS = "dims"
_FORM = re.compile(rf"({PRUNED}|{DIMENSIONS})(?::(\d*\.?\d+))?")


def usual_forms(device: str = "auto") -> tuple[str, ...]:
    """Return the forms that are compared when nobody chose; int8 runs on CPUs alone, float16 on GPUs well."""
    on_cpu = resolve_devices(device)[0] == "cpu"
    return (*DTYPES[:2], *((PER_TENSOR, PER_CHANNEL) if on_cpu else ("float16",)), PRUNED, STATIC_MODEL)


def check_form(form: str) -> str:
    """Return a form with its number written out: "pruned" is "pruned:0.2".

    Raises:
        UsageError: There is no such form, or its number is not valid.
    """
    form = form.strip()
    if form in (*DTYPES, PER_CHANNEL, PER_TENSOR, STATIC_MODEL):
        return form
    found = _FORM.fullmatch(form)
    if found and found[1] == PRUNED and 0 < (share := float(found[2] or SHARE)) < 1:
        return f"{PRUNED}:{share:g}"
    if found and found[1] == DIMENSIONS and (found[2] or "").isdecimal() and int(found[2]) > 0:
        return f"{DIMENSIONS}:{int(found[2])}"
    known = ", ".join((*DTYPES, PER_CHANNEL, PER_TENSOR, f"{PRUNED}:0.2", f"{DIMENSIONS}:128", STATIC_MODEL))
    raise UsageError(f"there is no model form {form!r}: give {known}")


def load_form(model: str, form: str, device: str = "auto", notify: Notify = silent, symmetric: bool = True) -> Encoder:
    """Load a model in one of its forms, as `check_form` returns them; not "dims", which any vectors can be cut to.

    Args:
        model: The model's name.
        form: The form.
        device: Where to run it.
        notify: Receives sentences that the user should read.
        symmetric: Without the prompts of queries and documents, which are for search.

    Raises:
        UsageError: The model or the device does not go with the form.
        SondeError: The model is not available.
    """
    load = load_symmetric if symmetric else load_encoder
    if form == STATIC_MODEL:
        return load(f"{STATIC_MODEL}:{model}", device=device, dtype=EXACT, notify=notify)
    if form in (*DTYPES, PER_CHANNEL):
        return load(model, device=device, dtype=form, notify=notify)
    place = "cpu" if form == PER_TENSOR else device
    encoder = load(model, device=place, dtype=EXACT, engine="torch", notify=notify)
    if form == PER_TENSOR:
        with quiet():
            quantize(encoder, notify, per_channel=False)
        encoder.spec = replace(encoder.spec, dtype=PER_CHANNEL)
    else:
        prune(encoder.library(), float(form.partition(":")[2]))
    return encoder


def prune(model: Any, share: float) -> float:
    """Set the smallest weights of each linear layer to zero, for good; return the share of zeros in these layers.

    Magnitude pruning without structure (Han et al., NIPS 2015): the zeros are stored and multiplied like any number.

    Args:
        model: A torch module.
        share: Of each layer's weights, 0 to 1.

    Raises:
        UsageError: It has no linear layer.
    """
    import torch
    from torch.nn.utils import prune as pruning

    layers = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    if not layers:
        raise UsageError("the model has no linear layer that could be pruned")
    for layer in layers:
        pruning.l1_unstructured(layer, "weight", amount=share)
        pruning.remove(layer, "weight")
    zeros = sum(int((layer.weight == 0).sum()) for layer in layers)
    return zeros / sum(layer.weight.numel() for layer in layers)


BUSY = 0.1
"""Share of the processor that other programs may use before times count as disturbed."""
_INTERVAL = 0.005


@dataclass(slots=True)
class Cost:
    """What a block of work took; filled when the block ends.

    Attributes:
        seconds: Wall-clock time.
        processor: Seconds of work by this process's threads, over all cores: what other programs disturb least.
        memory: Bytes by which the process's memory grew at most since `settled_memory`, or those in use on a GPU.
        others: Share of the processor's cores that other programs used meanwhile, 0 to 1.
    """

    seconds: float = 0.0
    processor: float = 0.0
    memory: int = 0
    others: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether the time says little, since other programs used the processor too."""
        return self.others > BUSY


def settled_memory() -> int:
    """Return the bytes that the process holds, the libraries of models loaded and what is free given back."""
    import psutil
    import sentence_transformers  # noqa: F401 - what it takes is no model's

    gc.collect()
    with suppress(OSError, AttributeError):  # glibc alone; without it, what is freed stays with the process
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


@contextmanager
def watched(before: int, device: str = "cpu") -> Iterator[Cost]:
    """Measure the block; memory counts from `before`."""
    import psutil

    cost, process, done = Cost(), psutil.Process(), threading.Event()
    peak = [process.memory_info().rss]

    def watch() -> None:
        while not done.wait(_INTERVAL):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch, daemon=True)
    reset_gpu(device)
    began, ours, all_ = perf_counter(), _ours(process), _busy()
    watcher.start()
    try:
        yield cost
    finally:
        cost.seconds = perf_counter() - began
        done.set()
        watcher.join()
        cores = psutil.cpu_count() or 1
        cost.processor = _ours(process) - ours
        others = _busy() - all_ - cost.processor
        cost.others = min(1.0, max(0.0, others / (cores * max(cost.seconds, 1e-9))))
        cost.memory = gpu_memory(device) or max(0, max(peak[0], process.memory_info().rss) - before)


def reset_gpu(device: str) -> None:
    """Reset the peak of a GPU's memory; nothing on other devices."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def gpu_memory(device: str) -> int:
    """Return the most bytes that were in use on a GPU; 0 for other devices."""
    if not device.startswith("cuda"):
        return 0
    import torch

    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device))


def weights_size(encoder: Encoder) -> int:
    """Return the bytes of a model's weights in the precision that it runs in: what a file of them takes."""
    model: Any = encoder.library()
    seen = {tensor.data_ptr(): tensor.numel() * tensor.element_size() for tensor in model.parameters()}
    graphs = [module.file.stat().st_size for module in model.modules() if hasattr(module, "session")]
    return sum(seen.values()) + sum(graphs)


def _busy() -> float:
    """Return the seconds that all cores have worked."""
    import psutil

    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))


def _ours(process: Any) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)

"""What a model costs while it works: time, weights, memory, and whether other programs got in the way."""

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ...indexer.encoder import Encoder

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
    """Begin to count a GPU's memory anew; nothing on other devices."""
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
    model: Any = encoder.replicas[0].model
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

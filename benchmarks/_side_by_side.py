"""What the benchmarks share: where the data lies, the machine in one line, and timing two things in turn."""

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

BESIDE = "beside a peer: "
DATA = Path(os.environ.get("SONDE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def machine(*packages: str) -> str:
    """The processor, its cores, Python and the versions of packages, in one line."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, {versions}"


def seconds(work: Callable[[], Any]) -> float:
    """How long `work` takes."""
    began = perf_counter()
    work()
    return perf_counter() - began


def in_turn(runs: int, ours: Callable[[], float], peer: Callable[[], float]) -> list[tuple[float, float]]:
    """Run both, one after the other, `runs` times: pairs of seconds that met the same state of the machine."""
    return [(ours(), peer()) for _ in range(runs)]


def times_as_fast(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """How many times as fast as the peer we were, in each run."""
    return [peer / ours for ours, peer in pairs]


def beside(work: str, peer: str, faster: Sequence[float], outputs: str) -> None:
    """Print the line that `report.py` gathers: times as fast as the peer, and what the outputs have in common."""
    print(f"{BESIDE}{work} | {peer} | {' '.join(f'{one:.4g}' for one in faster)} | {outputs}", flush=True)


def spread(values: Sequence[float]) -> str:
    """The median, with the least and the greatest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"

"""The card's own rates, beside which all others are read: matrix product, memory, and the way to it."""

from collections.abc import Callable

import torch
from _side_by_side import machine, seconds
from _stage import Stage

STEPS = 20


def main() -> None:
    """Measure the card."""
    stage = Stage.of("check")
    on_gpu = stage.device == "cuda"
    name = torch.cuda.get_device_name() if on_gpu else "no card"
    stage.row("machine", f"{name}; {machine('torch', 'sonde', 'sentence-transformers', 'tokenizers')}")
    for kind in (torch.float16, torch.bfloat16) if on_gpu else (torch.float32,):
        label = str(kind).removeprefix("torch.")
        stage.row(f"matrix product in {label}", f"{product(stage, kind) / 1e12:,.2f} TFLOP/s")
    count = 1_000_000 if stage.tiny else 1 << 29
    block = torch.empty(count, dtype=torch.float16, device=stage.device)
    other = torch.empty_like(block)
    stage.row("memory, read and written", f"{2 * rate(stage, lambda: other.copy_(block), 2 * count) / 1e9:,.0f} GB/s")
    near = torch.empty(count, dtype=torch.float16, pin_memory=on_gpu)
    way = rate(stage, lambda: block.copy_(near, non_blocking=True), 2 * count)
    stage.row("pinned copy to the card", f"{way / 1e9:,.1f} GB/s")


def product(stage: Stage, kind: torch.dtype) -> float:
    """Return the operations a second of a large square product."""
    side = 256 if stage.tiny else 8192
    left, right = (torch.randn(side, side, device=stage.device).to(kind) for _ in range(2))
    return rate(stage, lambda: left @ right, 2 * side**3)


def rate(stage: Stage, work: Callable[[], object], amount: int) -> float:
    """Return the amount a second, the best of three series."""

    def series() -> None:
        for _ in range(STEPS):
            work()
        if stage.device == "cuda":
            torch.cuda.synchronize()

    series()
    return STEPS * amount / min(seconds(series) for _ in range(3))


if __name__ == "__main__":
    main()

"""Embedding on a GPU: Sonde in half precision against sentence-transformers' `encode` at its float32 defaults.

    python benchmarks/embed_gpu.py                      20,000 arXiv abstracts, the default model
    python benchmarks/embed_gpu.py --budgets 16384,32768,65536,131072

Prints texts per second of both, tokenising included and apart, the share of the time that the GPU is busy, and the
cosine of the outputs. Needs a CUDA device, and says so where there is none.
"""

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from _side_by_side import DATA, beside, in_turn, machine, seconds, spread, times_as_fast

from sonde.indexer.encoder import Encoder, load_encoder


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=DATA / "titles/arxiv_cs.parquet", help="Parquet with a text column"
    )
    parser.add_argument("--column", default="abstract")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--budgets", default="65536", help="tokens per batch, one or several")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: nothing measured")
    if not arguments.data.exists():
        raise SystemExit(f"no data at {arguments.data}: give --data FILE.parquet --column NAME")
    texts = read_texts(arguments.data, arguments.column, arguments.texts)
    encoder = load_encoder(device="cuda")
    peer = load_encoder(device="cuda", dtype="float32").library()
    print(f"{torch.cuda.get_device_name()}; {machine('torch', 'transformers', 'sentence-transformers', 'tokenizers')}")
    print(f"{len(texts)} texts\n")
    print("| tokens per batch | Sonde, texts/s | forward only | GPU busy | times the peer | lowest cosine |")
    print("|---|---|---|---|---|---|")
    for budget in arguments.budgets.split(","):
        encoder.batch_tokens = int(budget)
        print(row(encoder, peer, texts, arguments.runs))


def read_texts(path: Path, column: str, count: int) -> list[str]:
    """Read the first `count` texts of a column."""
    import pyarrow.parquet as parquet

    return parquet.read_table(path, columns=[column])[column].to_pylist()[:count]


def row(encoder: Encoder, peer: Any, texts: list[str], runs: int) -> str:
    """Compare at one batch size."""
    exact = peer.encode(texts[:2000], normalize_embeddings=True)
    lowest = (encoder.encode_texts(texts[:2000]) * exact).sum(axis=1).min()
    pairs = in_turn(
        runs, lambda: seconds(lambda: encoder.encode_texts(texts)), lambda: seconds(lambda: peer.encode(texts))
    )
    tokens = encoder.tokenize(texts)
    forward = min(seconds(lambda: encoder.encode(tokens)) for _ in range(runs))
    best = min(ours for ours, _ in pairs)
    rates = f"{len(texts) / best:,.0f} | {len(texts) / forward:,.0f}"
    faster = times_as_fast(pairs)
    beside(
        f"embed texts on a GPU, {encoder.batch_tokens} tokens a batch",
        "sentence-transformers",
        faster,
        f"lowest cosine {lowest:.5f}",
    )
    return f"| {encoder.batch_tokens} | {rates} | {busy(encoder, tokens):.0%} | {spread(faster)} | {lowest:.5f} |"


def busy(encoder: Encoder, tokens: list) -> float:
    """Return the share of the forward passes' time in which the GPU computes or copies."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        began = perf_counter()
        encoder.encode(tokens)
        torch.cuda.synchronize()
        wall = perf_counter() - began
    spans = [
        (each.time_range.start, each.time_range.end)
        for each in (profiler.events() or [])
        if each.device_type.name == "CUDA"
    ]
    return union(np.array(spans)) / 1e6 / wall


def union(spans: np.ndarray) -> float:
    """Return the total length of spans of time, where they overlap only once."""
    spans = spans[np.argsort(spans[:, 0])]
    ends = np.maximum.accumulate(spans[:, 1])
    begins = np.maximum(spans[1:, 0], ends[:-1])
    return float(spans[0, 1] - spans[0, 0] + np.clip(spans[1:, 1] - begins, 0, None).sum())


if __name__ == "__main__":
    main()

"""Embedding on a CPU: Sonde against sentence-transformers' `encode` at its defaults, and against the matrix product.

    python benchmarks/embed_cpu.py                                       300 newsgroup posts, the default model
    python benchmarks/embed_cpu.py --data texts.jsonl.gz --texts 1000    any JSON lines with a "text"
    python benchmarks/embed_cpu.py --dtype int8                          the quantized model

Both embed the same texts, tokenising included, in turn. The share of the matrix-product rate counts the operations
of the real tokens only: padding is waste, not work. CPU seconds stand beside the wall clock because they hold where
other programs share the machine; the product's are those of one thread, which waits for no other.
"""

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import torch
from _side_by_side import DATA, beside, machine, spread, times_as_fast

from sonde.indexer.encoder import Encoder, load_encoder

SQUARE = (2048, 2048, 2048)


class Cost(NamedTuple):
    """What a piece of work took."""

    wall: float
    cpu: float


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA / "topics/newsgroups20.jsonl.gz")
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--engine", default="auto", choices=("auto", "torch"))
    arguments = parser.parse_args()
    if not arguments.data.exists():
        raise SystemExit(f"no data at {arguments.data}: give --data FILE.jsonl[.gz]")
    texts = read_texts(arguments.data, arguments.texts)
    peer = load_encoder(arguments.model, device="cpu").library()
    encoder = load_encoder(arguments.model, device="cpu", dtype=arguments.dtype, engine=arguments.engine)
    compare(encoder, peer, texts, arguments.runs)


def read_texts(path: Path, count: int) -> list[str]:
    """Read `count` texts spread evenly over a file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        texts = [row["text"] for line in lines if (row := json.loads(line))["text"].strip()]
    return texts[:: max(1, len(texts) // count)][:count]


def compare(encoder: Encoder, peer: Any, texts: list[str], runs: int) -> None:
    """Run both in turn and print what came out."""
    lengths = [len(tokens.ids) for tokens in encoder.tokenize(texts)]
    gflop = operations(peer, lengths) / 1e9
    lowest = (encoder.encode_texts(texts) * peer.encode(texts)).sum(axis=1).min()
    pairs = [(cost(lambda: encoder.encode_texts(texts)), cost(lambda: peer.encode(texts))) for _ in range(runs)]
    config = peer[0].model.config
    shaped = product_rates((encoder.batch_tokens, config.hidden_size, config.intermediate_size))
    square = product_rates(SQUARE)
    versions = machine("torch", "transformers", "sentence-transformers", "tokenizers")
    print(f"{versions}, {torch.get_num_threads()} threads")
    print(f"{len(texts)} texts, {sum(lengths)} tokens, {gflop:.0f} GFLOP; lowest cosine of the outputs {lowest:.6f}\n")
    print("| | texts/s | GFLOP/s | per CPU second | of the product at the model's shape | of 2048³ |")
    print("|---|---|---|---|---|---|")
    for name, side in (("Sonde", 0), ("sentence-transformers", 1)):
        wall, cpu = (min(pair[side][clock] for pair in pairs) for clock in (0, 1))
        shares = " | ".join(
            f"{gflop / wall / most.wall:.0%} (CPU {gflop / cpu / most.cpu:.0%})" for most in (shaped, square)
        )
        print(f"| {name} | {len(texts) / wall:.1f} | {gflop / wall:.0f} | {gflop / cpu:.0f} | {shares} |")
    for name, most in (("product, model's shape", shaped), ("product, 2048³", square)):
        print(f"| {name} | | {most.wall:.0f} | {most.cpu:.0f} | | |")
    by_clock, by_cpu = (times_as_fast([(ours[clock], theirs[clock]) for ours, theirs in pairs]) for clock in (0, 1))
    print(f"\nTimes as fast as the peer: {spread(by_clock)} by the clock, {spread(by_cpu)} in CPU seconds.")
    for name, faster in (("by the clock", by_clock), ("in CPU seconds", by_cpu)):
        beside(f"embed texts, {name}", "sentence-transformers", faster, f"lowest cosine {lowest:.6f}")


def cost(work: Callable[[], object]) -> Cost:
    """Return what `work` takes by the clock and in CPU seconds of all threads."""
    began, began_cpu = perf_counter(), process_time()
    work()
    return Cost(perf_counter() - began, process_time() - began_cpu)


def operations(model: Any, lengths: list[int]) -> float:
    """Count the floating-point operations of the transformer's layers on texts of these lengths."""
    transformer = model[0].model
    linear = sum(
        module.weight.numel()
        for name, module in transformer.named_modules()
        if isinstance(module, torch.nn.Linear) and "pooler" not in name
    )
    config = transformer.config
    attention = 4 * config.num_hidden_layers * config.hidden_size * sum(length**2 for length in lengths)
    return 2.0 * linear * sum(lengths) + attention


def product_rates(shape: tuple[int, int, int], repeats: int = 10) -> Cost:
    """Return the best GFLOP/s of torch's float32 product: on all threads by the clock, and of one per CPU second."""
    rows, inner, columns = shape
    left, right = torch.randn(rows, inner), torch.randn(inner, columns)
    each = 2 * rows * inner * columns / 1e9
    often = max(1, int(20 / each))

    def products() -> None:
        for _ in range(often):
            torch.mm(left, right)

    threads = torch.get_num_threads()
    wall = min(cost(products).wall for _ in range(repeats))
    torch.set_num_threads(1)
    cpu = min(cost(products).cpu for _ in range(repeats))
    torch.set_num_threads(threads)
    return Cost(often * each / wall, often * each / cpu)


if __name__ == "__main__":
    main()

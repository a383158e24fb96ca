"""What an index run does beside the model: file to committed with an encoder that takes no time.

    python benchmarks/index_without_model.py [--passages 50000] [--profile]

The encoder tokenises as the default model does and returns vectors of a fixed table, so that what is left is reading,
chunking, digests, the catalog, the words and the FAISS index. Prints passages a second until all is committed and until
all is searchable, the CPU time of a passage by thread, and the tokenizer's rate on one core.
"""

import argparse
import cProfile
import json
import os
import pstats
import random
import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time, thread_time

import numpy as np
from _side_by_side import machine

import sonde
from sonde.indexer.ann import AnnSettings
from sonde.indexer.encoder import Encoder
from sonde.indexer.ingest import index as ingest

TOKENS = 128


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--index", default="auto", help="kind of FAISS index; 'exact' builds no graph")
    parser.add_argument("--profile", action="store_true", help="print where the main thread's time goes")
    arguments = parser.parse_args()
    encoder = instant(sonde.load_encoder(device="cpu"))
    print(machine("sonde", "tokenizers", "tantivy"), flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source = Path(folder) / "passages.jsonl"
        texts = write(source, arguments.passages)
        print(f"tokenizer: {tokens_per_second(encoder, texts):,.0f} tokens a second of one core", flush=True)
        profiler = cProfile.Profile()
        if arguments.profile:
            profiler.enable()
        run(encoder, source, Path(folder), arguments.passages, arguments.index)
        profiler.disable()
        if arguments.profile:
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)


def write(path: Path, count: int) -> list[str]:
    """Write passages of about 128 tokens, no two equal; return some of them."""
    draw = random.Random(7)
    words = [word for word in vocabulary() if word.isalpha() and len(word) > 2]
    texts = []
    with path.open("w", encoding="utf-8") as lines:
        for number in range(count):
            text = " ".join(draw.choices(words, k=TOKENS - 8)) + f" {number}."
            lines.write(json.dumps({"id": str(number), "text": text}) + "\n")
            if number < 2_000:
                texts.append(text)
    return texts


def vocabulary() -> list[str]:
    """Return the whole words that the default model's tokenizer knows."""
    from sonde.indexer.encoder.models import locate

    content = json.loads((locate("all-MiniLM-L6-v2", print).folder / "tokenizer.json").read_text("utf-8"))
    return sorted(content["model"]["vocab"])


def instant(encoder: Encoder) -> Encoder:
    """Return the encoder with a forward pass that only looks vectors up; a batch has fewer than the table."""
    table = np.random.default_rng(7).standard_normal((50_000, encoder.spec.dimension)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    encoder._encode = lambda tokens, on_batch: table[: len(tokens)]  # type: ignore[method-assign]
    return encoder


def tokens_per_second(encoder: Encoder, texts: list[str]) -> float:
    """Return how many tokens the tokenizer gives for a CPU second."""
    began = process_time()
    return sum(len(text.ids) for text in encoder.tokenize(texts)) / (process_time() - began)


def run(encoder: Encoder, source: Path, folder: Path, count: int, kind: str) -> None:
    """Index the file and print the rates."""
    committed: list[float] = []
    after = ingest.update_derived

    def marked(*given: object, **named: object) -> None:
        committed.append(perf_counter())
        after(*given, **named)  # type: ignore[arg-type]

    ingest.update_derived = marked
    began, cpu, thread = perf_counter(), process_time(), thread_time()
    report = sonde.index(source, folder / "run.sonde", encoder=encoder, ann=AnnSettings(kind=kind)).report  # type: ignore[arg-type]
    wall, own, main_thread = perf_counter() - began, process_time() - cpu, thread_time() - thread
    ingest.update_derived = after
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = committed[0] - began
    assert report
    print(f"{report.added:,} passages, load {os.getloadavg()[0]:.1f}")
    print(f"committed after {first:.1f} s: {count / first:,.0f} a second; searchable after {wall:.1f} s")
    reader = child.ru_utime + child.ru_stime
    parts = (("committing", main_thread), ("planning and tokenising", own - main_thread), ("reading", reader))
    print("CPU microseconds a passage: " + ", ".join(f"{part} {1e6 * cost / count:.0f}" for part, cost in parts))


if __name__ == "__main__":
    main()

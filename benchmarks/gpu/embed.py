"""Embedding 128 tokens a passage: Sonde in half precision beside sentence-transformers' float16 at its best batch."""

from time import perf_counter

import numpy as np
import torch
from _stage import TOKENS, Stage, passages, seconds

import sonde
from sonde.indexer.encoder import Encoder, Tokens

BUDGETS = (4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
BATCHES = (32, 128, 512, 1_024)


def main() -> None:
    """Measure both."""
    stage = Stage.of("embed")
    texts = passages(8 if stage.tiny else 40_000)
    dtype = "float32" if stage.device == "cpu" else "float16"
    encoder = sonde.load_encoder(device=stage.device, dtype=dtype, engine="packed", notify=print)
    stage.row("tokenising alone", tokenising(encoder, texts))
    forward = best_budget(stage, encoder, texts)
    whole = len(texts) / seconds(lambda: encoder.encode_texts(texts))
    peer, batch = best_batch(stage, encoder, texts, dtype)
    beside = f"sentence-transformers {peer:,.0f} at its best batch of {batch}"
    stage.row(
        "embed, tokenising included", f"{whole:,.0f} passages/s", beside=beside, faster=whole / peer, goal="40,000; 3 ×"
    )
    tokens = encoder.tokenize(texts)
    stage.row("operations of the forward pass", f"{forward * operations(encoder) / 1e12:,.2f} TFLOP/s")
    if stage.device == "cuda":
        stage.row("card busy in the forward pass", f"{busy(encoder, tokens):.0%}", goal="90 %")
    exact = sonde.load_encoder(device="cpu", dtype="float32")
    some = texts[:512]
    lowest = (encoder.encode_texts(some) * exact.encode_texts(some)).sum(axis=1).min()
    stage.row("lowest cosine to float32", f"{lowest:.6f}", goal="0.9995")


def tokenising(encoder: Encoder, texts: list[str]) -> str:
    """Return the tokens a second on all cores."""
    took = seconds(lambda: encoder.tokenize(texts))
    return f"{len(texts) / took:,.0f} passages/s, {TOKENS * len(texts) / took / 1e6:,.2f} M tokens/s"


def best_budget(stage: Stage, encoder: Encoder, texts: list[str]) -> float:
    """Set the encoder to the batch size that is fastest, and return its passages a second."""
    tokens = encoder.tokenize(texts)
    rates = {}
    for budget in BUDGETS[:1] if stage.tiny else BUDGETS:
        encoder.batch_tokens = budget
        encoder.encode(tokens)  # each size is captured at its second batch
        rates[budget] = len(texts) / seconds(lambda: encoder.encode(tokens))
        stage.row(f"forward pass, {budget:,} tokens a batch", f"{rates[budget]:,.0f} passages/s")
    best = max(rates, key=lambda budget: rates[budget])
    encoder.batch_tokens = best
    return rates[best]


def best_batch(stage: Stage, encoder: Encoder, texts: list[str], dtype: str) -> tuple[float, int]:
    """Return the peer's passages a second at its best batch size, and the size."""
    peer = encoder.library()
    assert str(peer[0].model.dtype) == f"torch.{dtype}"
    some = texts[:10_000]

    def rate(batch: int) -> float:
        return len(some) / seconds(lambda: peer.encode(some, batch_size=batch, normalize_embeddings=True), 2)

    rates = {batch: rate(batch) for batch in (BATCHES[:1] if stage.tiny else BATCHES)}
    best = max(rates, key=lambda batch: rates[batch])
    return rates[best], best


def operations(encoder: Encoder) -> float:
    """Return the operations of one passage's matrix products."""
    config = encoder.library()[0].model.config
    hidden, wide = config.hidden_size, config.intermediate_size
    each = 2 * TOKENS * (4 * hidden**2 + 2 * hidden * wide) + 4 * TOKENS**2 * hidden
    return float(config.num_hidden_layers * each)


def busy(encoder: Encoder, tokens: list[Tokens]) -> float:
    """Return the share of the time in which the card computes or copies."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        began = perf_counter()
        encoder.encode(tokens)
        torch.cuda.synchronize()
        wall = perf_counter() - began
    found = [event.time_range for event in profiler.events() or [] if event.device_type.name == "CUDA"]
    return union(np.array([(each.start, each.end) for each in found])) / 1e6 / wall


def union(spans: np.ndarray) -> float:
    """Return the total length of spans of time [n, 2], where they overlap only once."""
    spans = spans[np.argsort(spans[:, 0])]
    ends = np.maximum.accumulate(spans[:, 1])
    begins = np.maximum(spans[1:, 0], ends[:-1])
    return float(spans[0, 1] - spans[0, 0] + np.clip(spans[1:, 1] - begins, 0, None).sum())


if __name__ == "__main__":
    main()

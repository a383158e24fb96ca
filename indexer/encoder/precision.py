"""bfloat16 on a CPU whose processor multiplies in it: taken where it is faster and as good on the user's texts."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from ..progress import NOTE
from .encoder import Encoder
from .settings import has_torch

FLAGS = {"amx_bf16", "avx512_bf16", "bf16"}
"""What Linux calls the instructions: Intel's and AMD's, and ARM's."""
LEAST_GAIN = 1.2
LEAST_COSINE = 0.9995
ROUNDS = 3
TOKENS = 4_096
"""Tokens of a round: some batches for each core."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two precisions on the same texts.

    Attributes:
        gain: Seconds in float32 over seconds in the other one, the median of the rounds; above 1 it is faster.
        cosine: The lowest cosine between the two vectors of a text.
        seconds: What the comparison took.
    """

    gain: float
    cosine: float
    seconds: float

    @property
    def pays(self) -> bool:
        """Whether the other precision is worth taking."""
        return self.gain >= LEAST_GAIN and self.cosine >= LEAST_COSINE


def multiplies_in_bfloat16() -> bool:
    """Whether this processor has instructions for it, as far as can be told on Linux, and torch, which uses them."""
    if sys.platform != "linux" or not has_torch():
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))), "")
    return not FLAGS.isdisjoint(flags.split())


def faster_precision(
    encoder: Encoder, texts: Sequence[str], load: Callable[[], Encoder], notify: Callable[[str], object]
) -> Encoder:
    """Return an encoder in bfloat16 where that pays, else the one that is given.

    Args:
        encoder: In float32 on the CPU.
        texts: Some of those to embed.
        load: Loads the same model in bfloat16.
        notify: Receives what was found.
    """
    if not (multiplies_in_bfloat16() and encoder.devices == ["cpu"] and encoder.spec.kind == "transformer"):
        return encoder
    if encoder.spec.dtype != "float32" or not texts:
        return encoder
    began = time.monotonic()
    other = load()
    found = compare(encoder, other, texts, began)
    figures = f"{found.gain:.1f} times as fast as float32 here, lowest cosine {found.cosine:.4f}"
    if not found.pays:
        notify(f"dtype: float32; bfloat16 is {figures} (tested for {found.seconds:.0f} s)")
        return encoder
    notify(f"{NOTE}dtype: bfloat16 is {figures} (tested for {found.seconds:.0f} s; dtype float32 keeps full precision)")
    return other


def compare(encoder: Encoder, other: Encoder, texts: Sequence[str], began: float) -> Comparison:
    """Let both embed the same texts in turn, after one round that does not count."""
    ours = encoder.tokenize(texts)
    ours = ours[: 1 + int(np.searchsorted(np.cumsum([len(text.ids) for text in ours]), TOKENS))]
    theirs = other.tokenize(texts[: len(ours)])
    exact, near = encoder.encode(ours), other.encode(theirs)
    lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(near, axis=1)
    cosine = float(((exact * near).sum(axis=1) / np.maximum(lengths, 1e-12)).min())
    gains = [_seconds(lambda: encoder.encode(ours)) / _seconds(lambda: other.encode(theirs)) for _ in range(ROUNDS)]
    return Comparison(median(gains), cosine, time.monotonic() - began)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began

"""How models are trained: settings of cross-encoders and of bi-encoders."""

from dataclasses import dataclass

from ...indexer.errors import UsageError


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Settings of one training run; with the same ones and the same data it makes the same weights on one machine.

    Attributes:
        epochs: Passes over the data.
        rate: The highest learning rate, reached after the warm-up; it then falls to 0 along a cosine.
        batch_tokens: Tokens of a batch, padding included.
        max_tokens: A longer pair is cut, its premise first.
        warmup: Share of the steps over which the rate rises.
        decay: Weight decay of AdamW, on matrices only.
        compare: Weight of the comparison between the hypotheses of one premise, beside the loss of each pair.
        clip: Longest gradient.
        seed: Decides the order of the data and the new weights.
        dtype: "float32", "bfloat16" (weights are kept in float32 beside), or "auto": bfloat16 where the hardware
            multiplies it fast.
        save_every: Seconds between checkpoints.
    """

    epochs: float = 1.0
    rate: float = 1e-4
    batch_tokens: int = 2048
    max_tokens: int = 160
    warmup: float = 0.06
    decay: float = 0.01
    compare: float = 0.5
    clip: float = 1.0
    seed: int = 7
    dtype: str = "auto"
    save_every: float = 60.0

    def check(self) -> None:
        """Refuse what cannot be trained with.

        Raises:
            UsageError: A setting is out of its range; the message names it.
        """
        _check_epochs(self.epochs)
        _check_rate(self.rate, "0.0001")
        if self.max_tokens < 16 or self.batch_tokens < self.max_tokens:
            raise UsageError(
                f"a pair needs at least 16 tokens and a batch at least one pair: {self.max_tokens} and "
                f"{self.batch_tokens} were given",
                code="out-of-range", field="max_tokens", value=self.max_tokens,
            )  # fmt: skip
        _check_dtype(self.dtype)


@dataclass(frozen=True, slots=True)
class BiencoderSettings:
    """Settings of one run; with the same ones and the same data it makes the same weights on one machine.

    Attributes:
        epochs: Passes over the data.
        rate: The highest learning rate, reached after the warm-up; it then falls in a line to 0. None takes 5e-5 for
            all weights and 1e-3 for LoRA.
        batch: Examples of a batch; the other passages of a batch are wrong ones for each of its queries.
        max_tokens: Longer texts are cut while training; the model keeps its own window.
        negatives: Mined wrong passages of each pair, 0 to 10.
        lora: Rank of a low-rank change in place of a change of all weights; 0 for all.
        warmup: Share of the steps over which the rate rises.
        decay: Weight decay of AdamW, on matrices only.
        scale: What cosines are multiplied by in the loss.
        cached: Cut batches into parts of this many for memory (GradCache); 0 for whole ones.
        seed: Decides the order of the data and what is held out.
        dtype: "float32", "bfloat16" (weights are kept in float32 beside), or "auto": bfloat16 where the hardware
            multiplies it fast.
        save_every: Seconds between checkpoints.
    """

    epochs: float = 1.0
    rate: float | None = None
    batch: int = 64
    max_tokens: int = 128
    negatives: int = 1
    lora: int = 0
    warmup: float = 0.1
    decay: float = 0.01
    scale: float = 20.0
    cached: int = 0
    seed: int = 7
    dtype: str = "auto"
    save_every: float = 60.0

    @property
    def highest_rate(self) -> float:
        """The rate given, or what suits the kind of training."""
        return self.rate if self.rate is not None else 1e-3 if self.lora else 5e-5

    def check(self) -> None:
        """Refuse what cannot be trained with.

        Raises:
            UsageError: A setting is out of its range; the message names it.
        """
        _check_epochs(self.epochs)
        _check_rate(self.highest_rate, "5e-5")
        if self.batch < 4 or self.batch % 2:
            said = f"a batch needs an even number of examples, 4 or more, not {self.batch}"
            raise UsageError(said, code="out-of-range", field="batch", value=self.batch)
        if self.max_tokens < 8:
            said = f"texts need at least 8 tokens, not {self.max_tokens}"
            raise UsageError(said, code="out-of-range", field="max_tokens", value=self.max_tokens)
        if not 0 <= self.negatives <= 10:
            said = f"between 0 and 10 wrong passages of each pair can be mined, not {self.negatives}"
            raise UsageError(said, code="out-of-range", field="negatives", value=self.negatives)
        if not 0 <= self.lora <= 256:
            said = f"the rank of LoRA is 1 to 256, or 0 to train all weights, not {self.lora}"
            raise UsageError(said, code="out-of-range", field="lora", value=self.lora)
        if self.cached < 0:
            said = f"a part of a batch holds 1 example or more, or 0 for whole batches, not {self.cached}"
            raise UsageError(said, code="out-of-range", field="cached", value=self.cached)
        _check_dtype(self.dtype)


def check_share(share: float) -> None:
    """Check how much of the data is held out to measure on.

    Raises:
        UsageError: It is 0 or less, or more than a half.
    """
    if not 0 < share <= 0.5:
        said = f"the share held out must be above 0 and at most 0.5, not {share:g}"
        raise UsageError(said, code="out-of-range", field="share", value=share)


def _check_epochs(epochs: float) -> None:
    if not 0 < epochs <= 1000:
        said = f"epochs must be above 0 and at most 1000, not {epochs:g}"
        raise UsageError(said, code="out-of-range", field="epochs", value=epochs)


def _check_rate(rate: float, usual: str) -> None:
    if not 0 < rate <= 1:
        said = f"the learning rate must be above 0 and at most 1, not {rate:g}: {usual} is usual"
        raise UsageError(said, code="out-of-range", field="rate", value=rate)


def _check_dtype(dtype: str) -> None:
    if dtype not in ("auto", "float32", "bfloat16"):
        said = f"training knows auto, float32 and bfloat16, not {dtype!r}"
        raise UsageError(said, code="unknown-option", field="dtype", value=dtype)

"""How a model is trained."""

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
        if not 0 < self.epochs <= 1000:
            raise UsageError(f"epochs must be above 0 and at most 1000, not {self.epochs:g}")
        if not 0 < self.rate <= 1:
            raise UsageError(f"the learning rate must be above 0 and at most 1, not {self.rate:g}: 0.0001 is usual")
        if self.max_tokens < 16 or self.batch_tokens < self.max_tokens:
            raise UsageError(
                f"a pair needs at least 16 tokens and a batch at least one pair: {self.max_tokens} and "
                f"{self.batch_tokens} were given"
            )
        if self.dtype not in ("auto", "float32", "bfloat16"):
            raise UsageError(f"training knows auto, float32 and bfloat16, not {self.dtype!r}")

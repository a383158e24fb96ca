"""The training loop: settings, batches of similar length, learning rate schedule, checkpoints."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...indexer.errors import UsageError
from .folder import Checkpoint, load_checkpoint, save_checkpoint
from .precision import MasterWeights, training_dtype

if TYPE_CHECKING:
    import torch


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
            said = f"epochs must be above 0 and at most 1000, not {self.epochs:g}"
            raise UsageError(said, code="out-of-range", field="epochs", value=self.epochs)
        if not 0 < self.rate <= 1:
            said = f"the learning rate must be above 0 and at most 1, not {self.rate:g}: 0.0001 is usual"
            raise UsageError(said, code="out-of-range", field="rate", value=self.rate)
        if self.max_tokens < 16 or self.batch_tokens < self.max_tokens:
            raise UsageError(
                f"a pair needs at least 16 tokens and a batch at least one pair: {self.max_tokens} and "
                f"{self.batch_tokens} were given",
                code="out-of-range", field="max_tokens", value=self.max_tokens,
            )  # fmt: skip
        if self.dtype not in ("auto", "float32", "bfloat16"):
            said = f"training knows auto, float32 and bfloat16, not {self.dtype!r}"
            raise UsageError(said, code="unknown-option", field="dtype", value=self.dtype)


WINDOW = 64  # batches' worth of shuffled groups that are sorted by length together


def plan_epoch(lengths: Sequence[np.ndarray], budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return the batches of one epoch; the same arguments give the same ones.

    Args:
        lengths: The tokens of the pairs of each group; a group is never torn apart.
        budget: Tokens of a batch, padding included. A group that alone exceeds it is a batch of its own.
        seed: Of the run.
        epoch: Counted from 0.

    Returns:
        Group numbers of each batch; each group is in exactly one.
    """
    chance = np.random.default_rng((seed, epoch))
    longest = np.array([int(group.max()) for group in lengths])
    sizes = np.array([len(group) for group in lengths])
    order = chance.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for window in _windows(order, longest * sizes, budget * WINDOW):
        window = window[np.argsort(longest[window], kind="stable")]
        found = list(_cut(window, longest, sizes, budget))
        batches += [found[place] for place in chance.permutation(len(found))]
    return batches


def _windows(order: np.ndarray, tokens: np.ndarray, budget: int) -> list[np.ndarray]:
    edges = np.cumsum(tokens[order]) // budget
    return np.split(order, np.flatnonzero(np.diff(edges)) + 1)


def _cut(window: np.ndarray, longest: np.ndarray, sizes: np.ndarray, budget: int) -> list[np.ndarray]:
    batches, start, pairs = [], 0, 0
    for place, group in enumerate(window):  # sorted, so the current group is the longest yet
        if place > start and (pairs + sizes[group]) * longest[group] > budget:
            batches.append(window[start:place])
            start, pairs = place, 0
        pairs += sizes[group]
    return [*batches, window[start:]]


class Learner(Protocol):
    """A model with the examples that it learns from."""

    model: Any
    """A torch module; what wants a gradient is trained."""

    @property
    def lengths(self) -> Sequence[np.ndarray]:
        """Tokens of the pairs of each group of examples."""
        ...

    def loss(self, groups: np.ndarray) -> "torch.Tensor":
        """Return the loss of some groups, a scalar with a gradient."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """How a run went.

    Attributes:
        steps: Steps of the whole run, those before a resumption among them.
        resumed: The step that it went on from; 0 for a fresh one.
        losses: (step, mean loss since the last report) of this process.
        seconds: Of this process.
    """

    steps: int
    resumed: int
    losses: tuple[tuple[int, float], ...]
    seconds: float


def rate_at(step: int, steps: int, settings: TrainSettings) -> float:
    """Return the learning rate of a step: it rises in a line, then falls to 0 along a cosine."""
    rise = max(1, round(steps * settings.warmup))
    if step < rise:
        return settings.rate * (step + 1) / rise
    return settings.rate * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def train(
    learner: Learner, settings: TrainSettings, folder: Path | None = None, run: str = "",
    on_step: Callable[[int, int, float], object] = lambda *_: None,
) -> Report:  # fmt: skip
    """Train until the last step, from the folder's checkpoint if it has one of this run.

    Args:
        learner: Model and data; its model ends with the trained weights.
        settings: How.
        folder: Where checkpoints go; None for none.
        run: Digest of data and settings, see `save_checkpoint`.
        on_step: Called with the steps done, all steps and the step's loss.

    Raises:
        SondeError: The checkpoint is damaged or of another run.
    """
    import torch

    whole = math.ceil(settings.epochs)
    epochs = [plan_epoch(learner.lengths, settings.batch_tokens, settings.seed, epoch) for epoch in range(whole)]
    plan = [batch for epoch in epochs for batch in epoch]
    plan = plan[: max(1, round(len(plan) * settings.epochs / whole))]
    dtype = training_dtype(settings.dtype, str(learner.model.device))
    masters = MasterWeights(learner.model, dtype, settings.decay)
    done = load_checkpoint(folder, run) if folder else None
    if done:
        masters.restore(done.state)
    start, saved, recent, losses = time.monotonic(), time.monotonic(), [], []
    learner.model.train()
    for step in range(done.step if done else 0, len(plan)):
        torch.manual_seed(settings.seed + step)  # dropout, where a model has it, is the same after a resumption
        loss = learner.loss(plan[step])
        loss.backward()
        masters.step(rate_at(step, len(plan), settings), settings.clip)
        recent.append(loss.item())
        on_step(step + 1, len(plan), recent[-1])
        if folder and time.monotonic() - saved > settings.save_every:
            saved = time.monotonic()
            save_checkpoint(folder, Checkpoint(step + 1, recent[-1], masters.state()), run)
        if len(recent) == 100 or step + 1 == len(plan):
            losses.append((step + 1, sum(recent) / len(recent)))
            recent = []
    masters.finish()
    learner.model.eval()
    return Report(len(plan), done.step if done else 0, tuple(losses), time.monotonic() - start)

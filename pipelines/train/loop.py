"""The training loop: batches, rising and falling rate, checkpoints; the same for every kind of model."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .batches import plan_epoch
from .checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from .precision import MasterWeights, training_dtype
from .settings import TrainSettings

if TYPE_CHECKING:
    import torch


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

"""The training loop: batches of similar length, learning rate schedule, checkpoints, the finished model's folder."""

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...indexer.errors import SondeError, UsageError
from ...indexer.files import sync_folder
from .precision import MasterWeights, training_dtype
from .settings import TrainSettings

if TYPE_CHECKING:
    import torch


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

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {"steps": self.steps, "resumed": self.resumed, "seconds": round(self.seconds, 1)}


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


def work_folder(to: Path) -> Path:
    """Return where the checkpoints of an unfinished run lie.

    Raises:
        UsageError: `to` is taken, or cannot be made.
    """
    if to.exists():
        raise UsageError(f"{to} already exists: give the folder of a new model, or remove it")
    if not to.parent.is_dir():
        raise UsageError(f"there is no folder {to.parent} to put {to.name} in")
    return to.with_name(f"{to.name}.training")


def finish(to: Path, save: Callable[[Path], object], card: dict[str, Any]) -> None:
    """Save a model under its name, whole or not at all, with how it was made, and remove the checkpoints.

    Args:
        to: The model's folder.
        save: Writes the model into the folder that it is given.
        card: Goes into training.json.
    """
    work = work_folder(to)
    made = work / "model"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    save(made)
    (made / "training.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", "utf-8")
    made.rename(to)
    sync_folder(to.parent)
    shutil.rmtree(work, ignore_errors=True)


NAME = "checkpoint.safetensors"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A point that a run can go on from.

    Attributes:
        step: Steps done.
        loss: Mean loss of the steps since the last report.
        state: Weights and the optimizer's moments.
    """

    step: int
    loss: float
    state: "dict[str, torch.Tensor]"


def save_checkpoint(folder: Path, checkpoint: Checkpoint, run: str) -> None:
    """Write a checkpoint in place of the last one; a kill leaves the old one or the new one.

    Args:
        folder: The run's folder.
        checkpoint: What to keep.
        run: A digest of settings and data: only the same run may go on from it.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{NAME}.tmp"
    tensors = {name: tensor.contiguous() for name, tensor in checkpoint.state.items()}
    about = {"run": run, "step": str(checkpoint.step), "loss": json.dumps(checkpoint.loss)}
    save_file(tensors, temporary, metadata=about)
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(folder / NAME)
    sync_folder(folder)


def load_checkpoint(folder: Path, run: str) -> Checkpoint | None:
    """Return the checkpoint of this run, or None if there is none.

    Raises:
        SondeError: It belongs to another run, or is damaged.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / NAME
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            if about.get("run") != run:
                raise SondeError(
                    f"{path} is of a run with other data or settings: give the same ones to go on, or another folder"
                )
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except (SafetensorError, OSError) as error:
        raise SondeError(f"{path} is damaged ({error}): delete it to train from the start") from error
    return Checkpoint(int(about["step"]), float(json.loads(about["loss"])), state)

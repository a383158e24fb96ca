"""Where a trained model goes: a folder that appears finished, and the checkpoints of an unfinished run."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...indexer.errors import SondeError, UsageError
from ...indexer.files import sync_folder

if TYPE_CHECKING:
    import torch


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

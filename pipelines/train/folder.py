"""Where a trained model goes: a folder that appears finished, and one beside it that an unfinished run goes on from."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...indexer.errors import UsageError
from ...indexer.files import sync_folder


def work_folder(to: Path) -> Path:
    """Return where the checkpoints of an unfinished run lie.

    Raises:
        UsageError: `to` is taken, or cannot be made.
    """
    if to.exists():
        raise UsageError(f"{to} is there already: give the folder of a new model, or remove it")
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

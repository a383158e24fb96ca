"""What makes a score of a logit, as the `CrossEncoder` that a folder came from would do it."""

import json
from pathlib import Path
from typing import Any

STORED = "config_sentence_transformers.json"


def stored_activation(folder: Path) -> str | None:
    """Return the class in torch.nn that Sentence-Transformers 5 or newer wrote beside the weights, None without one."""
    try:
        stored = json.loads((folder / STORED).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return _class(stored.get("activation_fn")) if isinstance(stored, dict) else None


def activation_of(config: Any, labels: int) -> str:
    """Return the class that a model's own configuration names, as older versions wrote it, else what is usual."""
    stored = getattr(config, "sentence_transformers", None) or {}
    path = stored.get("activation_fn") or getattr(config, "sbert_ce_default_activation_function", None)
    return _class(path) or ("Sigmoid" if labels == 1 else "Identity")


def _class(path: object) -> str | None:
    """Return the last part of a path inside torch; code from elsewhere is never run."""
    return path.rpartition(".")[2] if isinstance(path, str) and path.startswith("torch.") else None

"""How well a classifier of pairs does on pairs that it was not trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .classifier import pad, tokenize
from .pairs import LABELS, Premise

BATCH_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class PairQuality:
    """Quality on held-out pairs.

    Attributes:
        pairs: How many.
        accuracy: Share of right labels, 0 to 1.
        per_label: Share of right ones among the pairs of each label that occurs.
        majority: What always giving the most frequent label would reach.
    """

    pairs: int
    accuracy: float
    per_label: dict[str, float]
    majority: float


def pair_logits(model: Any, tokenizer: Any, premises: Sequence[Premise], max_tokens: int) -> np.ndarray:
    """Return float32 [pairs, labels], in the order of the premises and their pairs."""
    import torch

    rows = [row for group in tokenize(tokenizer, premises, max_tokens) for row in group]
    order = np.argsort([-len(ids) for ids, _ in rows], kind="stable")
    found = np.zeros((len(rows), int(model.config.num_labels)), np.float32)
    start = 0
    with torch.inference_mode():
        while start < len(order):
            part = order[start : start + max(1, BATCH_TOKENS // len(rows[order[start]][0]))]
            batch = pad([rows[place] for place in part], tokenizer.pad_token_id, model.device)
            found[part] = model(**batch).logits.float().cpu().numpy()
            start += len(part)
    return found


def evaluate_pairs(model: Any, tokenizer: Any, premises: Sequence[Premise], max_tokens: int) -> PairQuality:
    """Compare a model's most likely labels with the true ones."""
    names = {int(place): str(name).lower() for place, name in model.config.id2label.items()}
    given = pair_logits(model, tokenizer, premises, max_tokens).argmax(1)
    truth = np.array([label for premise in premises for _, label in premise.pairs])
    right = np.array([names[int(place)] for place in given]) == truth
    present = [label for label in LABELS if (truth == label).any()]
    return PairQuality(
        pairs=len(truth),
        accuracy=float(right.mean()),
        per_label={label: float(right[truth == label].mean()) for label in present},
        majority=max(float((truth == label).mean()) for label in present),
    )

"""Examples as the columns that the loss of their kind reads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .examples import Examples
from .settings import BiencoderSettings

if TYPE_CHECKING:
    import torch

PAIRS_PER_TEXT = 8
"""Pairs of the same label, and as many of different ones, that are made of each labelled text."""


def columns_of(examples: Examples, settings: BiencoderSettings) -> dict[str, list[Any]]:
    """Return the columns of the data set: texts first, in the order that the loss takes, then `label` for scores."""
    if examples.kind == "pairs":
        return _pairs(examples, settings)
    if examples.kind == "labels":
        return _labelled(examples, settings.seed)
    low, high = min(examples.scores), max(examples.scores)
    scores = [(score - low) / (high - low) for score in examples.scores]
    return {"first": list(examples.first), "second": list(examples.second), "label": scores}


def _pairs(examples: Examples, settings: BiencoderSettings) -> dict[str, list[Any]]:
    """Wrong passages fill equally many columns; a row that has too few gets passages of other groups, by chance."""
    columns: dict[str, list[Any]] = {"anchor": list(examples.first), "positive": list(examples.second)}
    most = max((len(texts) for texts in examples.wrong), default=0)
    chance = np.random.default_rng(settings.seed)
    for number in range(min(most, max(settings.negatives, 1))):
        columns[f"negative_{number + 1}"] = [
            texts[number] if number < len(texts) else _other(examples, place, chance)
            for place, texts in enumerate(examples.wrong)
        ]
    return columns


def _other(examples: Examples, place: int, chance: np.random.Generator) -> str:
    other = place
    for _ in range(100):
        if examples.groups[other] != examples.groups[place]:
            break
        other = int(chance.integers(len(examples)))
    return examples.second[other]


def _labelled(examples: Examples, seed: int) -> dict[str, list[Any]]:
    """Return pairs of texts of one label (1) and of two (0), as many of both."""
    chance = np.random.default_rng(seed)
    names = sorted(set(examples.labels))
    members = {name: np.flatnonzero(np.array(examples.labels) == name) for name in names}
    rows: list[tuple[str, str, float]] = []
    for place, label in enumerate(examples.labels):
        for _ in range(PAIRS_PER_TEXT):
            same = [other for other in members[label].tolist() if other != place]
            different = names[(names.index(label) + 1 + int(chance.integers(len(names) - 1))) % len(names)]
            if same:
                rows.append((examples.first[place], examples.first[int(chance.choice(same))], 1.0))
            rows.append((examples.first[place], examples.first[int(chance.choice(members[different]))], 0.0))
    first, second, scores = zip(*rows, strict=True)
    return {"first": list(first), "second": list(second), "label": list(scores)}


def loss_of(examples: Examples, model: Any, settings: BiencoderSettings) -> Any:
    """Return the loss of a kind of examples, on float32 cosines whatever the model computes in.

    Pairs: multiple negatives ranking (Henderson et al., "Efficient Natural Language Response Suggestion", 2017), cached
    (Gao et al., "Scaling Deep Contrastive Learning Batch Size", 2021) where the settings say so. Scores, and labels as
    pairs of the same one (1) and of two (0), as in SetFit (Tunstall et al., 2022): CoSENT (Su, 2022).
    """
    from sentence_transformers.sentence_transformer import losses

    if examples.kind != "pairs":
        return losses.CoSENTLoss(model, scale=settings.scale, similarity_fct=_pairwise)
    if settings.cached:
        return losses.CachedMultipleNegativesRankingLoss(
            model, scale=settings.scale, similarity_fct=_cosines, mini_batch_size=settings.cached
        )
    return losses.MultipleNegativesRankingLoss(model, scale=settings.scale, similarity_fct=_cosines)


def _cosines(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    from sentence_transformers.util import cos_sim

    return cos_sim(first.float(), second.float())


def _pairwise(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    from sentence_transformers.util import pairwise_cos_sim

    return pairwise_cos_sim(first.float(), second.float())


def prompts_of(columns: Sequence[str], prompts: dict[str, str]) -> dict[str, str]:
    """Return the prompt of each column: a model that marks queries and documents is trained with its marks."""
    kinds = {"anchor": "query", "positive": "document"}
    named = {
        name: kinds.get(name, "document")
        for name in columns
        if name == "anchor" or name[:8] in ("positive", "negative")
    }
    return {name: prompts[kind] for name, kind in named.items() if prompts.get(kind)}

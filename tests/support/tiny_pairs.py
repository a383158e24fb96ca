"""Tiny sequence-classification models with random weights: the kinds of tokenizer and model that read pairs."""

from pathlib import Path
from typing import Any

import torch
from tiny_families import FAMILIES
from tiny_models import spread
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerFast

NLI = {0: "CONTRADICTION", 1: "neutral", 2: "Entailment"}
KINDS = tuple(FAMILIES)
Built = tuple[PreTrainedModel, PreTrainedTokenizerFast]


def labels(names: dict[int, str]) -> dict[str, Any]:
    return {"num_labels": len(names), "id2label": names, "label2id": {name: n for n, name in names.items()}}


def build_pairs(kind: str = "bert", names: dict[int, str] | None = None) -> Built:
    """Return a tiny model and its tokenizer; the same weights every time."""
    torch.manual_seed(11)
    family = FAMILIES[kind]
    model = AutoModelForSequenceClassification.from_config(family.config(**labels(names or NLI)))
    spread(model, family.spread)
    return model.eval(), family.tokenizer()


def save_pairs(folder: Path, kind: str = "bert", names: dict[int, str] | None = None) -> Path:
    """Save a tiny model as a folder."""
    model, tokenizer = build_pairs(kind, names)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

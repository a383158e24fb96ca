"""How many tokens a pair may have."""

from typing import Any

UNSTATED = 512
"""For models whose tokenizer and configuration set no limit."""
SANE = 1_000_000
"""Tokenizers without a limit state 10^30."""


def window_of(model: Any, tokenizer: Any) -> int:
    """Return the most tokens of a pair: the tokenizer's limit, never more than the model has positions."""
    limits = [limit for limit in (_stated(tokenizer), _positions(model)) if limit]
    return min(limits) if limits else UNSTATED


def _stated(tokenizer: Any) -> int | None:
    limit = getattr(tokenizer, "model_max_length", None)
    return int(limit) if limit and limit < SANE else None


def _positions(model: Any) -> int | None:
    """Return the length of the position embeddings; RoBERTa and its kin count from after the padding index."""
    stated = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.num_embeddings) - int(module.padding_idx) - 1
    return int(stated) if isinstance(stated, int) and stated > 0 else None

"""Batches of a token budget over texts sorted by length: hardly any padding, and memory that does not jump."""

from collections.abc import Sequence

import numpy as np

from .tokens import Tokens


def plan_batches(tokens: Sequence[Tokens], budget: int) -> list[np.ndarray]:
    """Return the places of the texts of each batch, the longest texts first.

    A batch holds one role (queries or documents) and, padded to its longest text, at most `budget` tokens; a text
    longer than that is a batch of its own.
    """
    lengths = np.fromiter((len(text.ids) for text in tokens), dtype=np.int64, count=len(tokens))
    queries = np.fromiter((text.query for text in tokens), dtype=bool, count=len(tokens))
    roles = [np.flatnonzero(queries == role) for role in (False, True)]
    return [places[batch] for places in roles for batch in by_length(lengths[places], budget)]


def by_length(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Return the places of each batch of at most `budget` tokens, padded to its longest text, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        batches.append(order[start : start + size])
        start += size
    return batches

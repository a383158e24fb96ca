"""What every second stage offers: scores of passages for a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

Unit = Literal["similarity", "probability", "logit"] | str
"""What a second stage's score is: a mean maximum similarity (-1 to 1), a probability (0 to 1) or a raw logit."""


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """A word of the query and the word of a text that it matched best; offsets are those in that text."""

    query: str
    word: str
    start: int
    end: int
    similarity: float


class Reranker(Protocol):
    """Scores passages for a query; higher is better.

    Attributes:
        name: The model: "late", a hub's "org/name" or a folder.
        kind: "late interaction", "cross-encoder" or "multi-vector model".
        unit: What the score is.
        weight: Share of the score in the fusion with the first stage's, 0 to 1.
        agreement: Share of the neighbours' scores in the fused score, 0 to 1.
    """

    name: str
    kind: str
    unit: Unit
    weight: float
    agreement: float

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float [n], the score of each passage, its title in front; higher is better."""
        ...

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return which words of the query matched which of a passage, the most important first, if that is known."""
        ...

"""The reranker without weights of its own: labels against texts by late interaction of the bi-encoder's tokens."""

from collections.abc import Callable, Sequence

import numpy as np

from ...indexer.encoder import Encoder
from ..rerank.maxsim import BACKWARD, maxsim
from ..rerank.rarity import Rarity
from .labels import Label

LATE = "late"
TEMPERATURE = 0.05
"""Scores are divided by it before the softmax."""
YES = 0.25
"""Score from which a text is rather about a label than not, for several labels per text."""


class LateJudge:
    """Reads each text once, whatever the number of labels, by the token vectors that also rerank searches."""

    name = "reranker"

    def __init__(self, encoder: Encoder, rarity: Rarity) -> None:
        """Take the bi-encoder and how rare its tokens are among the texts."""
        self.encoder = encoder
        self.rarity = rarity

    @property
    def model(self) -> str:
        """What it is: late interaction, and over which model's token vectors."""
        return f"{LATE}, {self.encoder.spec.name}"

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return float32 [texts, labels] of scaled scores; higher is likelier, not calibrated.

        A text is read as far as the model's window goes.
        """
        read = self.encoder.token_vectors(self.encoder.tokenize(list(texts)))
        asked = self.encoder.token_vectors(self.encoder.tokenize([label.wording for label in labels], query=True))
        vectors, weights = [each.vectors for each in read], [self.rarity(each.ids) for each in read]
        found = np.stack(
            [maxsim(each.vectors, vectors, self.rarity(each.ids), weights, BACKWARD) for each in asked], axis=1
        )
        if on_batch:
            on_batch(found.size)
        margins = (found - YES if multi_label else found) / TEMPERATURE
        return (margins if chosen is None else np.where(chosen, margins, np.nan)).astype(np.float32)

"""Cross-encoders: query and passage are read together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...indexer.errors import SondeError
from ..pairs import PairModel
from .reranker import Match, Unit

WEIGHT = 0.7
"""Share in the fusion. Not measured: no cross-encoder's weights were at hand when this was written."""

UNITS: dict[str, Unit] = {"Sigmoid": "probability", "Identity": "logit"}


class CrossEncoderReranker:
    """Any sequence-classification model of one label, in length-sorted batches of a token budget."""

    kind = "cross-encoder"
    weight = WEIGHT
    agreement = 0.0

    def __init__(self, model: PairModel, name: str) -> None:
        """Take the model.

        Raises:
            SondeError: It has more labels than one, or its activation is none of torch's.
        """
        if model.num_labels != 1:
            raise SondeError(
                f"{name} has {model.num_labels} labels, a reranker has one: give --rerank-model a model for ranking"
            )
        self.model = model
        self.name = name
        self.activation = _activation(model.activation, name)
        self.unit = UNITS.get(model.activation, model.activation.lower())

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n]; of a pair too long for the model's window the longer text is cut."""
        import torch

        logits = self.model.logits([(query, passage) for passage in passages], cut="longest")[:, 0]
        return self.activation(torch.from_numpy(logits)).numpy()

    def matches(self, query: str, passage: str) -> list[Match]:
        """Return nothing: a cross-encoder does not say which words matched."""
        return []


class OwnCrossEncoder:
    """A `CrossEncoder` that is no plain sequence classifier, through its own `predict`."""

    kind = "cross-encoder"
    weight = WEIGHT
    agreement = 0.0

    def __init__(self, model: Any, name: str) -> None:
        """Take a loaded `CrossEncoder`."""
        self.model = model
        self.name = name
        kind = type(model.activation_fn).__name__
        self.unit = UNITS.get(kind, kind.lower())

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n]."""
        found = self.model.predict([(query, passage) for passage in passages], show_progress_bar=False)
        scores = np.asarray(found, np.float32).reshape(len(passages), -1)
        if scores.shape[1] != 1:
            raise SondeError(f"{self.name} has {scores.shape[1]} labels, a reranker has one")
        return scores[:, 0]

    def matches(self, query: str, passage: str) -> list[Match]:
        """Return nothing: a cross-encoder does not say which words matched."""
        return []


def _activation(kind: str, name: str) -> Any:
    import torch

    found = getattr(torch.nn, kind, None)
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise SondeError(f"{name} names the activation {kind!r}, which torch.nn does not have")
    return found()

"""Rerankers with weights of their own: cross-encoders, and models of many vectors (ColBERT and its kin)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....indexer.encoder.loading import quiet
from ....indexer.encoder.weights import weight_files
from ....indexer.errors import SondeError, arg
from ...pairs import PairModel
from .late import maxsim
from .reranker import TokenMatch, Unit

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
                f"{name} has {model.num_labels} labels, a reranker has one: "
                f"give {arg('rerank_model')} a model for ranking"
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

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
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

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return nothing: a cross-encoder does not say which words matched."""
        return []


def _activation(kind: str, name: str) -> Any:
    import torch

    found = getattr(torch.nn, kind, None)
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise SondeError(f"{name} names the activation {kind!r}, which torch.nn does not have")
    return found()


MULTIVECTOR_WEIGHT = 0.4
"""Share in the fusion, as for late interaction: no such model's weights were at hand to measure another."""


class MultiVectorReranker:
    """Any Sentence-Transformers `MultiVectorEncoder`; the score is the mean over the query's vectors."""

    kind = "multi-vector model"
    unit: Unit = "similarity"
    weight = MULTIVECTOR_WEIGHT
    agreement = 0.4

    def __init__(self, model: Any, name: str) -> None:
        """Take a loaded `MultiVectorEncoder`."""
        self.model = model
        self.name = name

    @classmethod
    def load(cls, folder: Path, name: str, device: str) -> "MultiVectorReranker":
        """Load one from a local folder.

        Raises:
            SondeError: It is damaged, or has only pickled weights.
        """
        from sentence_transformers import MultiVectorEncoder

        weight_files(folder)
        try:
            with quiet():
                model = MultiVectorEncoder(
                    str(folder), device=device, local_files_only=True, model_kwargs={"use_safetensors": True}
                )
        except Exception as error:  # a damaged folder fails in as many ways as there are files in it
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise SondeError(f"{name} cannot be loaded as a multi-vector model: {reason}") from error
        return cls(model, name)

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n]; texts are cut to the model's own lengths."""
        options: dict[str, Any] = {"convert_to_numpy": True, "show_progress_bar": False}
        [asked] = self.model.encode_query([query], **options)
        return maxsim(asked, self.model.encode_document(list(passages), **options))

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return nothing: such a model's vectors need not belong to words."""
        return []

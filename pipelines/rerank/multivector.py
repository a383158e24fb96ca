"""Models of many vectors for a text (ColBERT and its kin), in place of the bi-encoder's own token vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.encoder.loading import quiet
from ...indexer.encoder.weights import weight_files
from ...indexer.errors import SondeError
from .maxsim import maxsim
from .reranker import Match, Unit

WEIGHT = 0.4
"""Share in the fusion, as for late interaction: no such model's weights were at hand to measure another."""


class MultiVectorReranker:
    """Any Sentence-Transformers `MultiVectorEncoder`; the score is the mean over the query's vectors."""

    kind = "multi-vector model"
    unit: Unit = "similarity"
    weight = WEIGHT
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

    def matches(self, query: str, passage: str) -> list[Match]:
        """Return nothing: such a model's vectors need not belong to words."""
        return []

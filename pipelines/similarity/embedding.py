"""Embed texts that belong to no collection, and compare them by cosine and by angle."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder, load_encoder
from ...indexer.progress import Notify, Progress, silent


def embed_texts(encoder: Encoder, texts: Sequence[str], notify: Notify = silent, query: bool = False) -> np.ndarray:
    """Return float32 [n, d], the vectors of texts in their order.

    Args:
        encoder: The bi-encoder.
        texts: The texts.
        notify: Receives progress, from whichever thread did the work.
        query: Whether they are queries, not documents.
    """
    done, lock = 0, Lock()

    def count(batch: int) -> None:
        nonlocal done
        with lock:
            done += batch
            notify(Progress("embedding", done, len(texts), "texts"))

    return encoder.encode(encoder.tokenize(texts, query=query), on_batch=count)


def load_symmetric(name: str, prompt: str | None = None, *, notify: Notify = silent, **options: Any) -> Encoder:
    """Load a model for texts of equal role: without prompts of queries and documents, with its default one if any.

    Raises:
        UsageError: The name or an option is not valid.
        SondeError: The model is not available.
    """
    encoder = load_encoder(name, query_prompt=prompt or "", document_prompt=prompt or "", notify=notify, **options)
    if prompt is not None:
        return encoder
    model: Any = encoder.replicas[0].model
    usual = model.prompts.get(model.default_prompt_name or "") or ""
    return load_symmetric(name, usual, notify=notify, **options) if usual else encoder


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return float64 [n], the cosine of each pair of rows, -1 to 1; that of equal rows is exactly 1."""
    return np.cos(_angles(first, second))


def angular_similarities(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return float64 [n], 1 - angle / pi of each pair of rows: 1 for equal directions, 0 for opposite ones.

    Cer et al., "Universal Sentence Encoder", arXiv:1803.11175.
    """
    return 1 - _angles(first, second) / np.pi


def _angles(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the angle of each pair of rows, 0 to pi.

    By Kahan's formula: arccos loses half of the digits of small angles, and two equal texts would not be at 0.
    """
    one, two = (_unit(vectors.astype(np.float64)) for vectors in (first, second))
    return 2 * np.arctan2(np.linalg.norm(one - two, axis=1), np.linalg.norm(one + two, axis=1))


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)

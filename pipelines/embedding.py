"""Embedding texts that belong to no collection, with progress."""

from collections.abc import Sequence
from threading import Lock

import numpy as np

from ..indexer.encoder import Encoder
from ..indexer.progress import Notify, Progress, silent


def embed(encoder: Encoder, texts: Sequence[str], notify: Notify = silent, query: bool = False) -> np.ndarray:
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

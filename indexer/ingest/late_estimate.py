"""Estimate of the time and disk space that a late index takes, reported before a long run."""

import time
from collections.abc import Sequence

import numpy as np

from ..encoder import Encoder, Tokens
from ..late import one_thread_each, token_rows
from ..progress import Notify
from ..store.catalog import Catalog
from ..store.passages import passage_texts
from ..wording import counted, size
from .chunker import passage_text
from .report import GLANCE_DOCUMENTS, LONG_RUN_SECONDS, PROBE_DOCUMENTS, duration

PROBED_OF = 20
"""A probe is made only if there are at least this many times as many passages to embed."""
BYTES_PER_ROW, BYTES_PER_PASSAGE = 49, 32
"""Of the index: a pooled token's code and weight, and what is stored of each passage besides."""


def report_estimate(catalog: Catalog, rows: np.ndarray, count: int, encoder: Encoder, notify: Notify) -> None:
    """Report the time and disk space that embedding the tokens of passages will take, if it takes long.

    Args:
        catalog: Of the passages.
        rows: int64 [n], passages of which some are embedded to see how long that takes.
        count: How many passages will be embedded.
        encoder: The bi-encoder.
        notify: Receives the sentence.
    """
    for most in (GLANCE_DOCUMENTS, PROBE_DOCUMENTS):
        if count < most * PROBED_OF:
            return
        some = rows[:: max(1, len(rows) // most)][:most]
        tokens = encoder.tokenize([passage_text(*each) for each in passage_texts(catalog, some.tolist())])
        times = count / len(some)
        seconds = min(_seconds(encoder, tokens) for _ in range(2)) * times
        if seconds < LONG_RUN_SECONDS / 2:
            return
        if most == PROBE_DOCUMENTS and seconds > LONG_RUN_SECONDS:
            stored = sum(BYTES_PER_PASSAGE + BYTES_PER_ROW * token_rows(len(each.ids)) for each in tokens)
            disk = size(round(stored * times))
            notify(f"estimate: {counted(count, 'passage')}: {duration(seconds)}, {disk} of disk")


def _seconds(encoder: Encoder, tokens: Sequence[Tokens]) -> float:
    began = time.perf_counter()
    with one_thread_each():
        encoder.encode_with_tokens(tokens, lambda *_: None)
    return time.perf_counter() - began

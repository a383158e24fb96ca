"""A run without a fixed batch that is killed: run by tests/indexer/ingest/test_run.py in a process of its own.

usage: killed_early.py index|model SHARDS FOLDER LOG PASSAGES
Before the model would embed more than PASSAGES passages, the process sends itself SIGKILL.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from fake_encoder import FakeEncoder
from kill_corpus import documents
from killed_shards import change_model, rows
from other_encoder import OtherEncoder, changed_to

from sonde.app.api import index
from sonde.indexer.encoder import Tokens


class Dying(FakeEncoder):
    """Kills its process instead of embedding more passages than `limit`."""

    limit = sys.maxsize

    def encode(self, tokens: Sequence[Tokens]) -> np.ndarray:
        if self.embedded + len(tokens) > self.limit:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(tokens)


class DyingOther(Dying, OtherEncoder):
    """The same with the other model."""


def run(phase: str, shards: int, folder: Path, log: Path, limit: int = sys.maxsize) -> int:
    """Index the corpus, or change its model; return how many passages were embedded."""
    encoder: Any = (Dying if phase == "index" else DyingOther)(log)
    encoder.limit = limit
    if phase == "index":
        index(rows(list(documents())), folder, shards=shards or None, encoder=encoder)
    elif shards:
        change_model(folder, encoder)
    else:
        changed_to(encoder, folder)
    return encoder.embedded


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))

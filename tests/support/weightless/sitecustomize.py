"""A Python process that finds this folder on its PYTHONPATH takes the encoder without weights for every model.

For tests that start processes of their own. SONDE_SLOW is the number of seconds that it takes for one text; as long as
the file that SONDE_HOLD names exists, it embeds no text after the first 256, which are the first commit.
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from fake_encoder import FakeEncoder

from sonde.indexer import encoder
from sonde.indexer.encoder import Tokens, loading, models

HELD = 256


class Held(FakeEncoder):
    """Waits, where a test wants to look."""

    def encode(self, tokens: Sequence[Tokens]) -> np.ndarray:
        hold = os.environ.get("SONDE_HOLD")
        while hold and self.embedded >= HELD and Path(hold).exists():
            time.sleep(0.05)
        return super().encode(tokens)


def _load(*_: Any, **__: Any) -> FakeEncoder:
    return Held(seconds=float(os.environ.get("SONDE_SLOW", "0")))


models.is_local = lambda *_: True
encoder.load_encoder = encoder.load_encoder_for = _load  # type: ignore[assignment]
loading.load_encoder = loading.load_encoder_for = _load  # type: ignore[assignment]

"""A Python process that finds this folder on its PYTHONPATH takes the encoder without weights for every model.

For tests that start processes of their own. SONDE_SLOW is the number of seconds that it takes for one text.
"""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from fake_encoder import FakeEncoder

from sonde.indexer import encoder
from sonde.indexer.encoder import models


def _load(*_: Any, **__: Any) -> FakeEncoder:
    return FakeEncoder(seconds=float(os.environ.get("SONDE_SLOW", "0")))


models.at_hand = lambda *_: True
encoder.load_encoder = encoder.load_encoder_for = _load  # type: ignore[assignment]

"""What a fresh `.venv` makes at the first use and then keeps, made once before pytest starts its workers.

Numba compiles EVoC when it is imported, for two minutes of processor time, and the layout of maps when it is called.
Sonde makes the static model out of the default one in half a minute. Workers that begin side by side would each do it.
"""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports huggingface_hub, which reads it once

from default_model import default_model
from themes import collection, rows

from sonde.indexer.encoder import load_encoder
from sonde.indexer.errors import MissingExtraError


def main() -> None:
    """Compute topics, a map and a density clustering of 120 texts, and load the static model: what is installed."""
    with TemporaryDirectory() as folder, collection(Path(folder) / "themes.sonde", rows()) as made:
        for compute in (made.topics, made.map, lambda: made.cluster("density", method="density")):
            with suppress(MissingExtraError):
                compute()
    if default_model():
        load_encoder("static")


if __name__ == "__main__":
    main()

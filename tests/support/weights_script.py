"""The names of `release/weights.py`, which is a script and not part of the package."""

import runpy
from pathlib import Path

_SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "release/weights.py"))
FILES: tuple[str, ...] = _SCRIPT["FILES"]
WEIGHTS: str = _SCRIPT["WEIGHTS"]

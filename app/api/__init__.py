"""The Python API: `sonde.index`, `sonde.open`, and the `Collection` that they return."""

from .collection import Collection, index, open
from .texts import classify, entail

__all__ = ["Collection", "classify", "entail", "index", "open"]

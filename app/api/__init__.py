"""The Python API: `sonde.index`, `sonde.open`, and the `Collection` that they return."""

from .collection import Collection, classify, entail, index, open

__all__ = ["Collection", "classify", "entail", "index", "open"]

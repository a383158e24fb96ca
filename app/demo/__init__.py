"""The demonstration: a real corpus that needs no download, and searches that show what meaning finds."""

from .corpus import stdlib_docstrings
from .searches import FILTERED, QUERIES, SEARCHES, DemoSearch

__all__ = ["FILTERED", "QUERIES", "SEARCHES", "DemoSearch", "stdlib_docstrings"]

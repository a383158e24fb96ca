"""The page Evaluate: the tables of `sonde evaluate` for one collection."""

from .page import show

__all__ = ["show"]

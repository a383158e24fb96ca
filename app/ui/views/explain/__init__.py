"""The page Explain: two texts, or a query and a hit, through every kind of model, down to tokens and heads."""

from .page import show

__all__ = ["show"]

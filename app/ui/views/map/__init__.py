"""The page Map: all documents as points, and what can be done with those that one selects."""

from .page import show

__all__ = ["show"]

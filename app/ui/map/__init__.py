"""The Explore page: map, search, table and charts of a collection that narrow each other."""

from .page import show

__all__ = ["show"]

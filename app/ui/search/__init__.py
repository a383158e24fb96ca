"""The Search page: one box, filters, hits with their reasons, and judgements of them."""

from .page import show

__all__ = ["show"]

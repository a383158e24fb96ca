"""The Data page: the collections of this server, their texts and their health."""

from .page import show

__all__ = ["show"]

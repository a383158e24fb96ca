"""The workbench, a client in plain JavaScript: map, search, table and charts of a collection that narrow each other."""

from .page import script, style

__all__ = ["script", "style"]

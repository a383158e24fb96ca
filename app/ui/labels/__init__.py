"""The Labels page: labels typed, tried on a sample, run over all documents, reviewed and corrected."""

from .page import show

__all__ = ["show"]

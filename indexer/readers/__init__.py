"""Readers: files, tables and Python objects become documents, one at a time."""

from .columns import Columns
from .options import ReadOptions
from .preview import Preview, preview
from .read import read
from .reading import Progress, Reading

__all__ = ["Columns", "Preview", "Progress", "ReadOptions", "Reading", "preview", "read"]

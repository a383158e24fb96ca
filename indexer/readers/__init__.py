"""Readers: files, tables and Python objects become documents, one at a time."""

from .columns import Columns
from .read import Preview, preview, read_source
from .reading import Reading, ReadProgress
from .source import ReadOptions

__all__ = ["Columns", "Preview", "ReadOptions", "ReadProgress", "Reading", "preview", "read_source"]

"""Readers: files, tables and Python objects become documents, one at a time."""

from .columns import Columns
from .preview import Preview, preview
from .read import read_source
from .reading import Reading, ReadProgress
from .source import ReadOptions

__all__ = ["Columns", "Preview", "ReadOptions", "ReadProgress", "Reading", "preview", "read_source"]

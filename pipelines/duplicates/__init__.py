"""Duplicates: documents that say the same, exactly, nearly or by meaning."""

from .finding import Duplicate, Duplicates, Group, find_duplicates
from .pairs import DuplicateSettings

__all__ = ["Duplicate", "DuplicateSettings", "Duplicates", "Group", "find_duplicates"]

"""Duplicates: documents that say the same, exactly, nearly or by meaning."""

from .export import check_target, write_without
from .finding import Duplicate, Duplicates, Group, find_duplicates
from .settings import DuplicateSettings

__all__ = ["Duplicate", "DuplicateSettings", "Duplicates", "Group", "check_target", "find_duplicates", "write_without"]

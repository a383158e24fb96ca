"""Taxonomies: groups that people edit, with a log of every edit, and that survive new documents."""

from .editing import edit_taxonomy
from .files import export_taxonomy, import_taxonomy
from .making import make
from .refit import refit
from .result import Taxonomy, TaxonomyGroup, read_log, read_taxonomy, taxonomy_table
from .rules import Conflict
from .settings import EditSettings
from .stored import LogEntry, undo
from .update import TaxonomyUpdate, update

__all__ = [
    "Conflict",
    "EditSettings",
    "LogEntry",
    "Taxonomy",
    "TaxonomyGroup",
    "TaxonomyUpdate",
    "edit_taxonomy",
    "export_taxonomy",
    "import_taxonomy",
    "make",
    "read_log",
    "read_taxonomy",
    "refit",
    "taxonomy_table",
    "undo",
    "update",
]

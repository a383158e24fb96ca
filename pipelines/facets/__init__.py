"""A collection's documents as columns for linked views, and selections over them."""

from .selection import Selection, select
from .stored import table_of
from .table import Column, Facets, Region

__all__ = ["Column", "Facets", "Region", "Selection", "select", "table_of"]

"""A collection's documents as columns for linked views, and selections over them."""

from .evaluate import select
from .selection import Selection
from .stored import table_of
from .table import Column, Facets, Region

__all__ = ["Column", "Facets", "Region", "Selection", "select", "table_of"]

"""The map of a collection: two dimensions in which near texts are near."""

from .mapping import make_map, update_map
from .settings import MapSettings
from .stored import Map

__all__ = ["Map", "MapSettings", "make_map", "update_map"]

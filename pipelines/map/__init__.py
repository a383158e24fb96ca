"""The map of a collection: two dimensions in which near texts are near."""

from .mapping import MapSettings, make_map, update_map
from .stored import Map

__all__ = ["Map", "MapSettings", "make_map", "update_map"]

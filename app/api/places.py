"""Places on a map: which lie inside an outline, how dense they are, and which of many are drawn."""

from ...pipelines.map.regions import density, inside, read_outlines, spread_sample, write_outlines

__all__ = ["density", "inside", "read_outlines", "spread_sample", "write_outlines"]

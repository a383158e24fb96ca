"""Columns that may hold the truth."""

from ....api import Collection
from ..search.filters import facets_of


def truths(collection: Collection) -> list[str]:
    """Return the metadata fields with few different values: classes that labels or clusters are compared with."""
    known = [facet for facet in facets_of(collection) if not facet.run]
    return [facet.name for facet in known if facet.choices] + [f.name for f in known if f.type == "integer"]

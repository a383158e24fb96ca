"""What tells two parts of a collection, or two runs, apart."""

from .compare import Change, RunComparison, compare, compare_runs
from .contrast import Contrast, Side, against_rest, compare_clusters, compare_filters, compare_queries

__all__ = [
    "Change",
    "Contrast",
    "RunComparison",
    "Side",
    "against_rest",
    "compare",
    "compare_clusters",
    "compare_filters",
    "compare_queries",
    "compare_runs",
]

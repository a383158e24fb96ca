"""Files beside a collection: those that people give, and those that are drawn or written for them."""

from ...indexer.store.export import check_export_target
from ...pipelines.cluster import read_candidates
from ...pipelines.label import read_labels
from ...pipelines.label.corrections import read_corrections, write_corrections
from ...pipelines.plots import check_plot_target, write_plot
from ...pipelines.topics import seed_words

__all__ = [
    "check_export_target",
    "check_plot_target",
    "read_candidates",
    "read_corrections",
    "read_labels",
    "seed_words",
    "write_corrections",
    "write_plot",
]

"""Functions that the interfaces need besides a collection: files, filters as text, models and training.

Each name is imported from its own package on first use, so using one function does not load the others.
"""
# ruff: noqa: F401  (the interfaces import these names from here)

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...indexer.encoder import canonical_name, load_encoder_for
    from ...indexer.encoder.models import is_local
    from ...indexer.ingest import estimate_source
    from ...indexer.ingest.estimate import duration
    from ...indexer.ingest.index import encoder_for
    from ...indexer.ingest.source import check_origin
    from ...indexer.progress import notices_to
    from ...indexer.readers import preview
    from ...indexer.readers.encoding import text_of_table
    from ...indexer.readers.read import present
    from ...indexer.readers.unread import unread_lines
    from ...indexer.sharded import address_of, lasting_file
    from ...indexer.sharded.info import last_change, quick_look, remembered_ids
    from ...indexer.store.export import check_export_target
    from ...indexer.store.fields import json_value
    from ...indexer.store.lock import Patience, being_written, patience
    from ...indexer.upkeep.delete import remove_collection
    from ...indexer.wording import size
    from ...pipelines.cluster import read_candidates
    from ...pipelines.evaluate.search import check_per_query, write_per_query
    from ...pipelines.label import NONE_NAME, read_labels
    from ...pipelines.label.correction_files import check_sheet, read_corrections, write_sheet
    from ...pipelines.map.regions import read_outlines
    from ...pipelines.plots import check_plot_target, write_plot
    from ...pipelines.search.filters.compile import among, between, containing, every
    from ...pipelines.search.results import NOT_CLOSE, NOTHING_ANSWERS
    from ...pipelines.search.tables import hit_columns, shown_metadata, telling_fields, to_csv, to_jsonl
    from ...pipelines.topics import seed_words
    from ...pipelines.train import train_nli, train_reranker
    from ...pipelines.train.biencoder import train_biencoder

_HOMES = {
    "indexer.encoder": ("canonical_name", "load_encoder_for"),
    "indexer.encoder.models": ("is_local",),
    "indexer.ingest": ("estimate_source",),
    "indexer.ingest.index": ("encoder_for",),
    "indexer.ingest.source": ("check_origin",),
    "indexer.ingest.estimate": ("duration",),
    "indexer.readers": ("preview",),
    "indexer.readers.encoding": ("text_of_table",),
    "indexer.readers.read": ("present",),
    "indexer.readers.unread": ("unread_lines",),
    "indexer.sharded": ("address_of", "lasting_file"),
    "indexer.sharded.info": ("quick_look", "last_change", "remembered_ids"),
    "indexer.store.export": ("check_export_target",),
    "indexer.store.fields": ("json_value",),
    "indexer.store.lock": ("Patience", "being_written", "patience"),
    "indexer.progress": ("notices_to",),
    "indexer.wording": ("size",),
    "indexer.upkeep.delete": ("remove_collection",),
    "pipelines.cluster": ("read_candidates",),
    "pipelines.evaluate.search": ("check_per_query", "write_per_query"),
    "pipelines.label": ("NONE_NAME", "read_labels"),
    "pipelines.label.correction_files": ("check_sheet", "read_corrections", "write_sheet"),
    "pipelines.map.regions": ("read_outlines",),
    "pipelines.plots": ("check_plot_target", "write_plot"),
    "pipelines.search.filters.compile": ("among", "between", "containing", "every"),
    "pipelines.search.results": ("NOT_CLOSE", "NOTHING_ANSWERS"),
    "pipelines.search.tables": ("hit_columns", "shown_metadata", "telling_fields", "to_csv", "to_jsonl"),
    "pipelines.topics": ("seed_words",),
    "pipelines.train": ("train_nli", "train_reranker"),
    "pipelines.train.biencoder": ("train_biencoder",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"...{_HOME_OF[name]}", __package__), name)

"""Filters as text, values as JSON, and hits as files."""

from ...indexer.store.fields import json_value
from ...pipelines.search.filters.writing import among, between, containing, every
from ...pipelines.search.results import to_csv, to_jsonl

__all__ = [
    "among",
    "between",
    "containing",
    "every",
    "json_value",
    "to_csv",
    "to_jsonl",
]

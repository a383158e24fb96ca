"""Sonde: search, map, cluster and label a pile of text by meaning.

Names are imported when they are first used, so that `import sonde` loads neither torch nor FAISS.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sonde.app.api import Collection, classify, entail, index, open
    from sonde.app.http.client import RemoteCollection, connect
    from sonde.indexer.ann import AnnSettings
    from sonde.indexer.document import Document
    from sonde.indexer.encoder import Encoder, load_encoder
    from sonde.indexer.errors import MissingExtraError, SondeError, UsageError, WriterBusyError
    from sonde.indexer.ingest import BuildReport, BuildSettings
    from sonde.indexer.progress import Progress, ProgressBar
    from sonde.indexer.readers import ReadOptions
    from sonde.pipelines.check import CheckSettings
    from sonde.pipelines.cluster import ClusterSettings
    from sonde.pipelines.duplicates import DuplicateSettings
    from sonde.pipelines.label import Label, LabelSettings
    from sonde.pipelines.label.examples import LabelledExample
    from sonde.pipelines.map import MapSettings
    from sonde.pipelines.search.ask import AskSettings
    from sonde.pipelines.search.results import Hit, Results
    from sonde.pipelines.search.settings import SearchSettings
    from sonde.pipelines.similarity.bitext import Translation, mine_bitext
    from sonde.pipelines.similarity.similarity import Similarity, similarity
    from sonde.pipelines.taxonomy import EditSettings
    from sonde.pipelines.topics import TopicSettings
    from sonde.pipelines.watch import WatchSettings

# ONNX Runtime, from 1.29, reports to Microsoft and keeps an identifier in the home, unless this is set before it is
# imported; huggingface_hub adds facts on this machine to what it downloads.
for _name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ.setdefault(_name, "1")

_HOMES = {
    "Collection": "app.api",
    "classify": "app.api",
    "entail": "app.api",
    "index": "app.api",
    "open": "app.api",
    "RemoteCollection": "app.http.client",
    "connect": "app.http.client",
    "AnnSettings": "indexer.ann",
    "BuildReport": "indexer.ingest",
    "BuildSettings": "indexer.ingest",
    "Document": "indexer.document",
    "Encoder": "indexer.encoder",
    "load_encoder": "indexer.encoder",
    "MissingExtraError": "indexer.errors",
    "SondeError": "indexer.errors",
    "UsageError": "indexer.errors",
    "WriterBusyError": "indexer.errors",
    "Progress": "indexer.progress",
    "ProgressBar": "indexer.progress",
    "ReadOptions": "indexer.readers",
    "AskSettings": "pipelines.search.ask",
    "Label": "pipelines.label",
    "LabelSettings": "pipelines.label",
    "LabelledExample": "pipelines.label.examples",
    "CheckSettings": "pipelines.check",
    "ClusterSettings": "pipelines.cluster",
    "DuplicateSettings": "pipelines.duplicates",
    "Hit": "pipelines.search.results",
    "Results": "pipelines.search.results",
    "SearchSettings": "pipelines.search.settings",
    "Similarity": "pipelines.similarity.similarity",
    "similarity": "pipelines.similarity.similarity",
    "Translation": "pipelines.similarity.bitext",
    "mine_bitext": "pipelines.similarity.bitext",
    "MapSettings": "pipelines.map",
    "EditSettings": "pipelines.taxonomy",
    "TopicSettings": "pipelines.topics",
    "WatchSettings": "pipelines.watch",
}

__all__ = [
    "AnnSettings",
    "AskSettings",
    "BuildReport",
    "BuildSettings",
    "CheckSettings",
    "ClusterSettings",
    "Collection",
    "Document",
    "DuplicateSettings",
    "EditSettings",
    "Encoder",
    "Hit",
    "Label",
    "LabelSettings",
    "LabelledExample",
    "MapSettings",
    "MissingExtraError",
    "Progress",
    "ProgressBar",
    "ReadOptions",
    "RemoteCollection",
    "Results",
    "SearchSettings",
    "Similarity",
    "SondeError",
    "TopicSettings",
    "Translation",
    "UsageError",
    "WatchSettings",
    "WriterBusyError",
    "classify",
    "connect",
    "entail",
    "index",
    "load_encoder",
    "mine_bitext",
    "open",
    "similarity",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # takes 40 ms

        return version("sonde")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

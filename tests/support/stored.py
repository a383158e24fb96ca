"""Small collections with the fake encoder: index documents, and open what is stored."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder

from sonde.app.api import Collection
from sonde.indexer.document import Document, Skipped
from sonde.indexer.ingest import BuildReport, BuildSettings, index_documents


def opened(folder: Path) -> Collection:
    return Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]


def index(
    documents: Sequence[Document | Skipped], folder: Path, *, batch: int | None = 3, **sync: Any
) -> tuple[BuildReport, int]:
    """Index, and return the report and how many passages were embedded."""
    encoder = FakeEncoder()
    chosen = BuildSettings(batch=batch, language="en", **sync)
    report = index_documents(documents, folder, settings=chosen, encoder=encoder)  # type: ignore[arg-type]
    assert encoder.embedded == report.embedded
    return report, encoder.embedded

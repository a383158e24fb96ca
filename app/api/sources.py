"""What a collection is made from: files looked at before they are indexed, and models."""

from ...indexer.encoder import canonical_name, load_encoder_for
from ...indexer.encoder.models import at_hand
from ...indexer.ingest import estimate_source as estimate
from ...indexer.ingest.index import encoder_for
from ...indexer.ingest.report import duration, size
from ...indexer.readers import preview
from ...indexer.readers.read import present

__all__ = [
    "at_hand",
    "canonical_name",
    "duration",
    "encoder_for",
    "estimate",
    "load_encoder_for",
    "present",
    "preview",
    "size",
]

"""Whether the default bi-encoder is in the checkout or installed."""

from sonde.indexer.encoder.models import DEFAULT_MODEL, is_local


def default_model() -> bool:
    return is_local(DEFAULT_MODEL)

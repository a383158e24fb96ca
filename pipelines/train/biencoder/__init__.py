"""Tuning a bi-encoder on pairs, triplets, scores or labels, or on pairs made from a collection."""

from .examples import Examples, pairs, read_examples
from .run import TunedBiencoder, train_biencoder
from .settings import BiencoderSettings

__all__ = ["BiencoderSettings", "Examples", "TunedBiencoder", "pairs", "read_examples", "train_biencoder"]

"""Tuning a bi-encoder on pairs, triplets, scores or labels, or on pairs made from a collection."""

from ..settings import BiencoderSettings
from .examples import Examples, pairs, read_examples
from .run import TunedBiencoder, train_biencoder

__all__ = ["BiencoderSettings", "Examples", "TunedBiencoder", "pairs", "read_examples", "train_biencoder"]

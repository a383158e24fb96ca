"""Pairs of texts through a cross-encoder: logits of any sequence-classification model, for NLI and for reranking."""

from .loading import load_pair_model
from .model import PairModel, PairScorer

__all__ = ["PairModel", "PairScorer", "load_pair_model"]

"""Training models: bi-encoders, rerankers and NLI models. Importing this loads torch."""

from ...pipelines.train import train_nli, train_reranker
from ...pipelines.train.biencoder import train_biencoder

__all__ = ["train_biencoder", "train_nli", "train_reranker"]

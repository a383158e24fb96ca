"""Training: a model of pairs from a bi-encoder and a file of examples, resumable and repeatable."""

from .nli import Trained, train_nli
from .reranker import TrainedReranker, train_reranker
from .settings import TrainSettings

__all__ = ["TrainSettings", "Trained", "TrainedReranker", "train_nli", "train_reranker"]

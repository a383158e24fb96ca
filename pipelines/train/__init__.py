"""Training: a model of pairs from a bi-encoder and a file of examples, resumable and repeatable."""

from .nli import Trained, train_nli
from .settings import TrainSettings

__all__ = ["TrainSettings", "Trained", "train_nli"]

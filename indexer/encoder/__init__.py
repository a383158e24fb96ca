"""The encoder: any Sentence-Transformers model as a fast function from texts to vectors."""

from .encoder import Encoder
from .loading import load_encoder, load_encoder_for
from .models import DEFAULT_MODEL, STATIC_MODEL, canonical_name
from .settings import ModelSpec
from .token_vectors import TokenVectors
from .tokenizer import Tokens

__all__ = [
    "DEFAULT_MODEL",
    "STATIC_MODEL",
    "Encoder",
    "ModelSpec",
    "TokenVectors",
    "Tokens",
    "canonical_name",
    "load_encoder",
    "load_encoder_for",
]

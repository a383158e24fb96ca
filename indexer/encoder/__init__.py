"""The encoder: any Sentence-Transformers model as a fast function from texts to vectors.

Each name is imported on first use, so that opening a collection does not load what runs a model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .encoder import Encoder
    from .loading import load_encoder, load_encoder_for
    from .models import DEFAULT_MODEL, STATIC_MODEL, canonical_name
    from .settings import ModelSpec
    from .token_vectors import TokenVectors
    from .tokenizer import Tokens

_HOMES = {
    "DEFAULT_MODEL": "models",
    "STATIC_MODEL": "models",
    "Encoder": "encoder",
    "ModelSpec": "settings",
    "TokenVectors": "token_vectors",
    "Tokens": "tokenizer",
    "canonical_name": "models",
    "load_encoder": "loading",
    "load_encoder_for": "loading",
}
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

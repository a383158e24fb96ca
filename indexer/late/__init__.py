"""The late index: compressed token embeddings of passages, derived from their texts and rebuildable."""

from .codec import LEAST, Codec, Rarity, token_rows
from .index import REPAIR, LateIndex, LateInfo, key, one_thread_each
from .writer import LateWriter

__all__ = [
    "LEAST",
    "REPAIR",
    "Codec",
    "LateIndex",
    "LateInfo",
    "LateWriter",
    "Rarity",
    "key",
    "one_thread_each",
    "token_rows",
]

"""A bi-encoder without weights: a text's vector is the normalised sum of fixed random vectors of its words.

Used where a test is about the collection and not about the model: it needs no torch, its vectors can be worked out by
hand, and it can be slowed down and counted.
"""

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from sonde.indexer.encoder import ModelSpec, Tokens, TokenVectors

DIMENSION = 16
WINDOW = 64


class WordTokenizer:
    """Words are tokens; there are no special ones."""

    window = WINDOW

    def tokenize(self, texts: list[str], query: bool) -> list[Tokens]:
        return [
            Tokens(np.array([word_id(word) for word in words(text)][:WINDOW], np.int32), len(words(text)), query)
            for text in texts
        ]

    def counts(self, texts: list[str]) -> list[int]:
        return [len(words(text)) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [found.span() for found in re.finditer(r"\w+", text)]

    def overhead(self, query: bool) -> int:
        return 0


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def word_id(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=3).digest(), "little")


@lru_cache(maxsize=10_000)
def word_vector(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(DIMENSION).astype(np.float32)


class FakeEncoder:
    """Counts the texts that it embeds in `log`, a byte each, and takes `seconds` for each."""

    spec = ModelSpec("fake", None, "0" * 64, DIMENSION, WINDOW, "", "", True, "float32", None, "cosine", "transformer")

    def __init__(self, log: Path | None = None, seconds: float = 0.0) -> None:
        self.tokenizer = WordTokenizer()
        self.log = log
        self.seconds = seconds
        self.embedded = 0

    def tokenize(self, texts: Sequence[str], *, query: bool = False) -> list[Tokens]:
        return self.tokenizer.tokenize(list(texts), query)

    def encode(self, tokens: Sequence[Tokens]) -> np.ndarray:
        if self.log and not any(text.query for text in tokens):
            with self.log.open("ab") as stream:
                stream.write(b"." * len(tokens))
        self.embedded += sum(not text.query for text in tokens)
        time.sleep(self.seconds * len(tokens))
        sums = [sum((word_vector(int(i)) for i in text.ids), np.full(DIMENSION, 1e-3, np.float32)) for text in tokens]
        vectors = np.array(sums, dtype=np.float32).reshape(-1, DIMENSION)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode_with_tokens(self, tokens: Sequence[Tokens], take: Callable[..., object]) -> np.ndarray:
        for start in range(0, len(tokens), 100):
            some = tokens[start : start + 100]
            take(np.arange(start, start + len(some)), self.token_vectors(some))
        return self.encode(tokens)

    def token_vectors(self, tokens: Sequence[Tokens]) -> list[TokenVectors]:
        return [self._vectors_of(text.ids.astype(np.int64)) for text in tokens]

    def _vectors_of(self, ids: np.ndarray) -> TokenVectors:
        vectors = np.array([word_vector(int(i)) for i in ids], np.float32).reshape(-1, DIMENSION)
        if not len(ids):
            ids, vectors = np.zeros(1, np.int64), np.zeros((1, DIMENSION), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return TokenVectors(ids, vectors / np.where(lengths > 0, lengths, 1), np.arange(len(ids)))

    def encode_texts(self, texts: Sequence[str], query: bool = False) -> np.ndarray:
        return self.encode(self.tokenize(texts, query=query))

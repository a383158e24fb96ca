"""Which token of one text is like which token of another, by the bi-encoder's vectors of tokens in their context."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..indexer.encoder import Encoder, Tokens
from ..indexer.encoder.tokenizer import FastTokenizer
from ..indexer.errors import UsageError

MOST = 80
"""Tokens of a text that are compared, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenMatrix:
    """The cosines of two texts' tokens.

    Attributes:
        first: The first text's tokens, n of them, special ones left out.
        second: The second text's tokens, m of them.
        similarities: float32 [n, m], -1 to 1.
        left_out: Tokens of both texts that were not compared, because there are more than 80 in a text.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    similarities: np.ndarray
    left_out: int


def token_matrix(encoder: Encoder, first: str, second: str, *, query: bool = False) -> TokenMatrix:
    """Compare the tokens of two texts.

    Args:
        encoder: The bi-encoder.
        first: A text, or a query.
        second: A text.
        query: Whether the first one is a query.

    Raises:
        UsageError: A text is empty.
        SondeError: The model has no vectors of tokens.
    """
    if not first.strip() or not second.strip():
        raise UsageError("a text is empty: give two texts to compare")
    tokens = [*encoder.tokenize([first], query=query), *encoder.tokenize([second])]
    vectors = encoder.token_vectors(tokens)
    names = [names_of(encoder, found.ids.tolist()) for found in vectors]
    left_out = sum(max(0, len(each) - MOST) for each in names)
    similar = np.clip(vectors[0].vectors[:MOST] @ vectors[1].vectors[:MOST].T, -1, 1).astype(np.float32)
    return TokenMatrix(tuple(names[0][:MOST]), tuple(names[1][:MOST]), similar, left_out)


def names_of(encoder: Encoder, ids: Sequence[int]) -> list[str]:
    """Return what tokens are called in the model's vocabulary; their number where that cannot be asked."""
    backend = encoder.tokenizer.backend if isinstance(encoder.tokenizer, FastTokenizer) else None
    named = [backend.id_to_token(number) if backend else None for number in ids]
    return [name or f"#{number}" for name, number in zip(named, ids, strict=True)]


def shortened(tokens: Tokens, most: int) -> Tokens:
    """Return at most so many tokens of a text, its last one, which is often a special one, kept."""
    if len(tokens.ids) <= most:
        return tokens
    return Tokens(np.concatenate([tokens.ids[: most - 1], tokens.ids[-1:]]), tokens.total, tokens.query)

"""Vectors of single tokens in their context, and where the tokens of a text are in it."""

from dataclasses import dataclass

import numpy as np

from .model_folder import in_one_line
from .tokenizer import UNREADABLE, FastTokenizer, OwnPreprocessing, TextTokenizer

LONGEST = 50_000
"""Characters of a text whose tokens are located; no window reaches further."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """The tokens of one text, special ones left out unless there are no others.

    Attributes:
        ids: int64 [n], n at least 1.
        vectors: float32 [n, d], of length 1.
        places: int64 [n], each token's place in `Tokens.ids`.
    """

    ids: np.ndarray
    vectors: np.ndarray
    places: np.ndarray


def kept_tokens(ids: np.ndarray, vectors: np.ndarray, special: np.ndarray) -> TokenVectors:
    """Return the tokens of one text but for the special ones, from int64 [n] and float32 [n, d]."""
    places = np.flatnonzero(~np.isin(ids, special))
    places = places if len(places) else np.arange(len(ids))
    return TokenVectors(ids[places], vectors[places], places)


def special_ids(tokenizer: TextTokenizer) -> np.ndarray:
    """Return the ids of the special tokens that the tokenizer puts around a text."""
    if isinstance(tokenizer, FastTokenizer):
        return np.unique(np.array([*tokenizer.prefix, *tokenizer.suffix], np.int64))
    if isinstance(tokenizer, OwnPreprocessing):
        return np.array(getattr(tokenizer.model.tokenizer, "all_special_ids", ()) or (), np.int64)
    return np.empty(0, np.int64)


def locate_tokens(tokenizer: TextTokenizer, text: str, query: bool) -> list[tuple[int, int]] | None:
    """Return the characters of a text, from and to, of each of its `Tokens.ids`; None where that is not known.

    Special tokens and those of the prompt get an empty range at or before 0.
    """
    if not isinstance(tokenizer, FastTokenizer) or tokenizer.left:
        return None
    prompt = len(tokenizer.prompts[query])
    with in_one_line(UNREADABLE):
        encoding = tokenizer.backend.encode(tokenizer.prompts[query] + text[:LONGEST], add_special_tokens=False)
    inside = tokenizer.window - len(tokenizer.prefix) - len(tokenizer.suffix)
    spans = [(max(0, start - prompt), max(0, end - prompt)) for start, end in encoding.offsets[:inside]]
    return [(0, 0)] * len(tokenizer.prefix) + spans + [(0, 0)] * len(tokenizer.suffix)

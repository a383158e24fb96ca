"""From tokens to words: which stretches of a text a tokenizer's pieces make up."""

import re
from dataclasses import dataclass

import numpy as np

from ...indexer.encoder.token_vectors import locate_tokens
from ...indexer.encoder.tokens import TextTokenizer

_LETTER = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Word:
    """A word's characters, from and to, and its tokens' places among the token vectors."""

    start: int
    end: int
    tokens: tuple[int, ...]


def words(tokenizer: TextTokenizer, text: str, places: np.ndarray, query: bool) -> list[Word]:
    """Return the words of a text, with signs left out; nothing for a tokenizer that does not say where tokens are.

    Args:
        tokenizer: The model's.
        text: The text without its prompt.
        places: int [n], the places in `Tokens.ids` of the tokens that have vectors.
        query: Whether it was tokenised as a query.
    """
    spans = locate_tokens(tokenizer, text, query)
    found: list[Word] = []
    for number, place in enumerate(places.tolist()):
        start, end = spans[place] if spans and place < len(spans) else (0, 0)
        if not _LETTER.search(text[start:end]):
            continue
        # Some tokenizers count the space before a word as part of it.
        start += len(text[start:end]) - len(text[start:end].lstrip())
        if found and found[-1].end == start and _LETTER.fullmatch(text[start : start + 1]):
            found[-1] = Word(found[-1].start, end, (*found[-1].tokens, number))
        else:
            found.append(Word(start, end, (number,)))
    return found

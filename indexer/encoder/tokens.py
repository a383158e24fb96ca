"""A tokenised text: what the model will read, and how much of the text is cut off."""

import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Token ids of one text, prompt and special tokens included.

    Attributes:
        ids: int32 [length], cut to the model's window; the special tokens at the end are kept.
        total: The length before cutting.
        query: Whether it was tokenised as a query, not as a document.
        text: The text itself, only for models that cannot be run from token ids.
    """

    ids: np.ndarray
    total: int
    query: bool = False
    text: str | None = None

    @property
    def cut(self) -> int:
        """How many tokens do not fit into the window."""
        return self.total - len(self.ids)


class TextTokenizer(Protocol):
    """Turns texts into tokens, and tokens into what the model's first module takes."""

    window: int
    """The most tokens of one text, prompt and special tokens included."""

    def tokenize(self, texts: list[str], query: bool) -> list[Tokens]:
        """Tokenise texts with the prompt of queries or of documents."""
        ...

    def counts(self, texts: list[str]) -> list[int]:
        """Count the tokens of each text, without prompt and special tokens."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the characters, from and to, of each token of a text without prompt and special tokens."""
        ...

    def overhead(self, query: bool) -> int:
        """Count the tokens that prompt and special tokens take from the window."""
        ...

    def collate(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return the features of a batch whose texts all have the same role."""
        ...


def whitespace_before(text: str, position: int, earliest: int) -> int:
    """Return where the word at `position` starts, or `position` itself if it starts no later than at `earliest`."""
    start = position
    while start > earliest and not text[start - 1].isspace():
        start -= 1
    return start if start > earliest else position


_WORD = re.compile(r"\w+|[^\w\s]")
SPECIAL = 2
"""Assumed for the special tokens that such a model adds."""


class OwnPreprocessing:
    """Keeps texts as they are and estimates their tokens: by the model's tokenizer if it has one, else by words."""

    def __init__(self, model: Any, window: int, prompts: tuple[str, str]) -> None:
        self.model = model
        self.window = window
        self.prompts = prompts

    def tokenize(self, texts: list[str], query: bool) -> list[Tokens]:
        """Wrap texts with their estimated length; the model does the rest."""
        lengths = [count + self.overhead(query) for count in self.counts(texts)]
        pairs = zip(texts, lengths, strict=True)
        return [Tokens(np.zeros(min(length, self.window), np.int32), length, query, text) for text, length in pairs]

    def counts(self, texts: list[str]) -> list[int]:
        """Estimate the tokens of each text."""
        return [len(self.offsets(text)) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the characters of each word and sign, with long words counted as several tokens."""
        return [
            (start, min(start + 4, found.end()))
            for found in _WORD.finditer(text)
            for start in range(found.start(), found.end(), 4)
        ]

    def overhead(self, query: bool) -> int:
        """Estimate the tokens of prompt and special tokens."""
        return SPECIAL + len(self.offsets(self.prompts[query]))

    def collate(self, batch: list[Tokens]) -> dict[str, Any]:
        """Let the model preprocess the texts in its own way."""
        query = batch[0].query
        texts = [tokens.text or "" for tokens in batch]
        return self.model.preprocess(texts, prompt=self.prompts[query] or None, task="query" if query else "document")

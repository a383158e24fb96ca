"""Models that cannot be run from token ids (routers, chat templates, tokenizers in Python): their own preprocessing."""

import re
from typing import Any

import numpy as np

from .tokens import Tokens

_WORD = re.compile(r"\w+|[^\w\s]")
SPECIAL = 2
"""Assumed for the special tokens that such a model adds."""


class OpaqueTokenizer:
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

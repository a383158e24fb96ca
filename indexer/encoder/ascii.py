"""A shorter way from plain ASCII to the tokens of BERT-like tokenizers: nearly twice as fast, the same ids.

Such a tokenizer cleans each text, looks for Chinese characters, removes accents and writes lower case, and for each of
the four it notes where every character came from. For printable ASCII, `str.lower` does the same.
"""

import json
import re
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_CONTROL = re.compile(r"[^\t\n\r -~]")
"""White space of other kinds among them; the tokenizer removes some and keeps others."""


class AsciiShortcut:
    """A tokenizer's second form, which takes prepared texts."""

    def __init__(self, backend: "Tokenizer", lower: bool, added: list[str]) -> None:
        """Take a tokenizer without normaliser, and the tokens that it looks for in a text, in lower case."""
        self.backend = backend
        self._lower = lower
        self._added = added

    @classmethod
    def of(cls, backend: "Tokenizer") -> Self | None:
        """Return the shortcut of a tokenizer; None if it is not of BERT's kind."""
        from tokenizers import Tokenizer

        content = json.loads(backend.to_str())
        normalizer, split, added = (content.get(part) or {} for part in ("normalizer", "pre_tokenizer", "added_tokens"))
        if (normalizer.get("type"), split.get("type")) != ("BertNormalizer", "BertPreTokenizer"):
            return None
        bare = Tokenizer.from_str(json.dumps(content | {"normalizer": None}))
        return cls(bare, bool(normalizer["lowercase"]), [token["content"].lower() for token in added])

    def prepared(self, text: str) -> str | None:
        """Return what the second form takes; None if only the tokenizer itself treats the text rightly."""
        if not text.isascii() or _CONTROL.search(text):
            return None
        lower = text.lower()
        if any(token in lower for token in self._added):
            return None
        return lower if self._lower else text

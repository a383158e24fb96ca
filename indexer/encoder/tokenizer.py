"""Tokenizers and tokenised texts: what a model reads, and how much of a text is cut off."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from ..errors import SondeError, UsageError
from .model_folder import growth, in_one_line
from .settings import cores
from .word_pieces import WordPieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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
    prompts: tuple[str, str]
    """Those of documents and of queries."""

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


SLICE = 50_000
"""Characters. Longer texts are tokenised in slices: an `Encoding` takes some hundred bytes a token."""
AT_ONCE = 2_000_000
"""Characters that are tokenised at once, for the same reason."""
MANY_CORES = 8
"""From here on, the library's threads are as fast as words from memory, and leave Python's lock to other threads."""
UNREADABLE = "the model's tokenizer cannot read a text"


class FastTokenizer:
    """Counts and locates the tokens of texts with a `tokenizers.Tokenizer`; texts of any length, in flat memory."""

    def __init__(self, backend: "Tokenizer", window: int, prompts: tuple[str, str], special: bool) -> None:
        """Take a tokenizer of its own (its truncation and padding are turned off) and (document, query) prompts."""
        self._at_once = AT_ONCE // growth(backend)
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.window = window
        self.prompts = prompts
        self.special = special
        self.prefix, self.suffix, self.types = _template(backend) if special else ([], [], ([], 0, []))
        self.left = False
        for role, prompt in zip(("document", "query"), prompts, strict=True):
            if self.overhead(role == "query") >= window:
                raise UsageError(f"the {role} prompt fills the model's window of {window} tokens: shorten {prompt!r}")

    def tokenize(self, texts: list[str], query: bool) -> list[Tokens]:
        """Tokenise texts with their prompt and the model's special tokens."""
        prompt = self.prompts[query]
        found: list[Tokens] = []
        for group in _groups([prompt + text for text in texts] if prompt else texts, self._at_once):
            if len(group) == 1 and len(group[0]) > SLICE:
                found.append(self._tokenize_long(group[0], query))
                continue
            found.extend(self._tokens(ids, len(ids), query) for ids in self._encode(group, self.special))
        return found

    def counts(self, texts: list[str]) -> list[int]:
        """Count the tokens of each text, without prompt and special tokens."""
        found: list[int] = []
        for group in _groups(texts, self._at_once):
            if len(group) == 1:
                found.append(sum(len(self._encode([piece], False)[0]) for piece in _slices(group[0])))
            else:
                found.extend(map(len, self._encode(group, False)))
        return found

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the characters, from and to, of each token of a text without prompt and special tokens."""
        with in_one_line(UNREADABLE):
            return self.backend.encode(text, add_special_tokens=False).offsets

    def overhead(self, query: bool) -> int:
        """Count the tokens that prompt and special tokens take from the window."""
        special = len(self.prefix) + len(self.suffix)
        return special + (self.counts([self.prompts[query]])[0] if self.prompts[query] else 0)

    def _encode(self, texts: list[str], special: bool) -> list[list[int]]:
        with in_one_line(UNREADABLE):
            if len(texts) == 1:
                return [self.backend.encode(texts[0], add_special_tokens=special).ids]
            if self._words is None or cores() >= MANY_CORES:
                return [found.ids for found in self.backend.encode_batch_fast(texts, add_special_tokens=special)]
            return self._from_words(self._words, texts, special)

    def _from_words(self, words: WordPieces, texts: list[str], special: bool) -> list[list[int]]:
        known = [words.ids(text) for text in texts]
        whole = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        others = iter(self.backend.encode_batch_fast(whole, add_special_tokens=False))
        found = (next(others).ids if ids is None else ids for ids in known)
        return [self.prefix + ids + self.suffix for ids in found] if special else list(found)

    @cached_property
    def _words(self) -> WordPieces | None:
        return WordPieces.of(self.backend)

    def _tokens(self, ids: list[int], total: int, query: bool) -> Tokens:
        if total > self.window:
            ids = self._cut(ids)
        return Tokens(np.array(ids, dtype=np.int32), total, query)

    def _cut(self, ids: list[int]) -> list[int]:
        head, tail = len(self.prefix), len(self.suffix)
        content = ids[head : len(ids) - tail]
        room = self.window - head - tail
        return self.prefix + (content[-room:] if self.left else content[:room]) + self.suffix

    def _tokenize_long(self, text: str, query: bool) -> Tokens:
        """Count all tokens of a text and keep those at the end that the window takes from."""
        total = len(self.prefix) + len(self.suffix)
        kept: list[int] = []
        for piece in _slices(text):
            ids = self._encode([piece], False)[0]
            total += len(ids)
            kept = (kept + ids)[-self.window :] if self.left else (kept + ids)[: self.window]
        return self._tokens(self.prefix + kept + self.suffix, total, query)


def _groups(texts: list[str], at_once: int = AT_ONCE) -> Iterator[list[str]]:
    """Split texts into runs of bounded size; a long text is alone in its own."""
    group: list[str] = []
    characters = 0
    for text in texts:
        if group and (characters + len(text) > at_once or len(text) > SLICE):
            yield group
            group, characters = [], 0
        group.append(text)
        characters += len(text)
        if len(text) > SLICE:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _slices(text: str) -> Iterator[str]:
    """Cut a text at white space into pieces of at most `SLICE` characters."""
    start = 0
    while len(text) - start > SLICE:
        end = whitespace_before(text, start + SLICE, start + SLICE // 2)
        yield text[start:end]
        start = end
    yield text[start:]


def _template(backend: "Tokenizer") -> tuple[list[int], list[int], tuple[list[int], int, list[int]]]:
    """Find the special tokens before and after a text, and the token types of the three parts."""
    for probe in ("a", "the", "1", ".", "一"):
        encoding = backend.encode(probe)
        content = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        if content:
            first, last = content[0], content[-1] + 1
            types = encoding.type_ids
            parts = (types[:first], types[first], types[last:])
            return encoding.ids[:first], encoding.ids[last:], parts
    raise SondeError("the model's tokenizer produces no tokens for plain text: the model folder is damaged")


class TransformerTokenizer(FastTokenizer):
    """The tokenizer of a Sentence-Transformers `Transformer` module."""

    def __init__(self, module: Any, window: int, prompts: tuple[str, str]) -> None:
        from tokenizers import Tokenizer

        self.model = module.tokenizer
        super().__init__(Tokenizer.from_str(self.model.backend_tokenizer.to_str()), window, prompts, True)
        self.left = self.model.truncation_side == "left"
        self.prompt_lengths = tuple(module._get_prompt_length(prompt) if prompt else None for prompt in prompts)

    def collate(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return input ids, attention mask and, where the model takes them, token types: int64 [texts, longest]."""
        import torch

        lengths = np.array([len(tokens.ids) for tokens in batch])
        columns = np.arange(lengths.max())
        if self.model.padding_side == "left":
            mask = columns >= (lengths.max() - lengths)[:, None]
        else:
            mask = columns < lengths[:, None]
        ids = np.full(mask.shape, self.model.pad_token_id or 0, dtype=np.int64)
        ids[mask] = np.concatenate([tokens.ids for tokens in batch])
        features: dict[str, Any] = {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)),
            "modality": "text",
        }
        if "token_type_ids" in self.model.model_input_names:
            features["token_type_ids"] = torch.from_numpy(self._token_types(mask))
        if (length := self.prompt_lengths[batch[0].query]) is not None:
            features["prompt_length"] = length
        return features

    def _token_types(self, mask: np.ndarray) -> np.ndarray:
        before, content, after = self.types
        if not any((*before, content, *after)):
            return np.zeros(mask.shape, dtype=np.int64)
        types = np.where(mask, content, self.model.pad_token_type_id)
        first, last = mask.argmax(axis=1), mask.shape[1] - mask[:, ::-1].argmax(axis=1)
        rows = np.arange(len(mask))
        for place, kind in enumerate(before):
            types[rows, first + place] = kind
        for place, kind in enumerate(after):
            types[rows, last - len(after) + place] = kind
        return types.astype(np.int64)


class PlainTokenizer(FastTokenizer):
    """The tokenizer of a plain model, read from its file."""

    def __init__(self, folder: Path, window: int, prompts: tuple[str, str]) -> None:
        from tokenizers import Tokenizer

        super().__init__(Tokenizer.from_file(str(folder / "tokenizer.json")), window, prompts, True)

    def collate(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return int32 "ids" [texts, longest], zeros after a text, and its length in "lengths" [texts]."""
        lengths = np.array([len(tokens.ids) for tokens in batch], np.int32)
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int32)
        ids[mask] = np.concatenate([tokens.ids for tokens in batch])
        return {"ids": ids, "lengths": lengths}

    def features(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return what the library's model takes: int64 tensors [texts, tokens]."""
        import torch

        found = self.collate(batch)
        mask = np.arange(found["ids"].shape[1]) < found["lengths"][:, None]
        features = {"input_ids": found["ids"], "attention_mask": mask}
        return {name: torch.from_numpy(value.astype(np.int64)) for name, value in features.items()}


class StaticTokenizer(FastTokenizer):
    """The tokenizer of a static model: no special tokens, no padding."""

    @classmethod
    def of(cls, folder: Path, window: int, prompts: tuple[str, str]) -> Self:
        """Read the tokenizer of a model's folder."""
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")), window, prompts, special=False)

    @classmethod
    def of_module(cls, module: Any, window: int, prompts: tuple[str, str]) -> Self:
        """Copy the tokenizer of a `StaticEmbedding` module."""
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_str(module.tokenizer.to_str()), window, prompts, special=False)

    def collate(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return all ids in one row and where each text begins in it."""
        import torch

        lengths = np.array([len(tokens.ids) for tokens in batch], dtype=np.int64)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)[:-1]])
        ids = np.concatenate([tokens.ids for tokens in batch])
        # EmbeddingBag wants both of one type.
        return {"input_ids": torch.from_numpy(ids.astype(np.int64)), "offsets": torch.from_numpy(offsets)}

"""Tokens of pairs: each distinct text is tokenised once, and joined to its partners in a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from ...indexer.encoder.model_folder import growth, in_one_line
from ...indexer.encoder.tokenizer import UNREADABLE, FastTokenizer, Tokens

Cut = Literal["first", "longest"]
CUTS: tuple[Cut, ...] = get_args(Cut)


def cut_to_fit(first: int, second: int, room: int, cut: Cut) -> tuple[int, int]:
    """Return how many tokens of either text to keep, so that both fit into `room` tokens.

    "first" cuts the first text alone, as zero-shot pipelines do. Where the second leaves no room for a token of it,
    the second is cut to half the room: a pair never fails. "longest" evens both out, as cross-encoders do for
    queries and passages (`longest_first`).
    """
    if first + second <= room:
        return first, second
    if cut == "longest":
        return _even(first, second, room)
    second = second if second < room else room // 2
    return min(first, room - second), second


def _even(first: int, second: int, room: int) -> tuple[int, int]:
    """Cut the longer one until both are of one length, then both; an odd token stays with the longer."""
    shorter, longer = min(first, second), max(first, second)
    shorter, longer = (shorter, room - shorter) if shorter <= room // 2 else (room // 2, room - room // 2)
    return (longer, shorter) if first > second else (shorter, longer)


PROBES = (
    ("The battery died after a week.", "a refund"),
    ("Ünïcödé, 数字: 1,000 €?", "This example is “delivery”."),
    ("one", "Two  spaces, and\ta tab; then an END."),
)
"""Pairs over which a template found by looking is compared with the tokenizer itself."""


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """How a pair is put together.

    Attributes:
        before: Ids of the special tokens before the first text.
        between: Those between the texts.
        after: Those after the second text.
        types: Token types of the five parts, the special ones' token by token (XLNet ends a pair with two types), each
            text's as one.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]]

    @property
    def special(self) -> int:
        """How many special tokens a pair gets."""
        return len(self.before) + len(self.between) + len(self.after)

    def ids(self, first: ArrayLike, second: ArrayLike) -> np.ndarray:
        """Return int64 [length], the ids of a pair."""
        return np.concatenate([self.before, first, self.between, second, self.after]).astype(np.int64)

    def token_types(self, first: int, second: int) -> np.ndarray:
        """Return int64 [length], the token types of a pair whose texts have these numbers of tokens."""
        before, one, between, two, after = self.types
        return np.array([*before, *[one] * first, *between, *[two] * second, *after], np.int64)


def find_template(tokenizer: Any) -> PairTemplate | None:
    """Look how `tokenizer` joins a pair; None where texts tokenised apart do not give what it gives for pairs."""
    first, second = (alone(tokenizer, text) for text in PROBES[0])
    joined, types = _joined(tokenizer, *PROBES[0])
    start = _find(joined, first, 0)
    middle = _find(joined, second, start + len(first)) if start >= 0 else -1
    if middle < 0:
        return None
    ends = (0, start, start + len(first), middle, middle + len(second), len(joined))
    parts = [slice(*ends[n : n + 2]) for n in range(5)]
    kinds = [tuple(types[part]) for part in parts]
    template = PairTemplate(
        *(tuple(joined[part]) for part in parts[::2]), types=(kinds[0], kinds[1][0], kinds[2], kinds[3][0], kinds[4])
    )
    return template if all(_agrees(template, tokenizer, *probe) for probe in PROBES) else None


def alone(tokenizer: Any, text: str) -> list[int]:
    """Return the ids of a text without special tokens."""
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _joined(tokenizer: Any, first: str, second: str) -> tuple[list[int], list[int]]:
    found = tokenizer(first, second, return_token_type_ids=True)
    return list(found["input_ids"]), list(found["token_type_ids"])


def _find(ids: list[int], part: list[int], start: int) -> int:
    places = range(start, len(ids) - len(part) + 1)
    return next((place for place in places if part and ids[place : place + len(part)] == part), -1)


def _agrees(template: PairTemplate, tokenizer: Any, first: str, second: str) -> bool:
    one, two = alone(tokenizer, first), alone(tokenizer, second)
    ids, types = _joined(tokenizer, first, second)
    return template.ids(one, two).tolist() == ids and template.token_types(len(one), len(two)).tolist() == types


Pair = tuple[str, str]


class TokenPairs(Protocol):
    """Tokenised pairs of texts."""

    lengths: np.ndarray
    """int64 [n]: tokens of each pair, special ones included, cut to the window."""

    def features(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids and the token types of one pair: int64 [length] each."""
        ...


class JoinedPairs:
    """Texts tokenised apart and joined by the tokenizer's template."""

    def __init__(
        self, texts: Sequence[Tokens], places: np.ndarray, template: PairTemplate, window: int, cut: Cut, left: bool
    ) -> None:
        """Take the distinct texts, and int64 [n, 2] which of them each pair holds."""
        self._texts = texts
        self._places = places
        self._template = template
        self._left = left
        sizes = np.fromiter((text.total for text in texts), np.int64, len(texts))[places].reshape(-1, 2)
        room = window - template.special
        for row in np.flatnonzero(sizes.sum(axis=1) > room):
            sizes[row] = cut_to_fit(int(sizes[row, 0]), int(sizes[row, 1]), room, cut)
        self._sizes = sizes
        self.lengths = sizes.sum(axis=1) + template.special

    def features(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids and the token types of one pair."""
        sizes = self._sizes[place].tolist()
        first, second = (self._part(*each) for each in zip(self._places[place], sizes, strict=True))
        return self._template.ids(first, second), self._template.token_types(*sizes)

    def _part(self, text: int, size: int) -> np.ndarray:
        ids = self._texts[text].ids
        return ids[len(ids) - size :] if self._left else ids[:size]


class PlainPairs:
    """Pairs as the tokenizer itself makes them."""

    def __init__(self, found: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        self._found = found
        self.lengths = np.fromiter((len(ids) for ids, _ in found), np.int64, len(found))

    def features(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids and the token types of one pair."""
        return self._found[place]


class TokenizerFile:
    """A tokenizer.json with as much of transformers' interface as pairs need: padded and cut on the right."""

    is_fast = True
    truncation_side = padding_side = "right"
    pad_token_type_id = 0

    def __init__(self, file: Path, pad_token_id: int, model_input_names: Sequence[str]) -> None:
        """Read a file. The other two are named as transformers names them: "input_ids", "token_type_ids" …."""
        from tokenizers import Tokenizer

        self.backend_tokenizer = Tokenizer.from_file(str(file))
        self.backend_tokenizer.no_truncation()
        self.backend_tokenizer.no_padding()
        self.pad_token_id = pad_token_id
        self.model_input_names = list(model_input_names)

    def __call__(
        self,
        first: str,
        second: str | None = None,
        *,
        add_special_tokens: bool = True,
        return_token_type_ids: bool = True,
    ) -> dict[str, list[int]]:
        """Return "input_ids" and "token_type_ids" of a text or a pair."""
        found = self.backend_tokenizer.encode(first, second, add_special_tokens=add_special_tokens)
        return {"input_ids": found.ids, "token_type_ids": found.type_ids}


class PairTokenizer:
    """Turns pairs into tokens with a model's tokenizer.

    Where the tokenizer joins two texts by a template, each distinct text is tokenised once; special tokens that are
    in a text as plain words are then read as words. Elsewhere every pair goes through the tokenizer.
    """

    def __init__(self, tokenizer: Any, window: int) -> None:
        """Take a transformers tokenizer, or a `TokenizerFile`, and the most tokens of a pair."""
        self.tokenizer = tokenizer
        self.window = window
        self.left = tokenizer.truncation_side == "left"
        if getattr(tokenizer, "is_fast", False):
            growth(tokenizer.backend_tokenizer)
        self.template = find_template(tokenizer) if getattr(tokenizer, "is_fast", False) else None
        self._fast = self._own_backend() if self.template else None

    def _own_backend(self) -> FastTokenizer:
        from tokenizers import Tokenizer

        backend = Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())
        backend.encode_special_tokens = True
        fast = FastTokenizer(backend, self.window, ("", ""), special=False)
        fast.left = self.left
        return fast

    def tokenize(self, pairs: Sequence[Pair], cut: Cut) -> TokenPairs:
        """Tokenise pairs, cut by `cut` to the window."""
        if self.template is None or self._fast is None:
            with in_one_line(UNREADABLE):
                return PlainPairs([self._plain(first, second, cut) for first, second in pairs])
        numbers: dict[str, int] = {}
        places = [numbers.setdefault(text, len(numbers)) for pair in pairs for text in pair]
        texts = self._fast.tokenize(list(numbers), False)
        return JoinedPairs(texts, np.array(places, np.int64).reshape(-1, 2), self.template, self.window, cut, self.left)

    def _plain(self, first: str, second: str, cut: Cut) -> tuple[np.ndarray, np.ndarray]:
        strategy = "only_first" if cut == "first" else "longest_first"
        room = self.window - self.tokenizer.num_special_tokens_to_add(pair=True)
        if cut == "first" and len(tokens := alone(self.tokenizer, second)) >= room:
            second = self.tokenizer.decode(tokens[: room // 2])
            strategy = "longest_first"  # what was decoded may have another number of tokens
        options: dict[str, Any] = {"truncation": strategy, "max_length": self.window, "return_token_type_ids": True}
        found = self.tokenizer(first, second, **options)
        return np.array(found["input_ids"], np.int64), np.array(found["token_type_ids"], np.int64)

    def collate(self, pairs: TokenPairs, batch: np.ndarray) -> dict[str, Any]:
        """Return what `arrays` does, as tensors."""
        import torch

        return {name: torch.from_numpy(values) for name, values in self.arrays(pairs, batch).items()}

    def arrays(self, pairs: TokenPairs, batch: np.ndarray) -> dict[str, np.ndarray]:
        """Return ids, attention mask and, where the model takes them, token types: int64 [pairs, longest]."""
        rows = [pairs.features(place) for place in batch.tolist()]
        shape = len(rows), int(pairs.lengths[batch].max())
        ids = np.full(shape, self.tokenizer.pad_token_id or 0, np.int64)
        types = np.full(shape, self.tokenizer.pad_token_type_id, np.int64)
        mask = np.zeros(shape, np.int64)
        for row, (found, kinds) in enumerate(rows):
            start = shape[1] - len(found) if self.tokenizer.padding_side == "left" else 0
            there = slice(start, start + len(found))
            ids[row, there], types[row, there], mask[row, there] = found, kinds, 1
        features = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self.tokenizer.model_input_names:
            features["token_type_ids"] = types
        return features

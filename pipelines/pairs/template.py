"""How a tokenizer joins two texts: the special tokens before, between and after them, and the token types."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

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
        """Return int64 [length], the token types of a pair whose texts have so many tokens."""
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

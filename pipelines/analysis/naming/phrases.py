"""Phrases of texts: what may name a group, counted by stem and shown in the form that people write most often."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .words import BREAK, STOP, Reader, Token

LENGTH = 1_000
"""Characters of a text that names are made from."""
WORDS, CHARACTERS = 3, 4
"""Words of a phrase, at most; characters of one in a script without spaces."""

PARTED = re.compile(r"[- ’']")
"""What people leave out of a word, or not: "top-up" and "topup"."""
_PARTS = re.compile(r"[-&']")
LINKS = frozenset(["of", "de", "du", "des", "del", "della", "di", "do", "da", "dos", "das", "von", "der", "van"])
"""Stop words that may stand inside a phrase: "proof of identity"."""

Key = tuple[str, ...]
"""The stems of a phrase."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase that may name a group.

    Attributes:
        text: As people write it most often.
        stems: What readers match, no stop words among them.
    """

    text: str
    stems: frozenset[str]

    def repeats(self, others: Iterable[str]) -> bool:
        """Return whether a stem is another form of one of these, or a part of it: "refund" and "refunding"."""
        return any(alike(one, other) for one in self.stems for other in others)


@lru_cache(maxsize=100_000)
def alike(one: str, other: str) -> bool:
    """Return whether two stems, or parts of them around a hyphen, are the same or begin alike."""
    return PARTED.sub("", one) == PARTED.sub("", other) or any(
        _begin_alike(first, second) for first in _PARTS.split(one) for second in _PARTS.split(other)
    )


def _begin_alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) >= 4 and long[: max(4, len(short) - 2)] == short[: max(4, len(short) - 2)])


class ReadTexts:
    """Texts cut into tokens, once for all that asks.

    Args:
        texts: As they are stored.
        languages: ISO 639-1 codes, the commonest first.
        whole: bool [texts]: which are read to their end, and not for `LENGTH` characters.
    """

    def __init__(self, texts: Sequence[str], languages: Sequence[str], whole: np.ndarray) -> None:
        self.reader = Reader(languages)
        self.tokens = [
            self.reader.tokens(text if entire else text[:LENGTH])
            for text, entire in zip(texts, whole.tolist(), strict=True)
        ]

    def stems(self, row: int) -> Counter[str]:
        """Return the stems of a text, with their counts."""
        return Counter(stems_of(self.tokens[row]))

    def keys(self, row: int) -> set[Key]:
        """Return the phrases of a text."""
        return {key for key, _ in _phrases(self.tokens[row])}

    def phrases(self, rows: Iterable[int], wanted: set[Key]) -> dict[Key, Phrase]:
        """Return phrases in the form that these texts write most often."""
        seen: defaultdict[Key, Counter[str]] = defaultdict(Counter)
        unsure: defaultdict[Key, Counter[str]] = defaultdict(Counter)
        inside: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            for token in self.tokens[row]:
                if not token.first:
                    inside[token.stem][token.form] += 1
            for key, span in _phrases(self.tokens[row]):
                if key in wanted:
                    (unsure if span[0].first else seen)[key][_written(span)] += 1
        forms = {key: _commonest(seen[key]) or _lowered(_commonest(unsure[key]), key, inside) for key in wanted}
        return {key: Phrase(form, frozenset(stems_of(self.reader.tokens(form)))) for key, form in forms.items()}


def stems_of(tokens: Sequence[Token]) -> list[str]:
    """Return the stems of words, and pairs of the characters of scripts without spaces, without stop words."""
    found: list[str] = []
    before: Token | None = None
    for token in tokens:
        if token.part:
            if before is not None and before.part:
                found.append(before.stem + token.stem)
        elif token.stem not in (STOP, BREAK):
            found.append(token.stem)
        before = token
    return found


def _phrases(tokens: Sequence[Token]) -> Iterable[tuple[Key, Sequence[Token]]]:
    """Yield the phrases of a text with their tokens: neighbouring words that begin and end with a telling one."""
    for start, first in enumerate(tokens):
        if first.stem == STOP or first.stem == BREAK:
            continue
        if not first.part:
            yield (first.stem,), tokens[start : start + 1]
        key = [first.stem]
        for end in range(start + 1, min(start + (CHARACTERS if first.part else WORDS), len(tokens))):
            token = tokens[end]
            linked = token.stem != STOP or (token.form.lower() in LINKS and token.form not in (key[-1], ""))
            if token.stem == BREAK or token.tight != first.tight or not linked:
                break
            key.append(token.stem)
            if token.stem != STOP and token.stem not in key[:-1]:
                yield tuple(key), tokens[start : end + 1]


def _written(span: Sequence[Token]) -> str:
    return ("" if span[0].tight else " ").join(token.form for token in span)


def _commonest(forms: Counter[str]) -> str:
    return min(forms, key=lambda form: (-forms[form], form), default="")


def _lowered(form: str, key: Key, inside: Mapping[str, Counter[str]]) -> str:
    """Return a form that is only known from where capital letters say nothing.

    The words stay, so that the phrase is one of the texts'. Their first letters are as they are inside of sentences.
    """
    words = form.split(" ")
    if len(words) != len(key):
        return form
    return " ".join(_inside(word, inside.get(stem, Counter())) for word, stem in zip(words, key, strict=True))


def _inside(word: str, forms: Counter[str]) -> str:
    """Return a word as it, or else another form of it, is written inside of sentences; without one, in lower case."""
    same = Counter({form: many for form, many in forms.items() if form.lower() == word.lower()})
    if same:
        return _commonest(same)
    keeps = sum(map(str.isupper, word)) > 1 or _commonest(forms)[:1].isupper()
    return word if keeps else word.lower()


def counts_by_group(keys: Sequence[set[Key]], groups: np.ndarray, number: int) -> list[Counter[Key]]:
    """Return in how many texts of each group a phrase occurs.

    Args:
        keys: The phrases of each text.
        groups: int64 [texts], 0 to number - 1.
        number: Of groups.
    """
    found: list[Counter[Key]] = [Counter() for _ in range(number)]
    for some, group in zip(keys, groups.tolist(), strict=True):
        found[group].update(some)
    return found

"""Phrases of texts, in the form that people write most often, and those that may name a group: its candidates."""

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


CANDIDATES, FEWEST, IN_ALL = 40, 6, 2_000
"""Phrases of a group among which its name is chosen: at most, at least, and of all groups together, about."""
ENOUGH = 50
"""Texts from which on a phrase must occur in two of them."""
TELLING = 0.02
"""A candidate tells at least this share of what the best one tells."""
WHOLE = 0.7
"""A phrase that a longer one holds in this share of its texts is a piece of it."""


def candidates(
    counts: Sequence[Counter[Key]], sizes: np.ndarray, parents: Sequence[int] | None = None
) -> list[list[Key]]:
    """Return the phrases that tell most about each group, the most telling first.

    A phrase tells what the Kullback-Leibler divergence says between its share of the group's texts and the mean share
    of the other groups, each counting the same whatever its size; with parents, of all others and of the siblings,
    whichever is larger.

    Args:
        counts: Of each group: in how many of its texts a phrase occurs.
        sizes: int64 [groups], texts of each.
        parents: The parent of each group, or None.
    """
    least = 2 if sizes.sum() >= ENOUGH else 1
    number = len(counts)
    most = int(np.clip(IN_ALL // max(number, 1), FEWEST, CANDIDATES))
    shares: Counter[Key] = Counter()
    for own, size in zip(counts, sizes.tolist(), strict=True):
        for key, count in own.items():
            shares[key] += count / max(size, 1)
    of_parent = _by_parent(counts, sizes, parents)
    found = []
    for group, (own, size) in enumerate(zip(counts, sizes.tolist(), strict=True)):
        keys = [key for key, count in own.items() if count >= min(least, size)]
        inside = np.array([own[key] / max(size, 1) for key in keys])
        outside = np.array([shares[key] for key in keys]) - inside
        outside /= max(number - 1, 1)
        if parents is not None:
            siblings, count = of_parent[parents[group]]
            near = np.array([siblings[key] for key in keys]) - inside
            outside = np.maximum(outside, near / max(count - 1, 1))
        found.append(_best(keys, own, _divergence(inside, outside, size), most))
    return found


def _by_parent(
    counts: Sequence[Counter[Key]], sizes: np.ndarray, parents: Sequence[int] | None
) -> dict[int, tuple[Counter[Key], int]]:
    """Return the sum of the shares that the groups of each parent have of a phrase, and how many groups it has."""
    found: dict[int, tuple[Counter[Key], int]] = {}
    for parent, own, size in zip(parents or (), counts, sizes.tolist(), strict=False):
        shares, number = found.get(parent, (Counter(), 0))
        for key, count in own.items():
            shares[key] += count / max(size, 1)
        found[parent] = shares, number + 1
    return found


def _divergence(inside: np.ndarray, outside: np.ndarray, size: int) -> np.ndarray:
    """Return float [phrases], 0 for those that are no more frequent inside than outside."""
    p = np.clip(inside, 1e-9, 1 - 1e-9)
    q = np.clip(outside + 0.5 / max(size, 1), 1e-9, 1 - 1e-9)
    found = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return np.where(p > q, np.round(found, 9), 0)


def _best(keys: list[Key], own: Counter[Key], scores: np.ndarray, most: int) -> list[Key]:
    """Return the keys of the highest scores, without pieces of longer phrases."""
    order = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda place: (-scores[place], keys[place]))
    best = scores[order[0]] if order else 0
    ranked = [keys[place] for place in order[: 6 * most] if scores[place] >= TELLING * best]
    return [key for key in ranked if not any(_piece(key, other, own) for other in ranked)][:most]


def _piece(key: Key, other: Key, own: Counter[Key]) -> bool:
    """Return whether a phrase occurs mostly as a part of a longer one."""
    longer = len(other) - len(key)
    if longer <= 0 or own[other] < WHOLE * own[key]:
        return False
    return any(other[start : start + len(key)] == key for start in range(longer + 1))

"""Texts that are too short, empty of meaning, cut off, in another language, or made of sentences that many have."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ...indexer.languages import detect
from ...indexer.non_answers import non_answer

Finding = tuple[int, float, str]
"""Place of a text, a score from 0 to 1 (higher is worse), and why."""

FEWEST_WORDS = 3
_WORD = re.compile(r"[^\W\d_]+")
# Scripts without spaces: two characters are about a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def short(texts: Sequence[str]) -> Iterator[Finding]:
    """Yield the texts of fewer than three words; numbers and signs are no words."""
    for place, text in enumerate(texts):
        if (words := _words(text)) < FEWEST_WORDS:
            yield place, 1 - words / FEWEST_WORDS, "no word" if not words else f"{words} word{'s' * (words > 1)}"


def _words(text: str) -> int:
    unspaced = len(_UNSPACED.findall(text[:100]))
    return unspaced // 2 if unspaced > 1 else len(_WORD.findall(text))


def empty(texts: Sequence[str], titles: Sequence[str]) -> Iterator[Finding]:
    """Yield the texts that say nothing, such as "n/a" or "-", unless their titles say something."""
    for place, (text, title) in enumerate(zip(texts, titles, strict=True)):
        if why := non_answer(text, title):
            yield place, 1.0, why


SHORTEST_LIMIT = 80
"""Characters below which a common greatest length is taken for chance."""
AT_LIMIT = 3


NEAR_LIMIT = 0.9


def cut(texts: Sequence[str]) -> Iterator[Finding]:
    """Yield the texts that end at the greatest length, if several do, or with an ellipsis near that length.

    People end shorter texts with an ellipsis too, without anything being cut.
    """
    lengths = Counter(map(len, texts))
    longest = max(lengths, default=0)
    limited = longest >= SHORTEST_LIMIT and lengths[longest] >= AT_LIMIT
    for place, text in enumerate(texts):
        if limited and len(text) == longest:
            yield place, 1.0, f"ends at {longest:,} characters, as {lengths[longest] - 1:,} others do"
        elif text.rstrip().endswith(("[…]", "[...]")) or (
            len(text) >= NEAR_LIMIT * longest and text.rstrip().endswith(("…", "..."))
        ):
            yield place, 0.5, "ends with an ellipsis"


ENOUGH_LETTERS = 100
"""Letters of a text below which its language is not judged: names alone would decide."""
READ = 600


def foreign(texts: Sequence[str], stated: Sequence[str | None], usual: str | None) -> Iterator[Finding]:
    """Yield the texts in another language than the usual one.

    Args:
        texts: The texts.
        stated: The language that a column gives each text, which decides where there is one.
        usual: The collection's language; None takes the one that most texts are in.
    """
    found = [code or _language(text) for text, code in zip(texts, stated, strict=True)]
    usual = usual or max(Counter(code for code in found if code).items(), key=lambda one: one[1], default=(None, 0))[0]
    for place, code in enumerate(found):
        if code and code != usual:
            yield place, 1.0, code


def _language(text: str) -> str | None:
    beginning = text[:READ]
    letters = sum(map(str.isalpha, beginning)) + 2 * len(_UNSPACED.findall(beginning))
    return detect([beginning]) if letters >= ENOUGH_LETTERS else None


_ENDS = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")
SENTENCE_WORDS = 4
LEAST_TEXTS, LEAST_SHARE = 5, 0.002
"""A sentence is boilerplate if at least this many texts have it, and at least this share of all texts."""
PART = 0.1
"""A text is reported if at least this share of its words is in such sentences."""


def boilerplate(texts: Sequence[str]) -> Iterator[Finding]:
    """Yield the texts with sentences or lines that many different texts have; the score is their share of the words."""
    sentences = [[" ".join(part.split()) for part in _ENDS.split(text)] for text in texts]
    counts: Counter[str] = Counter()
    for text in {tuple(parts) for parts in sentences}:
        # Copies of a whole text are duplicates, and count once.
        counts.update({part for part in text if len(part.split()) >= SENTENCE_WORDS} if len(text) > 1 else ())
    least = max(LEAST_TEXTS, LEAST_SHARE * len(texts))
    common = {part for part, count in counts.items() if count >= least}
    for place, parts in enumerate(sentences):
        found = [part for part in parts if part in common]
        if found and len(parts) > 1:
            share = sum(len(part.split()) for part in found) / sum(len(part.split()) for part in parts)
            if share >= PART:
                first = max(found, key=lambda part: (counts[part], part))
                yield place, share, f"{counts[first]:,} texts have {first[:80]!r}"

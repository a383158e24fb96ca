"""Terms: how often each occurs in each text, and which set groups apart (c-TF-IDF, Grootendorst, arXiv:2203.05794)."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ...indexer.lexical.analysis import normalised, with_stop_words
from .stop_words import ENGLISH_STOP_WORDS, more_stop_words, without_elision


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each term occurs in each text, or how much it weighs in each group; zeros are left out.

    Attributes:
        starts: int64 [texts + 1], where the numbers of each text start and the last ones end.
        columns: int [m], the place of each number's term.
        values: int or float [m], the numbers.
        terms: The terms, words and pairs of words.
    """

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    terms: np.ndarray

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[int, int]], terms: Iterable[str]) -> "Counts":
        """Return the counts of texts, each a mapping from the place of a term to how often it occurs."""
        columns, values, starts = array("q"), array("q"), array("q", [0])
        for row in rows:
            columns.extend(row)
            values.extend(row.values())
            starts.append(len(columns))
        found = [np.array(part, np.int64) for part in (starts, columns, values)]
        return cls(found[0], found[1], found[2], np.array(list(terms), object))

    @property
    def rows(self) -> np.ndarray:
        """The text of each number, int64 [m]."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def totals(self) -> np.ndarray:
        """Return the sum of each term's numbers, float64 [terms]."""
        return np.bincount(self.columns, weights=self.values, minlength=len(self.terms))

    def sums(self) -> np.ndarray:
        """Return the sum of each text's numbers, float64 [texts]."""
        return np.bincount(self.rows, weights=self.values, minlength=len(self.starts) - 1)

    def of(self, texts: np.ndarray) -> "Counts":
        """Return the counts of these texts, int64, in their order."""
        sizes = np.diff(self.starts)[texts]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[texts] - starts[:-1], sizes) + np.arange(starts[-1])
        return Counts(starts, self.columns[places], self.values[places], self.terms)

    def where(self, kept: np.ndarray) -> "Counts":
        """Return the counts without the numbers for which bool [m] is false."""
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return Counts(starts, self.columns[kept], self.values[kept], self.terms)

    def grouped(self, groups: np.ndarray, number: int) -> "Counts":
        """Return the counts of groups: the sums over the texts of each, int64 [texts], from 0 to number - 1."""
        width = max(len(self.terms), 1)
        cells, place = np.unique(groups[self.rows] * width + self.columns, return_inverse=True)
        starts = np.searchsorted(cells, np.arange(number + 1) * width)
        return Counts(starts, cells % width, np.bincount(place, weights=self.values), self.terms)

    def alphabetical(self, least: int = 1) -> "Counts":
        """Return the counts with the terms in order, without those that fewer than `least` texts have."""
        known = np.flatnonzero(np.bincount(self.columns, minlength=len(self.terms)) >= least)
        known = known[np.argsort(self.terms[known])]
        place = np.full(len(self.terms), -1)
        place[known] = np.arange(len(known))
        found = replace(self, columns=place[self.columns], terms=self.terms[known]).where(place[self.columns] >= 0)
        order = np.lexsort((found.columns, found.rows))
        return replace(found, columns=found.columns[order], values=found.values[order])


LENGTH = 2_000
"""Characters of a text that are read for terms."""
ENOUGH = 50
"""Texts from which on a term must occur in two of them."""
KNOWN = 100_000
"""Different words whose parts are cached: most words of a corpus come again."""
LIFT = 2
"""How many times more frequent a distinctive term is in its group than in the others."""

_WORD = r"[\p{L}\p{M}\p{N}]+(?:[-'’][\p{L}\p{M}\p{N}]+)*"
_ADDRESS = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+|(?<!\S)\S{1,300}@\S{1,300}\.\w+")
# With bounds: a text of a stranger may be one long word.
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\u0e00-\u0eff]+")


def count_terms(texts: Sequence[str], languages: Sequence[str], longest: int = 2) -> Counts | None:
    """Count words and word pairs of texts, without the stop words of the given languages (ISO 639-1).

    Of 50 texts or more, only terms that two of them have are kept. Scripts that put no spaces between words give pairs
    of characters. None where no term is left.
    """
    words = tokenizer(tuple(languages))
    places: dict[str, int] = {}
    rows = (
        Counter(places.setdefault(term, len(places)) for term in _grams(words(text[:LENGTH]), longest))
        for text in texts
    )
    found = Counts.of_rows(rows, places).alphabetical(2 if len(texts) >= ENOUGH else 1)
    return found if len(found.terms) else None


@lru_cache(maxsize=8)
def tokenizer(languages: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return a function that gives the words of a text in lower case, without stop words, numbers and addresses."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.regex(_WORD)).filter(Filter.lowercase())
    analyzer = with_stop_words(builder, languages).build()
    stopped = more_stop_words(languages) | (ENGLISH_STOP_WORDS if "en" in languages else frozenset())

    @lru_cache(maxsize=KNOWN)
    def kept(word: str) -> tuple[str, ...]:
        word = word.replace("’", "'")
        return () if word in stopped else tuple(part for part in _parts(word) if part not in stopped)

    def cleaned(text: str) -> str:
        return without_elision(normalised(without_addresses(text)), languages)

    def words(text: str) -> list[str]:
        return [part for word in analyzer.analyze(cleaned(text)) for part in kept(word)]

    return words


def without_addresses(text: str, instead: str = " ") -> str:
    """Return a text without its web and e-mail addresses: names of people and sites are not what it is about."""
    return _ADDRESS.sub(instead, text) if "://" in text or "@" in text or "www." in text else text


def _grams(words: list[str], longest: int) -> list[str]:
    """Return the words and, up to `longest`, the sequences of them."""
    sizes = range(2, longest + 1)
    return words + [" ".join(words[at : at + size]) for size in sizes for at in range(len(words) - size + 1)]


def _parts(word: str) -> list[str]:
    """Return a word unless it is a number or a letter; of a script without spaces its overlapping pairs.

    Pairs of hiragana alone are left out: they are mostly endings and particles.
    """
    if _RUN.search(word):
        pairs = ("".join(pair) for run in _RUN.findall(word) for pair in (pairwise(run) if len(run) > 1 else [run]))
        return [pair for pair in pairs if not _HIRAGANA.fullmatch(pair)]
    letters = sum(character.isalpha() for character in word)
    return [word] if letters >= 2 else []


def weights(counts: Counts, groups: np.ndarray, number: int) -> Counts:
    """Return the c-TF-IDF weights of the terms of each group, higher tells more.

    A term's share of its group's terms, times log(1 + A / f): A is the mean number of terms of a group, f how often the
    term occurs in all.

    Args:
        counts: Of n texts.
        groups: int64 [n], 0 to number - 1.
        number: Of groups.
    """
    by_group = counts.grouped(groups, number)
    sums = by_group.sums()
    inverse = np.log1p(sums.mean() / np.maximum(by_group.totals(), 1))
    shares = by_group.values * (1 / np.maximum(sums, 1))[by_group.rows]
    return replace(by_group, values=shares * inverse[by_group.columns])


def distinctive(weighted: Counts, counts: Counts, groups: np.ndarray) -> Counts:
    """Return the c-TF-IDF weights of terms that tell a group from the others.

    c-TF-IDF alone leaves room for words that are frequent everywhere and on no list of stop words ("new" in news). A
    term keeps its weight in a group where it is at least twice as frequent as in the others together; a group without
    such a term keeps all.

    Args:
        weighted: As `weights` gives them.
        counts: Of n texts.
        groups: int64 [n], 0 to number - 1.
    """
    own = counts.grouped(groups, len(weighted.starts) - 1)
    rows, every, sums = own.rows, counts.totals(), own.sums()
    inside = own.values / np.maximum(sums, 1)[rows]
    outside = (every[own.columns] - own.values) / np.maximum(every.sum() - sums, 1)[rows]
    kept = inside >= LIFT * outside
    without = np.bincount(rows, weights=kept, minlength=len(sums)) == 0
    return weighted.where(kept | without[rows])


def best_terms(weighted: Counts, most: int = 10) -> list[list[tuple[str, float]]]:
    """Return each group's terms of most weight, without those whose words a better one already has.

    Of equal weight, words come before pairs of words, then by name.
    """
    found, terms = [], weighted.terms
    words = np.array([term.count(" ") for term in terms], np.int64)
    for start, end in pairwise(weighted.starts.tolist()):
        columns, values = weighted.columns[start:end], weighted.values[start:end]
        order = np.lexsort((terms[columns], words[columns], -values))[: 5 * most]
        found.append(_unlike([(str(terms[columns[i]]), float(values[i])) for i in order if values[i] > 0], most))
    return found


def _unlike(ranked: list[tuple[str, float]], most: int) -> list[tuple[str, float]]:
    chosen: list[tuple[str, float]] = []
    seen: set[str] = set()
    for term, weight in ranked:
        words = set(term.split())
        if not words <= seen and len(chosen) < most:
            chosen.append((term, round(weight, 6)))
            seen |= words
    return chosen


KEPT = 20
"""Terms of a topic that are kept."""
VOCABULARY = 50_000
"""Words that are counted, at most: the most frequent."""

Weighted = list[tuple[str, float]]
Words = Callable[[str], list[str]]
"""Takes the describing words out of a text."""


def to_arrays(counts: Counts) -> dict[str, np.ndarray]:
    """Return counts as arrays without objects, to be stored."""
    text = "\n".join(counts.terms.tolist()).encode("utf-8")
    return {
        "counts": counts.values.astype(np.int64), "counts_word": counts.columns.astype(np.int32),
        "counts_start": counts.starts.astype(np.int64), "words": np.frombuffer(text, np.uint8),
    }  # fmt: skip


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Counts:
    """Return the counts that `to_arrays` stored."""
    text = arrays["words"].tobytes().decode("utf-8")
    words = np.array(text.split("\n") if text else [], dtype=object)
    return Counts(arrays["counts_start"], arrays["counts_word"], arrays["counts"], words)


def terms_of(counts: Counts, groups: np.ndarray, number: int, most: int = KEPT) -> list[Weighted]:
    """Return the distinctive terms of groups of rows with their c-TF-IDF weights, the heaviest first.

    Args:
        counts: Words by row.
        groups: int64 [rows], the group of each, -1 for rows to be left out.
        number: Of groups.
        most: Terms of a group, at most.
    """
    inside = np.flatnonzero(groups >= 0)
    if not number or not len(counts.terms):
        return [[] for _ in range(number)]
    some = counts.of(inside)
    return best_terms(distinctive(weights(some, groups[inside], number), some, groups[inside]), most)


def topic_name(terms: Iterable[str], count: int = 3) -> str:
    """Return the first terms that say something new: no second form of a word that is named already."""
    chosen: list[str] = []
    for term in terms:
        if len(chosen) == count:
            break
        if not any(_alike(word, other) for word in term.split() for name in chosen for other in name.split()):
            chosen.append(term)
    return ", ".join(chosen)


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    common = max(4, len(short) - 2)
    return short == long or (len(short) >= 4 and long[:common] == short[:common])

"""The terms that set groups of texts apart: class-based TF-IDF (Grootendorst, arXiv:2203.05794)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...indexer.lexical.analysis import NO_STOP_WORDS, STEMMERS, normalised

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LENGTH = 2_000
"""Characters of a text that are read for terms."""
ENOUGH = 50
"""Texts from which on a term must occur in two of them."""
KNOWN = 100_000
"""Different words whose parts are cached: most words of a corpus come again."""
LIFT = 2
"""How many times more frequent a distinctive term is in its group than in the others."""

_WORD = r"[\p{L}\p{M}\p{N}]+(?:[-'’][\p{L}\p{M}\p{N}]+)*"
_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\u0e00-\u0eff]+")
# What the list of scikit-learn lacks: halves of contractions, and what mails and web pages leave behind.
_LACKING = (
    "don't didn't doesn't isn't wasn't aren't can't couldn't wouldn't shouldn't hasn't haven't won't it's i'm i've i'd "
    "you're that's there's let's they're we're he's she's what's don didn doesn isn wasn aren couldn wouldn shouldn "
    "ve ll re im dont just like does did doing amp nbsp quot http https www com"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each term occurs.

    Attributes:
        matrix: Sparse int [texts, terms].
        terms: The terms, words and pairs of words.
    """

    matrix: "csr_matrix"
    terms: np.ndarray


def count_terms(texts: Sequence[str], languages: Sequence[str], longest: int = 2) -> Counts | None:
    """Count words and word pairs of texts, without the stop words of the given languages (ISO 639-1).

    Scripts that put no spaces between words give pairs of characters. None where no term is left.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    words = tokenizer(tuple(languages))

    def analyse(text: str) -> list[str]:
        return _grams(words(text[:LENGTH]), longest)

    vectorizer = CountVectorizer(analyzer=cast(Any, analyse), min_df=2 if len(texts) >= ENOUGH else 1)
    try:
        matrix: Any = vectorizer.fit_transform(texts)
    except ValueError:  # an empty vocabulary: only stop words and numbers
        return None
    return Counts(matrix, vectorizer.get_feature_names_out())


@lru_cache(maxsize=8)
def tokenizer(languages: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return a function that gives the words of a text in lower case, without stop words and numbers."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.regex(_WORD)).filter(Filter.lowercase())
    for language in languages:
        if language in STEMMERS and language not in NO_STOP_WORDS:
            builder = builder.filter(Filter.stopword(STEMMERS[language]))
    analyzer, english = builder.build(), english_stop_words() if "en" in languages else frozenset()

    @lru_cache(maxsize=KNOWN)
    def kept(word: str) -> tuple[str, ...]:
        word = word.replace("’", "'")
        return () if word in english else tuple(_parts(word))

    def words(text: str) -> list[str]:
        return [part for word in analyzer.analyze(normalised(text)) for part in kept(word)]

    return words


def _grams(words: list[str], longest: int) -> list[str]:
    """Return the words and, up to `longest`, the sequences of them."""
    sizes = range(2, longest + 1)
    return words + [" ".join(words[at : at + size]) for size in sizes for at in range(len(words) - size + 1)]


def _parts(word: str) -> list[str]:
    """Return a word unless it is a number or a letter; of a script without spaces its overlapping pairs."""
    if _RUN.search(word):
        return ["".join(pair) for run in _RUN.findall(word) for pair in (pairwise(run) if len(run) > 1 else [run])]
    letters = sum(character.isalpha() for character in word)
    return [word] if letters >= 2 else []


@lru_cache(maxsize=1)
def english_stop_words() -> frozenset[str]:
    """Return English words that describe no group: scikit-learn's list, and what it lacks."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return ENGLISH_STOP_WORDS.union(_LACKING.split())


def weights(counts: Counts, groups: np.ndarray, number: int) -> "csr_matrix":
    """Return sparse float [number, terms] c-TF-IDF weights, higher tells more.

    A term's share of its group's terms, times log(1 + A / f): A is the mean number of terms of a group, f how often the
    term occurs in all.

    Args:
        counts: Of n texts.
        groups: int64 [n], 0 to number - 1.
        number: Of groups.
    """
    from scipy.sparse import csr_matrix, diags

    member = csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(number, len(groups)))
    by_group: Any = csr_matrix(member @ counts.matrix)
    totals = np.asarray(by_group.sum(axis=1)).ravel()
    often = np.asarray(by_group.sum(axis=0)).ravel()
    inverse = np.log1p(totals.mean() / np.maximum(often, 1))
    return csr_matrix(diags(1 / np.maximum(totals, 1)) @ by_group @ diags(inverse))


def distinctive(weighted: "csr_matrix", counts: Counts, groups: np.ndarray) -> "csr_matrix":
    """Return the c-TF-IDF weights, sparse float [number, terms], of terms that tell a group from the others.

    c-TF-IDF alone leaves room for words that are frequent everywhere and on no list of stop words ("said" in news). A
    term keeps its weight in a group where it is at least twice as frequent as in the others together; a group without
    such a term keeps all.

    Args:
        weighted: As `weights` gives them.
        counts: Of n texts.
        groups: int64 [n], 0 to number - 1.
    """
    from scipy.sparse import csr_matrix, vstack

    rows: list[Any] = []
    matrix: Any = counts.matrix
    every = np.asarray(matrix.sum(axis=0), np.float64).ravel()
    for number in range(cast(Any, weighted).shape[0]):
        own = np.asarray(matrix[np.flatnonzero(groups == number)].sum(axis=0), np.float64).ravel()
        inside, outside = own / max(own.sum(), 1), (every - own) / max((every - own).sum(), 1)
        whole: Any = cast(Any, weighted)[number]
        row = csr_matrix(whole.multiply(inside >= LIFT * outside))
        row.eliminate_zeros()
        rows.append(row if row.nnz else whole)
    return csr_matrix(vstack(rows))


def best_terms(weighted: "csr_matrix", terms: np.ndarray, most: int = 10) -> list[list[tuple[str, float]]]:
    """Return each group's terms of most weight, without those whose words a better one already has.

    Of equal weight, words come before pairs of words, then by name.
    """
    found = []
    rows: Any = weighted
    words = np.array([term.count(" ") for term in terms], np.int64)
    for number in range(rows.shape[0]):
        row = rows[number].tocoo()
        order = np.lexsort((terms[row.col], words[row.col], -row.data))[: 5 * most]
        found.append(_unlike([(str(terms[row.col[i]]), float(row.data[i])) for i in order if row.data[i] > 0], most))
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
    matrix = counts.matrix
    return {
        "counts": matrix.data.astype(np.int64), "counts_word": matrix.indices.astype(np.int32),
        "counts_start": matrix.indptr.astype(np.int64), "words": np.frombuffer(text, np.uint8),
    }  # fmt: skip


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Counts:
    """Return the counts that `to_arrays` stored."""
    from scipy.sparse import csr_matrix

    text = arrays["words"].tobytes().decode("utf-8")
    words = np.array(text.split("\n") if text else [], dtype=object)
    start = arrays["counts_start"]
    matrix = csr_matrix((arrays["counts"], arrays["counts_word"], start), (len(start) - 1, len(words)))
    return Counts(matrix, words)


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
    some = Counts(counts.matrix[inside], counts.terms)
    return best_terms(distinctive(weights(some, groups[inside], number), some, groups[inside]), counts.terms, most)


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

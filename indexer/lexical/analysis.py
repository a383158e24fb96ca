"""From text to terms: words folded and stemmed in their language, Chinese, Japanese and Korean as n-grams."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from ..memo import Memo

if TYPE_CHECKING:
    from tantivy import TextAnalyzer, TextAnalyzerBuilder

MAX_TERMS = 1_024
"""Distinct terms of a query that count; a longer query is cut after them."""

UNKNOWN = "und"
LONGEST_TERM = 100

# Languages with a Snowball stemmer in Tantivy, and, of these, the ones without a list of stop words.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
NO_STOP_WORDS = {"ar", "el", "ro", "ta", "tr"}

# Tantivy's English list has 33 words. These count little in ranking, and reasons and highlights leave them out.
_FURTHER = """
    i me my myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself its itself them theirs themselves what which who whom whose those am were been being have has had having do
    does did doing would should could can must shall about against between through during before after above
    below from up down out off over under again further once here when where why how all any both each few more most
    other others some nor only own same so than too very just also because until while upon within without among yet
    every either neither s t ll ve aren couldn didn doesn hadn hasn isn shouldn wasn weren wouldn
    """
ENGLISH = frozenset(_FURTHER.split())
FUNCTION_WORD = 0.15
"""How much such a word counts; other words count 1. On questions, 0.1 to 0.3 were about equally good."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[{_UNSPACED}ー々]+|[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}ー々]]+"
_ASCII_WORD = re.compile("[0-9A-Za-z]+")
# The same scripts for Python's `re`, which knows no script names.
_RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3040-\u3096\u3099-\u30fa\u30fc-\u318f"
    "\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U000323af]+"
)
_DOTTED = re.compile("\u0130|i\u0307")
_AND_THE, _LAST_H = re.compile(r"\bو(?=ال\w{3})"), re.compile(r"(?<=\w{3})ه\b")
_PREPOSITION = re.compile(r"\b(?=[بكلف])(?![بكف]ال|لل)\w{4,}")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Analyzer:
    """Turns texts of one language into the terms that are indexed and searched.

    Words are lowercased, stemmed, and only then folded to ASCII, so that stemmers still see the accents. A run of a
    script that puts no spaces between words becomes its characters and their overlapping pairs, whatever the language.

    Args:
        language: An ISO 639-1 code; a language without a stemmer, or `UNKNOWN`, gets its words whole.
    """

    def __init__(self, language: str) -> None:
        self.language = language

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text for indexing, in order, repeated as they occur."""
        # White space divides words in every language, so what stands between two is analysed once for many texts.
        return list(chain.from_iterable(map(self._known.__getitem__, text.split())))

    @cached_property
    def _known(self) -> Memo[list[str]]:
        return Memo(self._analysed)

    def _analysed(self, text: str) -> list[str]:
        if text.isascii():
            return self._ascii.analyze(text)
        return self._unicode.analyze(_RUN.sub(_grams, self._spelled(text)))

    def query_terms(self, query: str, stop_list: str | None = None) -> Counter[str]:
        """Return a query's terms with their counts: of runs only the pairs, and no stop words of a language."""
        words = _RUN.sub(_pairs, self._spelled(query))
        return Counter(_text_analyzer(_WORD, self.language, stop_list).analyze(words))

    def spans(
        self, text: str, wanted: frozenset[str], ignored: Callable[[str], bool] = lambda _: False
    ) -> Iterator[tuple[int, int]]:
        """Yield the character ranges of a text whose words have one of the wanted terms and are not ignored."""
        for start, end in word_spans(text):
            word = text[start:end]
            if not word.isascii() and _RUN.fullmatch(word):
                yield from _gram_spans(word, start, wanted)
            elif not wanted.isdisjoint(self._known[word]) and not ignored(word):
                yield start, end

    def _spelled(self, text: str) -> str:
        return _with_articles(normalised(text)) if self.language == "ar" else normalised(text)

    @cached_property
    def _ascii(self) -> "TextAnalyzer":
        return _text_analyzer(None, self.language)

    @cached_property
    def _unicode(self) -> "TextAnalyzer":
        return _text_analyzer(_WORD, self.language)


@lru_cache(maxsize=64)
def analyzer(language: str) -> Analyzer:
    """Return the analyzer of a language code; made once, for any thread."""
    return Analyzer(language)


def query_counts(query: str, languages: Collection[str]) -> dict[str, int]:
    """Return at most `MAX_TERMS` distinct terms of a query, analysed in each language, with their counts.

    A stop word counts only if the query holds nothing else. Of the languages, the one whose list has the most of the
    query's words tells its stop words, so that a German word is not lost from an English query.

    Args:
        query: Any text.
        languages: Codes, the commonest first.
    """
    listed = [language for language in languages if language in STEMMERS and language not in NO_STOP_WORDS]
    words = {language: len(_content_words(query, language)) for language in listed}
    stop_list = min(listed, key=lambda language: words[language], default=None)
    return _merged(query, languages, stop_list) or _merged(query, languages, None)


def query_weights(query: str, languages: Collection[str]) -> dict[str, float]:
    """Return the terms of `query_counts` with their weights: the count, times `FUNCTION_WORD` for a function word.

    Otherwise, the words that every question has would dominate a query such as "how do I …". They count in full if the
    query has no other words.
    """
    counts, telling = query_counts(query, languages), telling_terms(query, languages)
    return {term: count * (1.0 if term in telling else FUNCTION_WORD) for term, count in counts.items()}


def telling_terms(query: str, languages: Collection[str]) -> frozenset[str]:
    """Return the terms of `query_counts` that say why a text matches: no stop words, unless there is nothing else."""
    return _telling_terms(query, tuple(languages))


@lru_cache(maxsize=16)  # one search asks for them several times
def _telling_terms(query: str, languages: tuple[str, ...]) -> frozenset[str]:
    ranked, stop_list = frozenset(query_counts(query, languages)), _stop_list(query, languages)
    if stop_list is None:
        return ranked
    words = " ".join(_telling_words(query, stop_list))
    return ranked & {term for language in languages for term in analyzer(language).query_terms(words)}


def stop_words(query: str, languages: Collection[str]) -> Callable[[str], bool]:
    """Return whether a word is a stop word of the query's language; none is where the query has nothing else.

    Args:
        query: Any text.
        languages: Codes; of these, the one that has most of the query's words on its list is the query's.
    """
    stop_list = _stop_list(query, tuple(languages))
    return (lambda _: False) if stop_list is None else (lambda word: not _telling_words(word, stop_list))


@lru_cache(maxsize=16)  # an explained search asks once for each hit
def _stop_list(query: str, languages: tuple[str, ...]) -> str | None:
    """Return the language of the query's stop words; None where it has no list, or the query nothing else."""
    listed = [language for language in languages if language in STEMMERS and language not in NO_STOP_WORDS]
    found = min(listed, key=lambda language: len(_telling_words(query, language)), default=None)
    return found if found and _telling_words(query, found) else None


def _telling_words(text: str, stop_list: str) -> list[str]:
    words = _content_words(text, stop_list)
    return [word for word in words if word not in ENGLISH] if stop_list == "en" else words


def function_words(text: str) -> Counter[str]:
    """Return how many words of a text are on each language's list of stop words; languages without one are left out."""
    words = len(_text_analyzer(_WORD, None).analyze(normalised(text).lower()))
    listed = [language for language in STEMMERS if language not in NO_STOP_WORDS]
    return +Counter({language: words - len(_telling_words(text, language)) for language in listed})


def _content_words(query: str, stop_list: str) -> list[str]:
    return _text_analyzer(_WORD, None, stop_list).analyze(normalised(query).lower())


def _merged(query: str, languages: Collection[str], stop_list: str | None) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for language in languages:
        found = analyzer(language).query_terms(query, stop_list)
        counts |= Counter(dict(islice(found.items(), max(1, MAX_TERMS // len(languages)))))
    return dict(counts)


def normalised(text: str) -> str:
    """Compose characters and widths (Unicode NFKC), and replace lone surrogates, which no index can hold.

    The Turkish İ becomes i: in lower case, it would keep its dot as a character of its own, which no query has.
    """
    if text.isascii():
        return text
    return _DOTTED.sub("i", unicodedata.normalize("NFKC", _SURROGATE.sub("\ufffd", text)))


def _with_articles(text: str) -> str:
    """Return an Arabic text in which words that may begin with a preposition are there with the article, too.

    The stemmer takes the first letter of بطارية for one, but not in البطارية. It leaves والبطارية and a last ه whole.
    """
    text = _LAST_H.sub("ة", _AND_THE.sub("", text))
    return _PREPOSITION.sub(lambda word: f"{word[0]} ال{word[0]}", text)


def with_stop_words(builder: "TextAnalyzerBuilder", languages: Iterable[str]) -> "TextAnalyzerBuilder":
    """Return Tantivy's builder with a filter for each language that has a list of stop words."""
    from tantivy import Filter

    for language in languages:
        if language in STEMMERS and language not in NO_STOP_WORDS:
            builder = builder.filter(Filter.stopword(STEMMERS[language]))
    return builder


@lru_cache(maxsize=256)
def _text_analyzer(pattern: str | None, language: str | None, stop_list: str | None = None) -> "TextAnalyzer":
    """Build Tantivy's analyzer: without a pattern, its own tokenizer, which is faster but splits Hindi at vowel signs.

    Without a language, words are found but not changed.
    """
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.regex(pattern) if pattern else Tokenizer.simple())
    if language:
        builder = builder.filter(Filter.remove_long(LONGEST_TERM)).filter(Filter.lowercase())
    if stop_list:
        builder = builder.filter(Filter.stopword(STEMMERS[stop_list]))
    if language in STEMMERS:
        builder = builder.filter(Filter.stemmer(STEMMERS[language]))
    return builder.filter(Filter.ascii_fold()).build() if language else builder.build()


def word_spans(text: str) -> Iterable[tuple[int, int]]:
    """Return the character range of each word."""
    if text.isascii():
        return (found.span() for found in _ASCII_WORD.finditer(text))
    tokens = _text_analyzer(_WORD, None).pre_tokenize(_SURROGATE.sub("\ufffd", text)).tokens
    return ((token.char_offset_from, token.char_offset_to) for token in tokens)


def _grams(run: re.Match[str]) -> str:
    return f" {' '.join(run[0])} {_pairs(run) if len(run[0]) > 1 else ''}"


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    pairs = map("".join, pairwise(characters)) if len(characters) > 1 else characters
    return f" {' '.join(pairs)} "


def _gram_spans(run: str, offset: int, wanted: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a run that its wanted pairs, or wanted single characters, cover."""
    covered = [character in wanted for character in run] + [False]
    for place in range(len(run) - 1):
        if run[place : place + 2] in wanted:
            covered[place] = covered[place + 1] = True
    start = None
    for place, inside in enumerate(covered):
        if inside and start is None:
            start = place
        elif not inside and start is not None:
            yield offset + start, offset + place
            start = None

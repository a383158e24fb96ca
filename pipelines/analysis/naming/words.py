"""Words as people write them: text without markup, cut into words, each with its stem and its use in a phrase."""

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from ....indexer.lexical.analysis import STEMMERS, normalised, with_stop_words
from ..stop_words import ENGLISH_STOP_WORDS, more_stop_words, without_elision
from ..terms import without_addresses

LONGEST = 30
"""Letters of a word; longer ones are addresses, codes and the like."""
KNOWN = 200_000
"""Different words whose stems are kept."""
STOP, BREAK = "", "\n"
"""In the place of a stem: a word that may stand only inside a phrase, and what no phrase goes across."""
_LEFTOVERS = "mr mrs ms dr prof amp nbsp quot lt gt apos http https www com href mathrm mathbb mathcal"
# Titles, and what is left of entities and formulas whose signs were lost: no name needs them.
_NEVER = frozenset(_LEFTOVERS.split())
_CONVERSATION_WORDS = """
    able absolutely actual actually ago ahead allow allowed allows alright apparently appear appears appreciate
    ask asked asking asks assist assistance assume available aware basically begin believe bit bring came cause
    caused certain certainly clear come comes coming completely concerned consider contact correct correctly
    couple currently day days definitely different difficult easily easy entire especially exactly expect expected
    explain extremely far fast feel figure finally fine fix forever forward gave generally gets getting give given
    gives giving goes going gone good got great guess guys had happen happened happening happens happy hard having
    hear heard hello help hey hi hope hopefully hours idea immediately important information instead interested
    issue issues kind knew know known knows later let lets like likely little long look looked looking looks lot
    lots maybe mean means mention mentioned minute minutes moment need needed needs new nice normal normally
    number obvious obviously okay ok old option options place places please possible possibly pretty probably
    problem problems process proper properly question questions quick quickly quite rather really reason reasons
    recent recently regarding remember right said saw say saying says see seeing seem seemed seems seen send sense
    simple simply soon sorry sort specific start started still stuff suddenly supposed sure take taken takes
    taking talk tell thank thanks thing things think thinking thought time times today told tomorrow took totally
    tried tries try trying type unable understand unfortunately use used useful uses using usually various wait
    waiting want wanted wants way ways week weeks went whatever wish won wonder wondering wrong year years yes
    yesterday yet
    """
# English words of conversation, which say how people talk and not what about; lists of stop words lack them.
CONVERSATION = frozenset(_CONVERSATION_WORDS.split())
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|<!--.{0,1000}?-->", re.DOTALL)
# With bounds: a text of a stranger may be one long comment.
_MATHS = re.compile(r"\$\$.{1,400}?\$\$|\$[^$\n]{0,200}[\\^_{}][^$\n]{0,200}\$|\\[a-zA-Z]+\*?", re.DOTALL)
_POSSESSIVE = re.compile(r"'s?$", re.IGNORECASE)
# Thai, Lao, Burmese, Khmer, kana and Han: scripts that put no spaces between words.
_TIGHT = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_HANGUL = re.compile("[\uac00-\ud7ff]+")
_ENDS = frozenset('.!?:;|"“”«»()[]-–—*>#')
"""Signs after which a sentence, or a line of its own, may begin."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text, or a character of a script that puts no spaces between words.

    Attributes:
        stem: What is compared and counted; `STOP` or `BREAK` for what no name begins or ends with.
        form: The word as it is written, without a possessive ending.
        first: Whether its capital letter says nothing: it begins a sentence, or the line has them everywhere.
        tight: Whether its script puts no spaces between words.
        part: Whether it is a character and not a word.
    """

    stem: str
    form: str
    first: bool = False
    tight: bool = False
    part: bool = False


_BREAK = Token(BREAK, "")


def plain(text: str) -> str:
    r"""Return a text without entities, tags, formulas and addresses; a line break takes the place of the last two.

    Example:
        >>> plain("Rates of 5&nbsp;% &lt;b&gt;rise&lt;/b&gt; as $x^2$, see https://example.org/a")
        'Rates of 5 %  rise  as \n, see \n'
    """
    if "&" in text:
        text = html.unescape(html.unescape(text))
    text = normalised(text)
    text = _TAG.sub(" ", text) if "<" in text else text
    text = _MATHS.sub("\n", text) if "$" in text or "\\" in text else text
    return without_addresses(text, "\n")


class Reader:
    """Cuts texts into tokens.

    Args:
        languages: ISO 639-1 codes, the commonest first.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        self._stem = _stemmer(next((language for language in languages if language in STEMMERS), None))
        self._languages = tuple(languages)
        self._stop = _stop_word(self._languages)
        self._known: dict[str, tuple[Token, Token]] = {}

    def tokens(self, text: str) -> list[Token]:
        """Return the words of a text in their order, with breaks where no phrase goes on."""
        found: list[Token] = []
        for line in without_elision(plain(text), self._languages).split("\n"):
            found += self._line(line)
            found.append(_BREAK)
        return found

    def _line(self, line: str) -> Iterator[Token]:
        titled, first = _titled(line), True
        for match in _pattern().finditer(line):
            word = match[0]
            if not (word[0].isalnum() or word[0] == "_" or len(word) > 1 or _TIGHT.match(word)):
                yield _BREAK
                first = first or word in _ENDS
                continue
            if _TIGHT.search(word):
                yield from _characters(word)
            else:
                yield self._token(word, first or titled)
            first = False

    def _token(self, word: str, first: bool) -> Token:
        known = self._known.get(word)
        if known is None:
            made = self._made(word)
            known = self._as_name(word, made), Token(made.stem, made.form, True)
            if len(self._known) < KNOWN:
                self._known[word] = known
        return known[first]

    def _made(self, word: str) -> Token:
        whole = word.replace("’", "'")
        form = _POSSESSIVE.sub("", whole) if "'" in whole else whole
        low = form.lower()
        if self._stop(low) or (form != whole and self._stop(whole.lower())):
            return Token(STOP, form)
        return Token(self._stem(low) or BREAK, form) if _says(low) else _BREAK

    def _as_name(self, word: str, made: Token) -> Token:
        """Return the token of a word inside a sentence: a capital letter there makes "New" a part of a name."""
        if made.stem != STOP or not word[0].isupper() or made.form.lower() not in CONVERSATION:
            return made
        return Token(self._stem(made.form.lower()), made.form)


def _says(word: str) -> bool:
    """Return whether a lower-case word can be part of a name: it is no number, letter, code, title or identifier."""
    letters = sum(character.isalpha() for character in word)
    code = word[:1].isdigit() and letters < 3
    return letters >= 2 and not code and len(word) <= LONGEST and "_" not in word and word not in _NEVER


def _titled(line: str) -> bool:
    """Return whether a line is written like a title or in capitals, so that a capital letter marks no name."""
    long = [word for word in line.split() if len(word) > 3 and word[0].isalpha()]
    return len(long) >= 2 and sum(word[0].isupper() for word in long) >= 0.7 * len(long)


def _characters(run: str) -> Iterator[Token]:
    """Yield the characters of a run without spaces, and the words that it holds in katakana or in other scripts.

    Hiragana, which writes endings and particles, parts words.
    """
    for kind, group in groupby(run, key=_script):
        characters = "".join(group)
        if kind == "hiragana":
            yield _BREAK
        elif kind == "tight":
            yield from (Token(each, each, tight=True, part=True) for each in _with_marks(characters))
        elif len(characters) > 1 and not characters.isdecimal():
            yield Token(characters.lower(), characters, tight=True)
        else:
            yield _BREAK


def _script(character: str) -> str:
    if "\u3040" <= character <= "\u309f":
        return "hiragana"
    if "\u30a0" <= character <= "\u30ff":
        return "katakana"
    return "tight" if _TIGHT.match(character) else "other"


def _with_marks(characters: str) -> list[str]:
    """Return characters, each with the vowel signs and tone marks that follow it."""
    found: list[str] = []
    for each in characters:
        if found and unicodedata.category(each)[0] == "M":
            found[-1] += each
        else:
            found.append(each)
    return found


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """Return what finds words, with their marks (vowel signs, accents), and the signs that part them."""
    marks = [code for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M"]
    ranges = []
    for _, run in groupby(enumerate(marks), key=lambda pair: pair[1] - pair[0]):
        codes = [code for _, code in run]
        ranges.append(f"{chr(codes[0])}-{chr(codes[-1])}")
    letter = rf"[\w{''.join(ranges)}]"
    return re.compile(rf"{letter}+(?:[-'’&]{letter}+)*(?:\+\+|#|['’](?!{letter}))?|[^\w\s]")


def _stemmer(language: str | None) -> Callable[[str], str]:
    """Return what gives the stem of a lower-case word; without a stemmer, and of Korean, how it begins."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.raw())
    if language is not None:
        builder = builder.filter(Filter.stemmer(STEMMERS[language]))
    analyzer = builder.filter(Filter.ascii_fold()).build()

    def stem(word: str) -> str:
        if _HANGUL.fullmatch(word):
            return word[:2]
        return " ".join(analyzer.analyze(word))

    return stem


@lru_cache(maxsize=16)
def _stop_word(languages: tuple[str, ...]) -> Callable[[str], bool]:
    """Return whether a lower-case word is on the list of one of the languages; most have one."""
    from tantivy import TextAnalyzerBuilder, Tokenizer

    analyzer = with_stop_words(TextAnalyzerBuilder(Tokenizer.raw()), languages).build()
    english = ENGLISH_STOP_WORDS | CONVERSATION if "en" in languages else frozenset()
    stopped = english | more_stop_words(languages)
    return lambda word: word in stopped or not analyzer.analyze(word)

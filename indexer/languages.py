"""Languages by their ISO 639-1 code: normalising the many ways to name one, and detecting one from a sample."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

CONFIDENCE = 0.85
"""Least share of a sample's certainty that one language must hold before `detect` names it."""

LIKELY = 0.6
"""Least probability of the language of a short text; of made-up words, none is above 0.3."""

SAMPLE_TEXTS, SAMPLE_CHARACTERS = 200, 1_000
# Letters to be sure by, and the fewest to judge by at all; a quarter of them where a letter is a syllable or a word.
ENOUGH_LETTERS, LEAST_LETTERS = 200, 40

# Code, then its other names: ISO 639-2 codes, the English name, the language's own name.
_TABLE = """
af afr afrikaans|sq sqi alb albanian shqip|am amh amharic|ar ara arabic arb العربية|hy hye arm armenian
az aze azerbaijani|eu eus baq basque euskara|be bel belarusian|bn ben bengali bangla|bs bos bosnian
bg bul bulgarian български|my mya bur burmese|ca cat catalan valencian català
zh zho chi chinese mandarin cmn yue wuu 中文
hr hrv croatian hrvatski|cs ces cze czech čeština|da dan danish dansk|nl nld dut dutch flemish nederlands
en eng english|eo epo esperanto|et est ekk estonian eesti|fi fin finnish suomi|fr fra fre french français
gl glg galician galego|ka kat geo georgian|de deu ger german deutsch|el ell gre greek ελληνικά|gu guj gujarati
ht hat haitian|ha hau hausa|he heb iw hebrew עברית|hi hin hindi हिन्दी|hu hun hungarian magyar|is isl ice icelandic
ig ibo igbo|id ind indonesian|ga gle irish gaeilge|it ita italian italiano|ja jpn jp japanese 日本語|jv jav javanese
kn kan kannada|kk kaz kazakh|km khm khmer|rw kin kinyarwanda|ko kor korean 한국어|ku kur kurdish|ky kir kyrgyz
lo lao|la lat latin|lv lav lvs latvian|lt lit lithuanian|lb ltz luxembourgish|mk mkd mac macedonian|mg mlg malagasy
ms msa may zsm malay|ml mal malayalam|mt mlt maltese|mr mar marathi|mn mon mongolian|ne nep npi nepali
no nor nb nob nn nno norwegian bokmål bokmal nynorsk norsk|oc oci occitan|or ori ory odia oriya|ps pus pashto
fa fas per pes persian farsi فارسی|pl pol polish polski|pt por portuguese português|pa pan punjabi
ro ron rum mo romanian moldavian română|ru rus russian русский|gd gla gaelic|sr srp serbian српски|si sin sinhala
sk slk slo slovak slovenčina|sl slv slovenian slovene|so som somali|es spa spanish castilian español
sw swa swh swahili|sv swe swedish svenska|tl tgl fil tagalog filipino|tg tgk tajik|ta tam tamil தமிழ்|tt tat tatar
te tel telugu
th tha thai ไทย|bo tib bod tibetan|tr tur turkish türkçe|tk tuk turkmen|ug uig uyghur
uk ukr ukrainian українська|ur urd urdu|uz uzb uzn uzbek|vi vie vietnamese|cy cym wel welsh|fy fry frisian
xh xho xhosa|yi yid yiddish|yo yor yoruba
zu zul zulu
"""
_ENTRIES = [entry.split() for entry in _TABLE.replace("\n", "|").split("|") if entry]
_CODES = {name: entry[0] for entry in _ENTRIES for name in entry}
LONGEST_CODE = 3

# The first word of the Unicode names of a script's letters, then the languages that use it, the commonest first.
_SCRIPTS_TABLE = """
CJK zh|HIRAGANA ja|KATAKANA ja|HANGUL ko|CYRILLIC ru uk bg be sr mk kk ky tg tt mn|ARABIC ar fa ur ps ug ku|HEBREW he yi
GREEK el|DEVANAGARI hi mr ne|BENGALI bn|GURMUKHI pa|GUJARATI gu|ORIYA or|TAMIL ta|TELUGU te|KANNADA kn|MALAYALAM ml
SINHALA si|THAI th|LAO lo|KHMER km|MYANMAR my|TIBETAN bo|ARMENIAN hy|GEORGIAN ka|ETHIOPIC am
"""
_SCRIPTS = {
    script: tuple(codes)
    for script, *codes in (entry.split() for entry in _SCRIPTS_TABLE.replace("\n", "|").split("|") if entry)
}
NOT_LATIN = frozenset(code for codes in _SCRIPTS.values() for code in codes)
"""Languages that are mostly written in another script than the Latin one."""
KANA = 0.1
"""Share of kana among the letters of a text in Chinese characters, from which on it is Japanese."""


@lru_cache(maxsize=1_024)
def normalise(name: str | None) -> str | None:
    """Return the ISO 639-1 code of a language named by a code, a locale or a name; None where it is unknown.

    Example:
        >>> [normalise(name) for name in ("en", "en-US", "pt_BR.UTF-8", "eng", "English", "Deutsch", "Klingon", None)]
        ['en', 'en', 'pt', 'en', 'en', 'de', None, None]
    """
    if not name:
        return None
    first = re.split(r"[-_ .@]", name.strip().lower(), maxsplit=1)[0]
    return _CODES.get(first)


def english_name(code: str) -> str:
    """Return the English name of a language; the code itself if it is unknown.

    Example:
        >>> [english_name(code) for code in ("de", "zh", "lo", "xx")]
        ['German', 'Chinese', 'Lao', 'xx']
    """
    entry = next((names for names in _ENTRIES if names[0] == code), [code])
    longer = [name for name in entry if len(name) > LONGEST_CODE]
    return (longer or entry[-1:])[0].title() if len(entry) > 1 else code


def detect(texts: Sequence[str]) -> str | None:
    """Return the ISO 639-1 code of the one language that a sample is written in, or None when that is not sure.

    Each text votes for every language with its probability, longer texts more. Of a longer sample, 200 texts spread
    over it are read. Dialects count with their language (Cantonese is "zh").

    Args:
        texts: Any texts of the collection; short ones are joined into longer ones, so that titles can be told too.

    Example:
        >>> detect(["The battery died after a week.", "Nobody answered when I called the support line."])
        'en'
        >>> detect(["x = 3", "12:45"]) is None
        True
    """
    votes: Counter[str | None] = Counter()
    for text in _chunks(texts):
        for language, probability in _identifier().rank(text):
            votes[normalise(language)] += probability * len(text) ** 0.5
    (best, weight) = max(votes.items(), key=lambda vote: vote[1], default=(None, 0.0))
    return best if weight >= CONFIDENCE * votes.total() else None


def likely_language(text: str) -> str | None:
    """Return the likeliest language of a short text, which `detect` is too careful for; None if none is likely.

    Example:
        >>> [likely_language(text) for text in ("meine Karte wurde gestohlen", "zorblax quux", "")]
        ['de', None, None]
    """
    if not text.strip():
        return None
    code, probability = max(_identifier().rank(text), key=lambda found: found[1])
    return normalise(code) if probability >= LIKELY else None


def script_languages(text: str) -> tuple[str, ...]:
    """Return the languages that use the script of most of a text's letters; none for Latin letters or no letters.

    A Chinese character, a kana or a Korean syllable counts as two letters.

    Example:
        >>> [script_languages(text) for text in ("battery", "배터리", "電池がすぐ切れる", "电池", "κινητό", "42 €")]
        [(), ('ko',), ('ja',), ('zh',), ('el',), ()]
    """
    if text.isascii():
        return ()
    letters = Counter(map(_script, filter(str.isalpha, unicodedata.normalize("NFKC", text))))
    chinese, korean = letters.pop("CJK", 0), letters.pop("HANGUL", 0)
    kana = letters.pop("HIRAGANA", 0) + letters.pop("KATAKANA", 0)
    both = "HIRAGANA" if kana > KANA * chinese else "CJK"
    counts = letters | Counter({both: 2 * (kana + chinese), "HANGUL": 2 * korean})
    script, most = max(counts.items(), key=lambda found: found[1], default=("", 0))
    return _SCRIPTS.get(script, ()) if 2 * most > sum(counts.values()) else ()


@lru_cache(maxsize=4_096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0].split("-")[0]


def _chunks(texts: Sequence[str]) -> list[str]:
    """Join short texts until each piece has letters enough for a verdict; the last may have fewer."""
    pieces, piece = [], ""
    for text in texts[:: max(1, len(texts) // SAMPLE_TEXTS)]:
        piece = f"{piece} {text[:SAMPLE_CHARACTERS]}".strip()
        if _letters(piece) >= ENOUGH_LETTERS:
            pieces.append(piece)
            piece = ""
    return [*pieces, piece] if _letters(piece) >= LEAST_LETTERS else pieces


def _letters(text: str) -> int:
    return sum(character.isalpha() * (4 if character >= "\u0900" else 1) for character in text)


@lru_cache(maxsize=1)
def _identifier() -> "LanguageIdentifier":
    """A Naive Bayes model over byte n-grams (Lui and Baldwin, "langid.py", ACL 2012), its scores made probabilities."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

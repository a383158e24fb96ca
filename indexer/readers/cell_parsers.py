"""What the string in a cell can mean: a number, an amount, a boolean, a list, a date, a month, as people write them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime

from ..document import Value
from .values import INT64, MOST_VALUES, NestedError, natural

NOTHING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "?", "#n/a"}
"""What stands for a missing value among values of a type, in small letters."""
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
YES = frozenset((
    "yes", "true", "ja", "wahr", "oui", "vrai", "si", "sí", "sì", "verdadero", "vero", "sim", "verdadeiro",
    "da", "tak", "prawda", "ano", "evet", "doğru", "igen", "igaz", "kyllä", "ναι", "да", "истина", "так", "نعم",
    "はい", "是", "예", "네",
))  # fmt: skip
NO = frozenset((
    "no", "false", "nein", "falsch", "non", "faux", "falso", "não", "nu", "ne", "nie", "fałsz", "nee", "nej",
    "nei", "hayır", "hayir", "yanlış", "nem", "hamis", "ei", "όχι", "нет", "ложь", "ні", "لا", "いいえ", "否",
    "아니요", "아니오",
))  # fmt: skip
"""What says true and false in a column that is known to say it: spreadsheets write both in the person's language."""
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,18})")
_REAL = re.compile(r"-?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")
_GROUPED = re.compile(r"-?(0|[1-9]\d*|[1-9]\d{0,2}(,\d{3})+)(\.\d+)?")
"""1,234.50, as in English."""
_COMMA = re.compile(r"-?(0|[1-9]\d*|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?")
"""1.234,50, as in most of Europe."""
_EITHER = re.compile(r"-?\d{1,3}[,.]\d{3}|-?\d+")
"""1,234 is one number or the other."""

_SIGN = r"(?:[A-Z]{3}|[%$¢£¤¥฿₠-\u20cf])"
_NUMBER = r"-?\d[\d.,]*|-?[.,]\d+"
_AMOUNT = re.compile(rf"(-?)({_SIGN})\s*({_NUMBER})|({_NUMBER})\s*({_SIGN})")
"""An amount; the sign is that of a currency or of per cent, or the three letters of a currency."""

_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|[+-]\d\d(:?\d\d)?))?)?")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DAYS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
_WORDED = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y", "%d-%b-%Y")
_STAMPS = ("%a, %d %b %Y %H:%M:%S %z", "%a, %d %b %Y %H:%M:%S %Z", "%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Y")
_EASTERN = ("%Y年%m月%d日", "%Y년 %m월 %d일", "%Y년%m월%d일")
_FORMATS = (
    *(day + clock for day in _DAYS + _WORDED for clock in _CLOCKS),
    *_STAMPS,
    *(day + clock for day in _EASTERN for clock in _CLOCKS[:3]),
)
"""Formats of strptime, in the order in which they are tried."""

_YEAR, _MONTH = r"(?:19\d\d|20\d\d|2100)", r"(?:0[1-9]|1[0-2])"
_WORD = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_FORMS = (
    ("%Y-%m", rf"{_YEAR}-{_MONTH}"),
    ("%Y/%m", rf"{_YEAR}/{_MONTH}"),
    ("%m/%Y", rf"{_MONTH}/{_YEAR}"),
    ("%b %Y", rf"{_WORD} {_YEAR}"),
    ("%B %Y", rf"{_WORD} {_YEAR}"),
    ("%Y年%m月", rf"{_YEAR}年(?:{_MONTH}|[1-9])月"),
)
"""How months are read, each with the pattern of its form: short and full names are two forms."""
_LIKE_A_MONTH = re.compile(
    rf"{_YEAR}[-/.]{_MONTH}|(?:{_MONTH}|[1-9])[-/.]{_YEAR}|{_WORD}\.?[ -]{_YEAR}|{_YEAR}[ -]{_WORD}", re.IGNORECASE
)
_SEASON = re.compile(rf"({_YEAR})[-/](\d\d)")

Parse = Callable[[str], Value]
"""Gives the value that a stripped string means; a ValueError says that it means none of this kind."""
Form = tuple[str, Parse]
"""How a column writes its values: the type with the decimal separator or the format of dates, and what reads it."""

ParseMonth = Callable[[str], date]


def parses_all(parse: Parse, texts: Sequence[str]) -> bool:
    """Whether every string means something of this kind."""
    try:
        return all(parse(text) is not None for text in texts)
    except ValueError:
        return False


def boolean(text: str) -> bool:
    """True and false, yes and no, in any case."""
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def integer(text: str) -> int:
    """A whole number of at most 64 bits, without zeros before it, which codes have."""
    if not _fits(text):
        raise ValueError(text)
    return int(text)


def _fits(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and int(text) in INT64


def real(text: str) -> Value:
    """A number with a decimal point, with or without an exponent."""
    beyond_64_bits = len(text) > 18 and text.lstrip("-").isdigit() and not _fits(text)
    if not _REAL.fullmatch(text) or not any(map(str.isdigit, text)) or beyond_64_bits:
        raise ValueError(text)
    return natural(float(text))


def common_number(texts: Sequence[str]) -> Form | None:
    """Return the one way of writing numbers with commas that all texts share; None where it could be either way."""
    if all(map(_EITHER.fullmatch, texts)):
        return None
    return next((form for form in number_forms() if parses_all(form[1], texts)), None)


def number_forms() -> tuple[Form, Form]:
    """Return the two ways of writing numbers with commas: 1,234.50 and 1.234,50."""
    return ("real:.", grouped), ("real:,", with_comma)


def grouped(text: str) -> Value:
    """A number such as 1,234.50."""
    if not _GROUPED.fullmatch(text):
        raise ValueError(text)
    return natural(float(text.replace(",", "")))


def with_comma(text: str) -> Value:
    """A number such as 1.234,50."""
    if not _COMMA.fullmatch(text):
        raise ValueError(text)
    return natural(float(text.replace(".", "").replace(",", ".")))


def usual_sign(texts: Sequence[str]) -> str:
    """Return the sign that more than half of the texts have; "" if there is none."""
    signs = Counter(found[2] or found[5] for text in texts if (found := _AMOUNT.fullmatch(text)))
    return next((sign for sign, count in signs.items() if 2 * count > len(texts)), "")


def without_sign(text: str, sign: str) -> str:
    """Return the number of an amount with this sign; any other text as it is."""
    found = _AMOUNT.fullmatch(text)
    if not found or (found[2] or found[5]) != sign:
        return text
    return found[4] or found[1] + found[3]


def json_list(text: str) -> Value:
    """A list written as JSON."""
    if not text.startswith("[") or len(text) > MOST_VALUES:
        raise ValueError(text)
    try:
        return natural(json.loads(text))
    except (RecursionError, NestedError):
        raise ValueError(text) from None


def iso_date(text: str) -> date:
    """A day or a time in ISO 8601."""
    if not _ISO.fullmatch(text):
        raise ValueError(text)
    return (
        date.fromisoformat(text)
        if len(text) == 10
        else datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
    )


def common_date(texts: Sequence[str]) -> Form | None:
    """Return the one format that all texts share; None also where day and month could be either way round."""
    if not texts[0][-1].isalnum() or not any(map(str.isdigit, texts[0])) or len(texts[0]) > 40:
        return None
    found = [form for form in date_forms() if parses_all(form[1], texts)]
    readings = [list(map(parse, texts)) for _, parse in found]
    return found[0] if found and all(reading == readings[0] for reading in readings) else None


def date_forms() -> list[Form]:
    """Return the formats of dates, in the order in which they are tried."""
    return [(f"date:{pattern}", dated_by(pattern)) for pattern in _FORMATS]


def dated_by(pattern: str) -> Parse:
    """Return what reads dates of a format of strptime: days, or times if it has hours."""
    clock = "%H" in pattern or "%I" in pattern

    def parse(text: str) -> date:
        moment = datetime.strptime(text, pattern)
        return moment if clock else moment.date()

    return parse


def common_month(texts: Sequence[str]) -> tuple[str, ParseMonth] | None:
    """Return what reads months of the one form that all texts share, in the years from 1900 to 2100.

    None if there is no such form, or if the texts are seasons.
    """
    if are_seasons(texts):
        return None
    return next((form for form in month_forms() if texts and parses_all(form[1], texts)), None)


def month_forms() -> list[tuple[str, ParseMonth]]:
    """Return the forms of months, "date:" and a format of strptime, with what reads them."""
    return [(f"date:{form}", _read_by(form, pattern)) for form, pattern in _FORMS]


def are_seasons(texts: Sequence[str]) -> bool:
    """Whether the texts are different seasons or school years: 2009-10 and 2010-11, each with the year that follows."""
    found = [_SEASON.fullmatch(text) for text in texts]
    follows = all(match and int(match[2]) == (int(match[1]) + 1) % 100 for match in found)
    return follows and len(set(texts)) > 1


def looks_like_a_month(text: str) -> bool:
    """Whether a text looks like a month, in whatever form."""
    return _LIKE_A_MONTH.fullmatch(text) is not None


def _read_by(form: str, pattern: str) -> ParseMonth:
    whole = re.compile(pattern, re.IGNORECASE)

    def parse(text: str) -> date:
        if not whole.fullmatch(text):
            raise ValueError(text)
        return datetime.strptime(text, form).date()

    return parse

"""Months in cells, such as 2026-04 or April 2026, as dates: the first days of the months."""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime

ParseMonth = Callable[[str], date]

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
)
"""How months are read, each with the pattern of its form: short and full names are two forms."""
_LIKE_A_MONTH = re.compile(
    rf"{_YEAR}[-/.]{_MONTH}|(?:{_MONTH}|[1-9])[-/.]{_YEAR}|{_WORD}\.?[ -]{_YEAR}|{_YEAR}[ -]{_WORD}", re.IGNORECASE
)
_SEASON = re.compile(rf"({_YEAR})[-/](\d\d)")


def common_month(texts: Sequence[str]) -> tuple[str, ParseMonth] | None:
    """Return what reads months of the one form that all texts share, in the years from 1900 to 2100.

    None if there is no such form, or if the texts are seasons.
    """
    if are_seasons(texts):
        return None
    return next((form for form in month_forms() if _reads_all(form[1], texts)), None)


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


def _reads_all(parse: ParseMonth, texts: Sequence[str]) -> bool:
    try:
        return bool([parse(text) for text in texts])
    except ValueError:
        return False

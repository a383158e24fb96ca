"""Personal data that patterns can find, and its masking: e-mail addresses, phone numbers, accounts, IP addresses.

Names, street addresses and most other personal data have no pattern: finding nothing proves nothing.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ...indexer.errors import Message, arg
from ...indexer.progress import NOTE, Notify
from ...indexer.wording import counted
from .settings import CheckSettings
from .wording import Finding

# The addresses that browsers accept (HTML Living Standard, 4.10.5.1.5), with a dot in the domain, and with the letters
# of any language (RFC 6531).
_EMAIL = re.compile(
    r"(?<![\w.+-])[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[^\W_](?:[\w-]{0,61}[^\W_])?(?:\.[^\W_](?:[\w-]{0,61}[^\W_])?)+"
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b", re.IGNORECASE)
_SHORTEST = 15
"""Characters of an IBAN, at least: those of Norway."""
_CARD = re.compile(r"(?<![\d.,-])\d(?:[ -]?\d){12,18}(?![\d.,-]?\d)")
_IP = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_DIGITS = re.compile(r"(?:\d[\s().\-/]*){7}")


Span = tuple[int, int]
"""Where a piece of personal data begins and ends in a text."""


def personal(texts: Sequence[str], region: str | None = None) -> Iterator[Finding]:
    """Yield the texts with personal data; the reason names its kinds, never the data.

    Args:
        texts: The texts.
        region: Country code such as "US", by whose rules phone numbers without a country code are read.
    """
    finders = _finders(region)
    for place, text in enumerate(texts):
        if found := [kind for kind, finder in finders.items() if any(True for _ in finder(text))]:
            yield place, 1.0, ", ".join(found)


def spans(text: str, region: str | None = None) -> list[tuple[int, int, str]]:
    """Return start, end and kind of each piece of personal data in a text; of two that overlap, the longer."""
    every = [(start, end, kind) for kind, finder in _finders(region).items() for start, end in finder(text)]
    found: list[tuple[int, int, str]] = []
    for one in sorted(every, key=lambda one: one[0] - one[1]):
        if all(one[1] <= start or end <= one[0] for start, end, _ in found):
            found.append(one)
    return sorted(found)


def has_digits_in_a_row(text: str) -> bool:
    """Return whether a text may hold a phone number without a country code: seven digits with little between them."""
    return _DIGITS.search(text) is not None


def _emails(text: str) -> Iterator[Span]:
    return (found.span() for found in _EMAIL.finditer(text))


def _phones(text: str, region: str | None) -> Iterator[Span]:
    if not has_digits_in_a_row(text) or (region is None and "+" not in text):
        return
    from phonenumbers import PhoneNumberMatcher

    for found in PhoneNumberMatcher(text, region):
        yield found.start, found.end


def _accounts(text: str) -> Iterator[Span]:
    for found in _IBAN.finditer(text):
        from stdnum import iban

        # A pattern cannot tell where an account ends and the next word begins: AT61 1904 3002 3457 3201 please.
        ends = range(len(found[0]), _SHORTEST - 1, -1)
        if end := next((end for end in ends if iban.is_valid(found[0][:end])), None):
            yield found.start(), found.start() + len(found[0][:end].rstrip())


def _cards(text: str) -> Iterator[Span]:
    for found in _CARD.finditer(text):
        from stdnum import luhn

        digits = re.sub(r"\D", "", found[0])
        if digits[0] in "3456" and luhn.is_valid(digits):
            yield found.span()


def _addresses(text: str) -> Iterator[Span]:
    return (found.span() for found in _IP.finditer(text) if _is_address(found[0]))


def _is_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False


def _finders(region: str | None) -> dict[str, Callable[[str], Iterator[Span]]]:
    return {
        "e-mail address": _emails,
        "phone number": partial(_phones, region=region and region.upper()),
        "bank account": _accounts,
        "payment card": _cards,
        "IP address": _addresses,
    }


KINDS = tuple(_finders(None))
"""The kinds of personal data that are found."""


NAMES = {
    "e-mail address": "[email]",
    "phone number": "[phone]",
    "bank account": "[account]",
    "payment card": "[card]",
    "IP address": "[IP address]",
}
"""What stands in the place of each kind of personal data."""
PLURALS = {"e-mail address": "e-mail addresses", "IP address": "IP addresses"}
KEPT = "id"
"""The column that stays as it is: it identifies the documents."""


class Masker:
    """Replaces personal data in texts, and counts what it has replaced."""

    def __init__(self, region: str | None = None) -> None:
        """Take the country code by whose rules phone numbers without a country code are read; None finds none of them.

        Raises:
            UsageError: It is not a country code.
        """
        CheckSettings(region=region).check()
        self.region = region
        self.counts: Counter[str] = Counter()
        self.unread = False

    def text(self, text: str) -> str:
        """Return a text with each piece of personal data replaced."""
        self.unread = self.unread or (self.region is None and has_digits_in_a_row(text))
        parts, end = [], 0
        for start, stop, kind in spans(text, self.region):
            self.counts[kind] += 1
            parts += [text[end:start], NAMES[kind]]
            end = stop
        return "".join([*parts, text[end:]]) if parts else text

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row with the texts of all its columns but the ids masked."""
        return {name: value if name == KEPT else self._value(value) for name, value in row.items()}

    def table(self, rows: Sequence[dict[str, Any]], notify: Notify) -> list[dict[str, Any]]:
        """Return rows masked, and tell what was replaced."""
        masked = list(map(self.row, rows))
        self.say(notify)
        return masked

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(each) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def say(self, notify: Notify) -> None:
        """Tell what was replaced, and what cannot be found."""
        found = [counted(self.counts[kind], kind, PLURALS.get(kind)) for kind in KINDS if self.counts[kind]]
        said = f"masked {', '.join(found)}" if found else "nothing was masked"
        notify(f"{NOTE}{said}; names and street addresses are not found: read the texts before you share them")
        if self.unread:
            notify(Message(f"{NOTE}phone numbers without a country code were not looked for: give {arg('region')}"))

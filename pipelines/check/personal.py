"""Personal data that patterns can find: e-mail addresses, phone numbers, bank accounts, payment cards, IP addresses.

Names, street addresses and most other personal data have no pattern: finding nothing proves nothing.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from functools import partial

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


def personal(texts: Sequence[str], region: str | None = None) -> Iterator[Finding]:
    """Yield the texts with personal data; the reason names its kinds, never the data.

    Args:
        texts: The texts.
        region: Country code such as "US", by whose rules phone numbers without a country code are read.
    """
    finders = (
        ("e-mail address", _EMAIL.search),
        ("phone number", partial(_phone, region=region and region.upper())),
        ("bank account", _account),
        ("payment card", _card),
        ("IP address", _address),
    )
    for place, text in enumerate(texts):
        if found := [kind for kind, finder in finders if finder(text)]:
            yield place, 1.0, ", ".join(found)


def has_digits_in_a_row(text: str) -> bool:
    """Return whether a text may hold a phone number without a country code: seven digits with little between them."""
    return _DIGITS.search(text) is not None


def _phone(text: str, region: str | None) -> bool:
    if not has_digits_in_a_row(text) or (region is None and "+" not in text):
        return False
    from phonenumbers import PhoneNumberMatcher

    return PhoneNumberMatcher(text, region).has_next()


def _account(text: str) -> bool:
    found = _IBAN.findall(text)
    if not found:
        return False
    from stdnum import iban

    # A pattern cannot tell where an account ends and the next word begins: AT61 1904 3002 3457 3201 please.
    return any(iban.is_valid(each[:end]) for each in found for end in range(len(each), _SHORTEST - 1, -1))


def _card(text: str) -> bool:
    found = _CARD.findall(text)
    if not found:
        return False
    from stdnum import luhn

    digits = [re.sub(r"\D", "", each) for each in found]
    return any(each[0] in "3456" and luhn.is_valid(each) for each in digits)


def _address(text: str) -> bool:
    return any(_is_address(found[0]) for found in _IP.finditer(text))


def _is_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False

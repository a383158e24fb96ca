"""Amounts such as 5 €, CHF 12.50 and 7 %: numbers with a sign before or after them."""

import re
from collections import Counter
from collections.abc import Sequence

_SIGN = r"(?:[A-Z]{3}|[%$¢£¤¥฿₠-\u20cf])"
_NUMBER = r"-?\d[\d.,]*|-?[.,]\d+"
_AMOUNT = re.compile(rf"(-?)({_SIGN})\s*({_NUMBER})|({_NUMBER})\s*({_SIGN})")
"""An amount; the sign is that of a currency or of per cent, or the three letters of a currency."""


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

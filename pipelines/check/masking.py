"""Personal data that patterns find, replaced by what it is: "write to [email]"."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...indexer.errors import Message, arg
from ...indexer.progress import NOTE, Notify
from ...indexer.wording import counted
from .personal import KINDS, has_digits_in_a_row, spans

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
        from .settings import CheckSettings

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

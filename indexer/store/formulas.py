"""Cells of CSV files that a spreadsheet would run as formulas."""

import re
from typing import Any

from ..wording import counted

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
"""How OWASP's page "CSV Injection" says that such a cell begins; spaces before it do not help."""
_NUMBER = re.compile(r"\s*[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?%?\s*", re.IGNORECASE | re.ASCII)
APOSTROPHE = "'"


class Formulas:
    """Puts an apostrophe before what a spreadsheet would run, and counts the cells.

    Attributes:
        raw: Whether cells stay as they are.
        quoted: How many cells got one.
    """

    def __init__(self, raw: bool = False) -> None:
        """Begin with no cell."""
        self.raw = raw
        self.quoted = 0

    def cell(self, value: Any) -> Any:
        """Return a cell as it is written; numbers, also those in a text, stay as they are."""
        if self.raw or not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
            return value
        self.quoted += 1
        return APOSTROPHE + value

    def note(self) -> str:
        """Return one sentence about what was changed, "" if nothing was."""
        if not self.quoted:
            return ""
        return (
            f"note: an apostrophe was put before {counted(self.quoted, 'cell')} that a spreadsheet would run as a "
            "formula; .jsonl and .parquet files hold the unchanged texts"
        )

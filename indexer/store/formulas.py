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
        if self.raw or not isinstance(value, str) or not _is_formula(value):
            return value
        self.quoted += 1
        return APOSTROPHE + value

    def note(self, unchanged: str, advice: str = "") -> str:
        """Return one sentence about what was changed and which files hold the rest, "" if nothing was."""
        if not self.quoted:
            return ""
        return (
            f"note: an apostrophe was put before {counted(self.quoted, 'cell')} that a spreadsheet would run as a "
            f"formula; {unchanged} files hold the unchanged texts{advice}"
        )


def unquoted(cell: str) -> str:
    """Return a cell without the apostrophe that `Formulas` put before it."""
    return cell[1:] if cell.startswith(APOSTROPHE) and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    return bool(_FORMULA.match(text)) and not _NUMBER.fullmatch(text)

"""How a CSV file separates and quotes its cells, found by trying."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .column_names import known

_DELIMITERS = (",", "\t", ";", "|")
_NO_DELIMITER = "\x1f"
_SAMPLE_LINES = 1000
_NUMBER = re.compile(r"-?\d+([.,]\d+)?|\d{4}-\d\d-\d\d.*")


@dataclass(frozen=True)
class CsvDialect:
    """Arguments of `csv.reader`, and the share of sampled rows that are as wide as the first (0 to 1)."""

    delimiter: str
    quotechar: str | None = '"'
    escapechar: str | None = None
    width: int = 1
    share: float = 0.0

    def reader(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """A reader of rows; quotes out of place are taken as they stand."""
        quoting = csv.QUOTE_NONE if self.quotechar is None else csv.QUOTE_MINIMAL
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quoting=quoting,
            quotechar=self.quotechar or '"',
            doublequote=self.escapechar is None,
            escapechar=self.escapechar,
        )


def sniff_dialect(lines: Sequence[str], delimiter: str | None = None, tabs_first: bool = False) -> CsvDialect:
    """The dialect under which most of the first lines have as many cells as the header.

    Args:
        lines: The file's first lines with their ends, the header first.
        delimiter: The delimiter, where it is known.
        tabs_first: Prefer tabs to commas where both would do.
    """
    lines = lines[:_SAMPLE_LINES]
    delimiters = (delimiter,) if delimiter else (("\t", *_DELIMITERS) if tabs_first else _DELIMITERS)
    tried = [_tried(dialect, lines) for one in delimiters for dialect in _quotings(one, lines)]
    wide = [dialect for dialect in tried if dialect.width > 1]
    if not wide:
        return _tried(next(_quotings(delimiter or _NO_DELIMITER, lines)), lines)
    return max(wide, key=lambda dialect: (round(dialect.share, 2), dialect.width if dialect.share == 1 else 0))


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: unless it holds a number where all rows do, and no known name."""
    header, *others = rows
    if any(known(cell) for cell in header):
        return True
    numeric = [place for place, cell in enumerate(header) if _NUMBER.fullmatch(cell.strip())]
    same = [row for row in others if len(row) == len(header)]
    return not any(all(_NUMBER.fullmatch(row[place].strip()) for row in same) for place in numeric)


def column_names(header: Sequence[str]) -> list[str]:
    """The header's names, stripped; a missing one is called after its place, a repeated one is numbered."""
    names: list[str] = []
    seen: Counter[str] = Counter()
    for place, cell in enumerate(header, start=1):
        name = cell.strip() or f"column_{place}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names


def _quotings(delimiter: str, lines: Sequence[str]) -> Iterator[CsvDialect]:
    text = "".join(lines)
    if '\\"' in text and '""' not in text:
        yield CsvDialect(delimiter, escapechar="\\")
    if '"' not in text and text.startswith("'"):
        yield CsvDialect(delimiter, quotechar="'")
    plain, unquoted = CsvDialect(delimiter), CsvDialect(delimiter, quotechar=None)
    if '"' not in text:
        yield plain
    elif delimiter == "\t" and not _well_quoted(lines):
        yield from (unquoted, plain)
    else:
        yield from (plain, unquoted)


def _well_quoted(lines: Sequence[str]) -> bool:
    try:
        return bool(list(csv.reader(lines, delimiter="\t", strict=True)))
    except csv.Error:
        return False


def _tried(dialect: CsvDialect, lines: Sequence[str]) -> CsvDialect:
    try:
        widths = [len(row) for row in dialect.reader(iter(lines)) if row]
    except csv.Error:
        widths = []
    if not widths:
        return dialect
    share = widths.count(widths[0]) / len(widths)
    return CsvDialect(dialect.delimiter, dialect.quotechar, dialect.escapechar, widths[0], share)

"""The line on which the table seems to begin, where a report has lines above its header."""

import csv
from collections.abc import Sequence

from .columns import known

_LEAST_ROWS = 3
"""Rows below a header, at least: fewer of one width say little."""
LINES = 1_000


def table_start(lines: Sequence[str], delimiters: Sequence[str]) -> int:
    """Return the line, from 2, of what looks like a header below other lines; 0 if nothing does.

    Such a line has two cells or more, none of them empty, and one is a known name of a column, such as "id" or "text".
    All lines below it have as many cells. The lines above it have no such name, and another number of cells or an empty
    one.

    Args:
        lines: The first lines of the file.
        delimiters: Those that the file may have.
    """
    for delimiter in delimiters:
        reader = csv.reader(iter(lines[:LINES]), delimiter=delimiter)
        rows: list[tuple[int, list[str]]] = []
        try:
            before = 0
            for row in reader:
                if row:
                    rows.append((before + 1, row))
                before = reader.line_num
        except csv.Error:
            continue
        if line := _header_below(rows):
            return line
    return 0


def sheet_start(rows: Sequence[tuple[int, list[str]]]) -> int:
    """Return the row, from 2, of what looks like a header in a worksheet below other rows; 0 if nothing does.

    As in `table_start`; or, below rows of which at most half of the cells are filled, a row of different words.

    Args:
        rows: The first rows with content, with their numbers, all equally long.
    """
    if found := _header_below(rows):
        return found
    for place, (number, cells) in enumerate(rows):
        filled = list(filter(None, map(str.strip, cells)))
        if len(filled) == len(cells) > 2 and len(set(filled)) == len(filled):
            words = all(any(map(str.isalpha, cell)) for cell in cells)
            return number if words and 0 < place < len(rows) - _LEAST_ROWS else 0
        if 2 * len(filled) > len(cells) or any(map(known, filled)):
            return 0
    return 0


def _header_below(rows: Sequence[tuple[int, list[str]]]) -> int:
    """Return the line of the first row that names columns, if all rows above it are shorter, longer or incomplete."""
    width = len(rows[-1][1]) if rows else 0
    even = len(rows)
    while even and len(rows[even - 1][1]) == width:
        even -= 1
    for place, (line, cells) in enumerate(rows):
        named, whole = any(map(known, cells)), all(map(str.strip, cells))
        if place >= even and named and whole and width > 1:
            return line if 0 < place < len(rows) - _LEAST_ROWS else 0
        if named or (place >= even and whole):
            return 0
    return 0

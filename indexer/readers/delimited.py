"""CSV, TSV and their relatives: find the dialect and the line on which the table begins, then read the rows."""

import codecs
import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..document import Skipped, composed
from ..errors import SondeError, UsageError, arg
from ..wording import listed
from .bytestream import SAMPLE_BYTES, ByteStream
from .columns import known
from .encoding import decoded_lines, detect_encoding, named_encoding
from .source import Item, Meter, ReadOptions, Row, Source

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
        """A reader of rows; misplaced quotes are kept as text."""
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
        name = composed(cell.strip()) or f"column_{place}"
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


_LONGEST_CELL = 60_000_000
"""Characters between two quotes. What follows a quote that is never closed is read again, so it is kept that long."""
_LONGEST_LINE = 1 << 27
_NO_TABLE = f"break it up, or if this is not a CSV file, set {arg('format')}"
_BEGINNING, _MOST_NULS = 4096, 8
"""NUL bytes among the first characters of a text file, at most; a few may be cells that were written badly."""
_MOST_STRAYS = 100
"""Quotes that are never closed, in one file: each makes the rest of it be read twice."""


class Delimited(Source):
    """Rows of a file with one record per line, or several lines where a cell is quoted."""

    textual = True

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self._longest = max(_LONGEST_CELL, options.max_chars)
        csv.field_size_limit(max(csv.field_size_limit(), self._longest))
        self.encoding = options.encoding or detect_encoding(stream.sample, options.encoding_hint)
        lines = sample_lines(stream, self.encoding)
        self._check_delimiter(lines, options)
        self.dialect = sniff_dialect(lines, options.separator, tabs_first=format == "tsv")
        rows = [row for row in self.dialect.reader(iter(lines)) if row]
        if not rows:
            if len(stream.sample) == SAMPLE_BYTES:
                raise SondeError(f"{self.name} begins with {SAMPLE_BYTES:,} blank bytes: remove them")
            raise SondeError(f"{self.name} is empty: give a file with content")
        self._named = has_header(rows)
        self.heading = tuple(rows[0]) if self._named else ()
        self._header = column_names(rows[0] if self._named else [""] * len(rows[0]))
        delimiters = (options.separator,) if options.separator else _DELIMITERS
        self.begins = table_start(lines, delimiters)
        self.note = self._how(named_encoding(self.encoding, options))
        self.nothing = f"has a header ({listed(self._header)}) but no rows: give a file with content"

    def items(self, meter: Meter) -> Iterator[Item]:
        """Rows in the order of the file; "row 1" follows the header."""
        with self._stream.open(meter) as file, decoded_lines(file, self.encoding) as lines:
            records = _Records(lines, self.dialect, self._longest)
            rows = islice(records, 1, None) if self._named else iter(records)
            try:
                for number, row in enumerate(rows, start=1):
                    yield self._item(f"row {number}", row, records)
            except SondeError as error:
                error.prefix(self.name)
                raise

    def _check_delimiter(self, lines: Sequence[str], options: ReadOptions) -> None:
        first = next((line for line in lines if line.strip()), "")
        if options.separator and first and options.separator not in first:
            said = f"the delimiter {options.delimiter!r} does not occur in the first line of {self.name}"
            raise UsageError(
                f"{said}: leave out {arg('delimiter')} to detect it",
                code="not-found", field="delimiter", value=options.delimiter,
            )  # fmt: skip

    def _how(self, encoding: str) -> str:
        names = {"\t": "tab", "\x1f": "none"}
        delimiter = names.get(self.dialect.delimiter, repr(self.dialect.delimiter))
        quotes = "" if self.dialect.quotechar else ", without quoting"
        begins = f"; {self.above}" if self.begins else ""
        return f"delimiter {delimiter}{quotes}, {encoding}" + ("" if self._named else ", no header") + begins

    def _item(self, origin: str, row: Sequence[str] | None, records: "_Records") -> Item:
        line = records.line
        if row is None:
            closed = "never closed" if records.ended else f"not closed within {records.longest:,} characters"
            return Skipped(origin, f"a quote is opened on line {line} and {closed}")
        if len(row) != len(self._header):
            cells = f"{len(row)} cell{'s' if len(row) != 1 else ''} instead of {len(self._header)}"
            return Skipped(origin, f"{cells} (line {line})")
        return Row(origin, dict(zip(self._header, row, strict=True)))


class _Records:
    """Rows of cells, without blank lines; None for a line whose quote is not closed. `line` is the last line read."""

    def __init__(self, lines: io.TextIOBase, dialect: CsvDialect, longest: int) -> None:
        self._lines = lines
        self._again: deque[str] = deque()
        self._dialect = dialect
        self.longest = longest
        self._pending: list[str] = []
        self.ended = False
        self.line = 0

    def __iter__(self) -> Iterator[list[str] | None]:
        for _ in range(_MOST_STRAYS):
            yield from self._rows()
            if not self._pending:
                return
            # The lines after a stray quote are no part of its cell: they are read again.
            again, self._pending = self._pending[1:], []
            self.line -= len(again)
            self._again.extendleft(reversed(again))
            yield None
        raise SondeError(f"{_MOST_STRAYS} quotes are opened and never closed, the last on line {self.line}")

    def _rows(self) -> Iterator[list[str]]:
        """Rows until the end or, with its lines pending, until a cell that does not end."""
        self.ended = False
        try:
            for row in self._dialect.reader(self._remembered()):
                if self.ended:
                    return
                self._pending.clear()
                if row:
                    yield row
        except csv.Error:
            return

    def _remembered(self) -> Iterator[str]:
        while line := self._again.popleft() if self._again else self._lines.readline(_LONGEST_LINE):
            self._pending.append(line)
            self.line += 1
            if len(line) == _LONGEST_LINE:
                raise SondeError(f"line {self.line} is longer than {_LONGEST_LINE:,} characters: {_NO_TABLE}")
            yield line
        self.ended = True


def sample_lines(stream: ByteStream, encoding: str) -> list[str]:
    """The whole lines among a stream's first bytes, with their ends.

    Raises:
        SondeError: The first line is longer than that, so that it can be no header; or the stream is not text.
    """
    sample = stream.sample
    text = codecs.getincrementaldecoder(encoding)("surrogateescape").decode(sample)
    if text.count("\0", 0, _BEGINNING) > _MOST_NULS:
        if sample.startswith(b"PK\3\4"):
            raise SondeError(f"{stream.name} is a ZIP archive, not a text file: unpack it")
        raise SondeError(f"{stream.name} is not a text file: it contains NUL bytes; save it as text in UTF-8")
    lines = list(io.StringIO(text, newline=""))
    if len(sample) < SAMPLE_BYTES:
        return lines
    if len(lines) < 2:
        raise SondeError(f"the first line of {stream.name} is longer than {SAMPLE_BYTES:,} bytes: {_NO_TABLE}")
    return lines[:-1]


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

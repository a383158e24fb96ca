"""CSV, TSV and their relatives."""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from ..document import Skipped
from ..errors import SondeError
from .bytestream import SAMPLE_BYTES, ByteStream
from .dialect import CsvDialect, column_names, has_header, sniff_dialect
from .encoding import decoded_lines, detect_encoding
from .options import ReadOptions
from .source import Item, Meter, Row, Source

_LONGEST_CELL = 1 << 28


class Delimited(Source):
    """Rows of a file with one record per line, or several lines where a cell is quoted."""

    textual = True

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self._encoding = options.encoding or detect_encoding(stream.sample)
        lines = sample_lines(stream, self._encoding)
        self.dialect = sniff_dialect(lines, options.separator, tabs_first=format == "tsv")
        rows = [row for row in self.dialect.reader(iter(lines)) if row]
        if not rows:
            raise SondeError(f"{self.name} is empty: give a file with content")
        self._named = has_header(rows)
        self.heading = tuple(rows[0]) if self._named else ()
        self._header = column_names(rows[0] if self._named else [""] * len(rows[0]))
        self.note = self._how()
        self.nothing = f"has a header ({', '.join(self._header)}) but no rows: give a file with content"

    def items(self, meter: Meter) -> Iterator[Item]:
        """Rows as they stand in the file; "row 1" follows the header."""
        with self._stream.open(meter) as file, decoded_lines(file, self._encoding) as lines:
            records = _Records(lines, self.dialect)
            rows = islice(records, 1, None) if self._named else iter(records)
            for number, row in enumerate(rows, start=1):
                yield self._item(f"row {number}", row, records.line)

    def _how(self) -> str:
        names = {"\t": "tab", "\x1f": "none"}
        delimiter = names.get(self.dialect.delimiter, repr(self.dialect.delimiter))
        quotes = "" if self.dialect.quotechar else ", without quoting"
        return f"delimiter {delimiter}{quotes}, {self._encoding}" + ("" if self._named else ", no header")

    def _item(self, origin: str, row: Sequence[str] | None, line: int) -> Item:
        if row is None:
            return Skipped(origin, f"a quote is opened on line {line} and never closed")
        if len(row) != len(self._header):
            cells = f"{len(row)} cell{'s' if len(row) != 1 else ''} instead of {len(self._header)}"
            return Skipped(origin, f"{cells} (line {line})")
        return Row(origin, dict(zip(self._header, row, strict=True)))


class _Records:
    """Rows of cells, without blank lines; None for a line whose quote is never closed. `line` is the last line read."""

    def __init__(self, lines: Iterable[str], dialect: CsvDialect) -> None:
        self._lines = iter(lines)
        self._dialect = dialect
        self._pending: list[str] = []
        self._ended = False
        self.line = 0

    def __iter__(self) -> Iterator[list[str] | None]:
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        while True:
            yield from self._rows()
            if not self._pending:
                return
            # The lines after a stray quote are no part of its cell: they are read again.
            again, self._pending = self._pending[1:], []
            self.line -= len(again)
            self._lines = chain(again, self._lines)
            yield None

    def _rows(self) -> Iterator[list[str]]:
        """Rows until the end or, with its lines pending, until a cell that does not end."""
        self._ended = False
        try:
            for row in self._dialect.reader(self._remembered()):
                if self._ended:
                    return
                self._pending.clear()
                if row:
                    yield row
        except csv.Error:
            return

    def _remembered(self) -> Iterator[str]:
        for line in self._lines:
            self._pending.append(line)
            self.line += 1
            yield line
        self._ended = True


def sample_lines(stream: ByteStream, encoding: str) -> list[str]:
    """The whole lines among a stream's first bytes, with their ends.

    Raises:
        SondeError: The first line is longer than that, so that it can be no header.
    """
    sample = stream.sample
    text = codecs.getincrementaldecoder(encoding)("surrogateescape").decode(sample)
    lines = list(io.StringIO(text, newline=""))
    if len(sample) < SAMPLE_BYTES:
        return lines
    if len(lines) < 2:
        raise SondeError(
            f"the first line of {stream.name} is longer than {SAMPLE_BYTES:,} bytes: set its format (--format)"
        )
    return lines[:-1]

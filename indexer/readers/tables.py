"""Rows of Parquet files, Arrow tables and worksheets."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError, SondeError, UsageError, did_you_mean
from ..wording import counted, listed
from .bytestream import ByteStream
from .delimited import LINES, column_names, sheet_start
from .source import Item, Meter, ReadOptions, Row, Source, row_of

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1000
_INDEX = re.compile(r"__index_level_\d+__")
"""How pandas calls the columns of an index without a name."""


def index_columns(names: Iterable[str], options: ReadOptions) -> tuple[list[str], str]:
    """Return the columns of an index of pandas that are left out of a table, and a note that says so; "" for none."""
    chosen = {options.id, options.id_hint, options.title, *options.texts}
    left = [name for name in names if _INDEX.fullmatch(name) and name not in chosen]
    return left, f"without pandas' index {', '.join(left)}" if left else ""


def rows_of(batches: Iterable["pa.RecordBatch"], meter: Meter) -> Iterator[Item]:
    """The rows of the batches, in slices of at most `BATCH_ROWS`; `meter` counts them."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            columns = [_values(column) for column in part.columns]
            for values in zip(*columns, strict=True):
                meter.done += 1
                yield row_of(f"row {meter.done}", dict(zip(part.schema.names, values, strict=True)))


def _values(column: "pa.Array[Any]") -> list[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):  # dates beyond the year 9999, or strings that are no UTF-8
        return [_arrow_value(item) for item in column]


def _arrow_value(item: "pa.Scalar[Any]") -> Any:
    try:
        return item.as_py()
    except UnicodeDecodeError:
        return item.as_buffer().to_pybytes().decode(errors="surrogateescape")
    except (ValueError, OverflowError):
        return str(item.cast("int64", safe=False).as_py()) if item.is_valid else None


class Parquet(Source):
    """The rows of a Parquet file; a compressed or piped one through a temporary copy."""

    nothing = "has columns but no rows: give a file with content"

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise MissingExtraError("pyarrow", "formats", "reading Parquet") from error
        self.name = stream.name
        self._stream = stream.on_disk()
        self.total = stream.size if stream.size is not None else self._stream.size
        try:
            metadata = pq.read_metadata(str(self._stream.path))
        except (pa.ArrowException, OSError) as error:
            raise SondeError(
                f"{self.name} is not a valid Parquet file, or is truncated: get a new copy ({_line(error)})"
            ) from error
        self._rows = self.items_total = metadata.num_rows
        self._left, self.note = index_columns(metadata.schema.to_arrow_schema().names, options)

    def items(self, meter: Meter) -> Iterator[Item]:
        """The rows in file order; "row 1" is the first."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        counted = Meter()
        try:
            # Read ahead, Arrow would keep all that it has read until the file is closed.
            with pq.ParquetFile(str(self._stream.path), buffer_size=1 << 20, pre_buffer=False) as file:
                batches = file.iter_batches(BATCH_ROWS)
                for row in rows_of((batch.drop_columns(self._left) for batch in batches), counted):
                    meter.done = (self.total or 0) * counted.done // max(self._rows, 1)
                    yield row
        except MemoryError:  # Arrow's own is one of its other errors too
            raise
        except (pa.ArrowException, OSError) as error:
            raise SondeError(
                f"{self.name} is damaged after row {counted.done}: get a new copy ({_line(error)})"
            ) from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


class Workbook(Source):
    """The rows of a worksheet below its first row with content."""

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        import python_calamine

        self.name = stream.name
        self.format = format
        self._stream = stream.on_disk()
        self.total = stream.size if stream.size is not None else self._stream.size
        with self._errors():
            self._book = python_calamine.CalamineWorkbook.from_path(str(self._stream.path))
            self._sheet, others = self._chosen(options.sheet)
            self._top, self._names = self._header()
        self.note = f"sheet {self._sheet!r}" + (f", the largest; not read: {others}" if others else "")
        self.note += f"; {self.above}" if self.begins else ""
        self.nothing = (
            f"has a header ({listed(self._names)}) but no rows in sheet {self._sheet!r}: give one with content"
        )

    def items(self, meter: Meter) -> Iterator[Item]:
        """Rows with content; "row 12" is the row that a spreadsheet program numbers 12."""
        with self._errors():
            sheet = self._book.get_sheet_by_name(self._sheet)
            last = sheet.end[0] + 1 if sheet.end else 1
            for number, cells in enumerate(sheet.iter_rows(), start=1):
                if number > self._top and any(cell != "" for cell in cells):
                    meter.done = (self.total or 0) * number // last
                    yield Row(f"row {number}", dict(zip(self._names, map(_cell_value, cells), strict=True)))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import python_calamine

        try:
            yield
        except python_calamine.PasswordError as error:
            raise SondeError(f"{self.name} is protected by a password: save it again as .xlsx ({error})") from error
        except (GeneratorExit, KeyboardInterrupt, MemoryError, SondeError):
            raise
        except BaseException as error:  # calamine's own, those of its zip and XML readers, and the panics of Rust
            said = f"{self.name} is damaged or not a workbook: save it again as .xlsx ({_line(error)})"
            raise SondeError(said) from error

    def _header(self) -> tuple[int, list[str]]:
        """Return the number of the first row with content, and the names of the columns; also set `begins`."""
        numbered = enumerate(self._book.get_sheet_by_name(self._sheet).iter_rows(), start=1)
        filled = ((number, cells) for number, cells in numbered if any(cell != "" for cell in cells))
        rows = [(number, [str(_cell_value(cell)) for cell in cells]) for number, cells in islice(filled, LINES)]
        if not rows:
            return 0, []
        self.begins = sheet_start(rows)
        return rows[0][0], column_names(rows[0][1])

    def _chosen(self, name: str | None) -> tuple[str, str]:
        """Return the sheet to read and, unless it was given, the others that have rows."""
        names = self._book.sheet_names
        if name is not None and name not in names:
            near = did_you_mean(name, names)
            said = f"{self.name} has no sheet {name!r}{near}; it has {', '.join(map(repr, names))}"
            raise UsageError(said, code="not-found", field="sheet", value=name, alternatives=names)
        if name is not None:
            return name, ""
        heights = {sheet: self._book.get_sheet_by_name(sheet).height for sheet in names}
        filled = {sheet: height for sheet, height in heights.items() if height > 0}
        if not filled:
            raise SondeError(f"{self.name} is empty: none of its sheets ({listed(names)}) has a cell")
        chosen = max(filled, key=lambda sheet: filled[sheet])
        rest = [f"{sheet!r} ({counted(height - 1, 'row')})" for sheet, height in filled.items() if sheet != chosen]
        return chosen, ", ".join(rest)


def _cell_value(cell: Any) -> Any:
    """Excel knows no integers: a number without a fraction is meant as one."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell

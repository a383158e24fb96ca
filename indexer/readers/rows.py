"""The rows of one table as they stand, for files whose columns are not those of a document."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..document import Skipped
from ..errors import SondeError, UsageError
from .bytestream import ByteStream
from .delimited import Delimited
from .formats import TEXT_FORMATS, format_by_name, table_source
from .options import ReadOptions
from .read import present
from .source import Meter, Place, Row, explained

Heading = Callable[[Sequence[str]], bool]


def read_rows(path: Path, is_heading: Heading, options: ReadOptions = ReadOptions()) -> Iterator[tuple[str, list[Any]]]:
    """Yield the origin and the cells of every row; that of the names, if there is one, has the origin "".

    A CSV file may have no heading. Where the usual rule sees one, `is_heading` is asked too; if it says no, the first
    row is a row like the others. Records of JSON and Parquet have names; all rows have the columns of the first.

    Args:
        path: CSV, TSV, JSON, JSONL, Parquet or XLSX, also compressed. Any other text is taken for CSV.
        is_heading: Whether the first cells of a CSV file are names.
        options: Delimiter, encoding, format and sheet, where they are known.

    Raises:
        UsageError: The format is unknown.
        SondeError: The file is missing, empty or damaged, or a row cannot be read.
    """
    present(path)
    if options.format is None and format_by_name(path) in TEXT_FORMATS:
        options = ReadOptions(format="csv", delimiter=options.delimiter, encoding=options.encoding)
    if options.format is None and path.is_file() and format_by_name(path) is None:
        raise UsageError(f"cannot tell the format of {path}: name it .csv, .tsv, .jsonl, .parquet or .xlsx")
    name, place = str(path), Place()
    with explained(name, place):
        source = table_source(ByteStream(name, path), options)
        names: list[str] = []
        shift = 0
        for number, item in enumerate(source.items(Meter()), start=1):
            place.origin = item.origin
            if isinstance(item, Skipped):
                raise SondeError(f"{name}, {item.origin}: {item.reason}")
            if not isinstance(item, Row):
                raise SondeError(f"{name} holds texts, not rows with columns: give CSV, TSV, JSONL or Parquet")
            if not names:
                names = list(item.values)
                heading = source.heading if isinstance(source, Delimited) else tuple(names)
                shift = int(bool(heading) and isinstance(source, Delimited) and not is_heading(heading))
                if heading:
                    yield "row 1" if shift else "", list(heading)
            yield f"row {number + 1}" if shift else item.origin, [item.values.get(name) for name in names]
        if not names:
            if isinstance(source, Delimited) and source.heading and not is_heading(source.heading):
                yield "row 1", list(source.heading)
                return
            raise SondeError(f"{name} {source.nothing}")

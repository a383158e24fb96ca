"""A look at a source before it is indexed: its columns, their roles, its first rows, and how many there are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ..document import Document, Skipped
from ..errors import UsageError
from .column_finder import column_types, find_columns
from .columns import Columns, merged
from .read import file_sources
from .reading import check_sample
from .source import Item, Meter, Place, ReadOptions, Row, Source, source_errors
from .values import cell_text, natural

SAMPLE = 1_000
"""Rows on which columns are decided, as they are when the source is read."""
FILES = 20
"""Files of a folder that are opened: a PDF takes its time."""
SHOWN = 20
COUNTED_BYTES = 8_000_000
"""A table of this size is counted to its end, in a second or less."""
_LONGEST_CELL = 300


@dataclass(frozen=True)
class Preview:
    """What a source looks like.

    Attributes:
        columns: The roles found; None where no column can be the text.
        problem: Why there is no text column, empty if there is one.
        types: Every column with its type: text, integer, real, boolean, date, list or empty.
        rows: The first rows, by column, as texts, long ones shortened.
        count: Rows or files in all.
        exact: Whether `count` is known; otherwise it is estimated from the share that was read.
        skipped: Those of the first rows that cannot be read.
        fixed: Whether the format itself says what is the text, as that of a PDF does.
    """

    columns: Columns | None
    problem: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[Mapping[str, str]] = ()
    count: int = 0
    exact: bool = True
    skipped: Sequence[Skipped] = ()
    fixed: bool = False


def preview(paths: Sequence[Path], options: ReadOptions) -> Preview:
    """Look at the first rows of files or folders.

    Raises:
        UsageError: A column that was set does not exist, or the format is unknown.
        SondeError: A file is missing, empty, damaged or may not be read.
    """
    looks = [_look(source, options) for source in file_sources(paths, options)]
    found = [(str(number), look.columns) for number, look in enumerate(looks) if look.columns]
    rows = [row for look in looks for row in look.rows]
    types: dict[str, str] = {}
    for look in looks:
        types |= {name: kind for name, kind in look.types.items() if types.get(name, "empty") == "empty"}
    return Preview(
        merged(found) if len(found) == len(looks) else None,
        next((look.problem for look in looks if look.problem), ""),
        types,
        rows[:SHOWN],
        sum(look.count for look in looks),
        all(look.exact for look in looks),
        [row for look in looks for row in look.skipped],
        all(look.fixed for look in looks),
    )


def _look(source: Source, options: ReadOptions) -> Preview:
    meter, limit = Meter(), SAMPLE if source.columns is None else FILES
    with source_errors(source.name, Place()):
        stream = source.items(meter)
        items = list(islice(stream, limit))
        check_sample(source, items)
        count, exact = _count(source, len(items), stream, meter)
    skipped = [item for item in items if isinstance(item, Skipped)]
    shown = [_cells(item) for item in items if not isinstance(item, Skipped)]
    if source.columns is not None:
        types = dict(source.columns.metadata) | {"title": "text", "content": "text"}
        return Preview(source.columns, "", types, shown[:SHOWN], count, exact, skipped, True)
    rows = [item for item in items if isinstance(item, Row)]
    types = column_types(rows, source.textual)
    columns, problem = _columns(rows, options, source)
    return Preview(columns, problem, types, shown[:SHOWN], count, exact, skipped)


def _columns(rows: Sequence[Row], options: ReadOptions, source: Source) -> tuple[Columns | None, str]:
    try:
        return find_columns(rows, options, source.textual, source.note).columns, ""
    except UsageError as error:
        if options.texts or options.title or options.id:
            raise
        return None, str(error)


def _count(source: Source, read: int, rest: Iterator[Item], meter: Meter) -> tuple[int, bool]:
    """Return how many items there are, and whether that is known, after the first `read` of them."""
    if source.items_total is not None:
        return source.items_total, True
    if source.total is not None and source.total <= COUNTED_BYTES:
        return read + sum(1 for _ in rest), True
    if next(rest, None) is None:
        return read, True
    if not source.total or not meter.done:
        return read + 1, False
    return max(read + 1, round(read * source.total / meter.done)), False


def _cells(item: Item) -> dict[str, str]:
    if isinstance(item, Document):
        values: Iterable[tuple[str, object]] = {"title": item.title, "content": item.text, **item.metadata}.items()
    else:
        values = item.values.items() if isinstance(item, Row) else ()
    return {name: _short(cell_text(natural(value))) for name, value in values}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"

"""Read any source as documents, and preview what a reader would take from it."""

import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ..document import Document, Skipped
from ..errors import SondeError, UsageError, arg, did_you_mean
from ..progress import Notify, silent
from ..wording import cut, listed, on_one_line, shown_path
from .child_table import ChildTable
from .column_finder import column_types, find_columns
from .columns import Columns, merged
from .formats import format_by_name
from .python_objects import python_source
from .reading import Part, Reading, check_sample
from .references import BEGINNING, references_in
from .source import TEXT_FORMATS, Item, Meter, Place, ReadOptions, Row, Source, source_errors
from .text_files import TextFiles
from .values import cell_text, natural

_STDIN = "-"
_DEFAULTS = ReadOptions()


def read_source(source: Any, *, options: ReadOptions = _DEFAULTS, notify: Notify = silent) -> Reading:
    """Open a source and find out what its columns are.

    Args:
        source: A path, "-" for standard input, a list of those; or a list or generator of str, dict or `Document`, a
            pandas or Polars DataFrame, an Arrow table, a Hugging Face dataset. A list of str counts as paths if one of
            them exists or all end like a file that can be read; `Path` objects leave no doubt.
        options: What is known about the source; the rest is found by name and content.
        notify: Receives a sentence if a pipe or standard input sends nothing for some seconds.

    Raises:
        UsageError: A column that was set does not exist, no column can be the text, or the format is unknown.
        SondeError: A file is missing, empty, damaged or may not be read.
    """
    paths = source_paths(source)
    sources = [python_source(source, options)] if paths is None else list(file_sources(paths, options, notify))
    _check_used(sources, options)
    return Reading(_parts(sources, options))


def _parts(sources: Sequence[Source], options: ReadOptions) -> list[Part]:
    """Decide the columns of each source; later ones are read as the earlier ones are written.

    Raises:
        UsageError: A column that was given a type is in none of them.
    """
    parts: list[Part] = []
    for one in sources:
        reading = Reading(parts)
        types, forms = reading.given_types, reading.forms
        hints = {"type_hint": {**options.type_hint, **types}, "form_hint": {**options.form_hint, **forms}}
        parts.append(Part(one, replace(options, **hints)))
    names = {name: None for part in parts for name in part.names}
    for name in options.type:
        if name not in names:
            near = did_you_mean(name, list(names))
            said = f"there is no column {on_one_line(name)!r} to give a type{near}; there are {listed(list(names))}"
            raise UsageError(said, code="not-found", field="type", value=name, alternatives=names)
    return parts


def _check_used(sources: Sequence[Source], options: ReadOptions) -> None:
    """Refuse an option that no source uses.

    Raises:
        UsageError: There is one.
    """
    formats = {source.format for source in sources}
    unused = [name for name in ("text", "title", "id", "language", "type") if getattr(options, name)]
    if unused and all(source.columns for source in sources):
        raise _unused(unused[0], options, sources, "holds texts without columns")
    if options.sheet is not None and "xlsx" not in formats:
        raise _unused("sheet", options, sources, "is not a workbook")
    if options.delimiter is not None and not formats & {"csv", "tsv"}:
        raise _unused("delimiter", options, sources, "is not a CSV file")


def _unused(field: str, options: ReadOptions, sources: Sequence[Source], reason: str) -> UsageError:
    said = f"{sources[0].name} {reason}: leave out {arg(field)}"
    return UsageError(said, code="conflict", field=field, value=getattr(options, field))


def source_paths(source: Any) -> list[str | Path] | None:
    """Return the paths that a source names; None if it is rows or texts.

    Raises:
        UsageError: A list of texts may be one of files.
    """
    if isinstance(source, (str, Path)):
        return [source]
    if not isinstance(source, (list, tuple)) or not source or not all(isinstance(one, (str, Path)) for one in source):
        return None
    if any(isinstance(one, Path) for one in source):
        return list(source)
    named = next((one for one in source if _exists(one) and _is_named_like_a_file(one)), None)
    if named is None and all(" " not in one and format_by_name(Path(one)) for one in source):
        named = source[0]
    if named is not None:  # a text from a stranger must not have a file read
        shown = reprlib.repr(named)
        said = f"{shown} in a list is a text or the name of a file: give files as Path objects, texts as {{'text': …}}"
        raise UsageError(said, code="wrong-type", field="source", value=named)
    return None


def _is_named_like_a_file(text: str) -> bool:
    return bool(Path(text).suffix) or len(Path(text).parts) > 1


def _exists(name: str) -> bool:
    try:
        return name == _STDIN or Path(name).exists()
    except (OSError, ValueError):  # a text that is too long, or holds a NUL, is no path
        return False


def file_sources(paths: Sequence[str | Path], options: ReadOptions, notify: Notify = silent) -> Iterator[Source]:
    """Yield one source for each table, and a single one for all folders and text files together."""
    existing = [path if str(path) == _STDIN else present(Path(path)) for path in paths]
    texts = [path for path in existing if isinstance(path, Path) and str(path) != _STDIN and _is_text(path, options)]
    if texts:
        yield TextFiles(_name(texts), texts, options)
    for path in existing:
        if str(path) == _STDIN:
            yield _table("standard input", None, options, notify)
        elif path not in texts:
            yield _table(str(path), Path(path), options, notify)


def _table(name: str, path: Path | None, options: ReadOptions, notify: Notify = silent) -> Source:
    with source_errors(name, Place()):
        return ChildTable(name, path, options, notify)


def _name(paths: Sequence[Path]) -> str:
    return str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _is_text(path: Path, options: ReadOptions) -> bool:
    if path.is_dir() and options.format not in (None, *TEXT_FORMATS):
        raise UsageError(
            f"{path} is a folder, and files in a folder are read as texts: give its {options.format} files one by one"
        )
    if not path.is_file():
        return path.is_dir()
    named = (options.format or format_by_name(path)) in TEXT_FORMATS
    return named and (options.format is not None or not _has_references(path))


def _has_references(path: Path) -> bool:
    """Whether a file whose name ends in .txt has references: databases of papers name their exports so."""
    if path.suffix.lower() != ".txt":
        return False
    with source_errors(str(path), Place()), path.open("rb") as file:
        return references_in(file.read(BEGINNING)) is not None


def present(path: Path) -> Path:
    """Return the path.

    Raises:
        SondeError: Nothing is there, or it may not be looked at; what has a similar name is proposed.
    """
    try:
        path.stat()
    except FileNotFoundError:
        folder = path.parent
        siblings = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        near = did_you_mean(path.name, siblings)
        where = "" if folder.is_dir() else f", there is no folder {folder}"
        raise SondeError(f"{path} does not exist{near}{where}: check the path") from None
    except (OSError, ValueError) as error:
        raise SondeError(f"{shown_path(path)} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return path


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
    with source_errors(name, place):
        source = _table(name, path, options)
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
                heading = source.heading if source.heading is not None else tuple(names)
                shift = int(bool(heading) and source.heading is not None and not is_heading(heading))
                if heading:
                    yield "row 1" if shift else "", list(heading)
            yield f"row {number + 1}" if shift else item.origin, [item.values.get(name) for name in names]
        if not names:
            if source.heading and not is_heading(source.heading):
                yield "row 1", list(source.heading)
                return
            raise SondeError(f"{name} {source.nothing}")


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
        unreadable: How many of all rows or files cannot be read; None where not all were looked at.
        sampled: Rows that were looked at.
        different: How many different values each column has in them.
        encoding: Of the text that was read, several after each other; "" if it has none or each file has its own.
    """

    columns: Columns | None
    problem: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[Mapping[str, str]] = ()
    count: int = 0
    exact: bool = True
    skipped: Sequence[Skipped] = ()
    fixed: bool = False
    unreadable: int | None = None
    sampled: int = 0
    different: Mapping[str, int] = field(default_factory=dict)
    encoding: str = ""


def preview(paths: Sequence[Path], options: ReadOptions, id_hint: str | None = "") -> Preview:
    """Look at the first rows of files or folders, as they are read into a new collection or, with a hint, another.

    Raises:
        UsageError: A column that was set does not exist, or the format is unknown.
        SondeError: A file is missing, empty, damaged or may not be read.
    """
    options = replace(options, id_hint=id_hint)
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
        None if None in (known := [look.unreadable for look in looks]) else sum(filter(None, known)),
        sum(look.sampled for look in looks),
        {name: max(look.different.get(name, 0) for look in looks) for look in looks for name in look.different},
        ", ".join(dict.fromkeys(look.encoding for look in looks if look.encoding)),
    )


def _look(source: Source, options: ReadOptions) -> Preview:
    meter, limit = Meter(), SAMPLE if source.columns is None else FILES
    with source_errors(source.name, Place()):
        stream = source.items(meter)
        items = list(islice(stream, limit))
        check_sample(source, items, options)
        skipped = [item for item in items if isinstance(item, Skipped)]
        count, exact, later = _count(source, len(items), stream, meter)
    unreadable = None if later is None else len(skipped) + later
    shown = [_cells(item) for item in items if not isinstance(item, Skipped)]
    if source.columns is not None:
        types = dict(source.columns.metadata) | {"title": "text", "content": "text"}
        return Preview(source.columns, "", types, shown[:SHOWN], count, exact, skipped, True, unreadable,
                       encoding=source.encoding)  # fmt: skip
    rows = [item for item in items if isinstance(item, Row)]
    types = column_types(rows, source.textual)
    columns, problem = _columns(rows, options, source)
    different = {name: len({str(row.values[name]) for row in rows if row.values.get(name)}) for name in types}
    return Preview(
        columns, problem, types, shown[:SHOWN], count, exact, skipped,
        unreadable=unreadable, sampled=len(rows), different=different, encoding=source.encoding,
    )  # fmt: skip


def _columns(rows: Sequence[Row], options: ReadOptions, source: Source) -> tuple[Columns | None, str]:
    try:
        return find_columns(rows, options, source.textual, source.note).columns, ""
    except UsageError as error:
        if options.texts or options.title or options.id:
            raise
        return None, str(error)


def _count(source: Source, read: int, rest: Iterator[Item], meter: Meter) -> tuple[int, bool, int | None]:
    """Return how many items there are, and whether that is known, after the first `read` of them.

    Also return how many after these cannot be read, None where they were not looked at.
    """
    if source.items_total is not None:
        return source.items_total, True, 0 if read >= source.items_total else None
    if source.total is not None and source.total <= COUNTED_BYTES:
        later = Counter(isinstance(item, Skipped) for item in rest)
        return read + later.total(), True, later[True]
    if next(rest, None) is None:
        return read, True, 0
    if not source.total or not meter.done:
        return read + 1, False, None
    return max(read + 1, round(read * source.total / meter.done)), False, None


def _cells(item: Item) -> dict[str, str]:
    if isinstance(item, Document):
        values: Iterable[tuple[str, object]] = {"title": item.title, "content": item.text, **item.metadata}.items()
    else:
        values = item.values.items() if isinstance(item, Row) else ()
    return {name: cut(cell_text(natural(value)), _LONGEST_CELL) for name, value in values}

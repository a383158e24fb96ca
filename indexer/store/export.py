"""Reading a collection out again: the user's own columns under their own names."""

import csv
import io
import itertools
import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, TextIO

import numpy as np

from ..errors import MissingExtraError, SondeError, UsageError, arg, need, unknown_option
from ..files import check_target, write_output
from ..progress import Notify, silent
from .catalog import CHUNK, Catalog
from .collection import StoredCollection
from .documents import document_numbers
from .fields import Field, distinct_names, json_value, stored_text
from .ris import write_ris
from .runs import RunColumns
from .tabular import Formulas, Workbook, empty_columns
from .view import View, document_vectors

if TYPE_CHECKING:
    import pyarrow as pa

BUILT_IN = ("id", "title", "text")
ORIGIN = "origin"
"""Property: the path of the source that a collection was first made from, relative to the collection's folder."""
SOURCES = "sources"
"""Property: the paths of all sources, in the order in which they came, as `ORIGIN` has the first."""
SUFFIXES = (".xlsx", ".csv", ".parquet", ".jsonl", ".ris")
TABLES = (".xlsx", ".csv", ".jsonl")
"""Files of tables that are not of documents."""
PARQUET_ROWS = 10_000

Change = Callable[[dict[str, Any]], dict[str, Any]]
Choose = Callable[[Catalog], np.ndarray]
"""Returns the numbers of the documents that are wanted, ascending; all must exist in the generation that is read."""


def rows(
    collection: StoredCollection, *, vectors: bool = False, choose: Choose | None = None, indicators: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield one dictionary per document in the order of their numbers: id, title, text, metadata, runs and vector.

    All documents come from one generation. `RunColumns` says which columns runs add. A metadata column named like
    one of those is called `metadata.NAME`. `choose` names the documents that are wanted, all where None. `indicators`
    is a label run that also gets a column of 1 and 0 for each label, named "RUN: LABEL".
    `vector` is float32 [d]: the mean of the passages' vectors, of length 1 for a normalised model.
    """
    with collection.view() as view:
        docs = (choose or document_numbers)(view.catalog).tolist()
        runs = RunColumns(view.catalog, indicators)
        names = column_names(view.fields, runs.types)
        for offset in range(0, len(docs), CHUNK):
            some = docs[offset : offset + CHUNK]
            means = document_vectors(view, some) if vectors else None
            found, said = view.documents(some), runs.of(some)
            for place, doc in enumerate(some):
                document = found[doc]
                row: dict[str, Any] = {"id": document.id, "title": document.title, "text": document.text}
                row |= {column: document.metadata.get(name) for name, column in names.items()} | said[doc]
                yield row | ({"vector": means[place]} if means is not None else {})


def part_of(start: int, count: int | None, choose: Choose = document_numbers) -> Choose:
    """Return what chooses `count` of the documents that `choose` names, from the place `start` on."""
    return lambda catalog: choose(catalog)[start : None if count is None else start + count]


def only(docs: np.ndarray) -> Choose:
    """Return what chooses the documents of these int64 numbers; numbers that no longer exist are ignored."""
    return lambda catalog: np.intersect1d(docs, document_numbers(catalog))


def column_names(fields: Collection[str], runs: Iterable[str]) -> dict[str, str]:
    """Return the name under which each metadata field is exported beside the columns of `runs`."""
    return distinct_names(fields, (*BUILT_IN, "vector", *runs))


def check_export_target(path: Path) -> None:
    """Check where an export is to go, before the work is done.

    Raises:
        UsageError: It is a folder, or its suffix is none that can be written.
        SondeError: Its folder does not exist.
        MissingExtraError: pyarrow is not installed, and the suffix is .parquet.
    """
    check_target(path, SUFFIXES, "export to")
    if path.suffix.lower() == ".parquet":
        need("pyarrow", "pyarrow", "formats", "writing Parquet")


def is_origin(folder: Path, origin: object, source: Path) -> bool:
    """Whether a path is what the property ORIGIN of a collection in `folder` names."""
    return isinstance(origin, str) and (folder.absolute().parent / origin).resolve() == source.expanduser().resolve()


def refuse_source(collection: StoredCollection, path: Path) -> None:
    """Refuse to overwrite a file that a collection was made from.

    Raises:
        UsageError: It is one.
    """
    sources = collection.get(SOURCES)
    known = [collection.get(ORIGIN), *(sources if isinstance(sources, list) else [])]
    if path.exists() and any(is_origin(collection.path, each, path) for each in known):
        which = "the file" if len(known) < 3 else "a file"
        said = f"{path} is {which} that the collection was made from: write to another file"
        raise UsageError(said, code="conflict", field="to", value=str(path))


def write_export(
    collection: StoredCollection,
    path: Path,
    *,
    vectors: bool = False,
    without: Container[str] = (),
    choose: Choose | None = None,
    columns: Sequence[str] | None = None,
    raw_formulas: bool = False,
    filled: bool = False,
    indicators: str | None = None,
    change: Change | None = None,
    progress: Notify = silent,
) -> int:
    """Write documents to an XLSX, CSV, Parquet, JSONL or RIS file by its suffix; return how many. It appears whole.

    Args:
        collection: What is read.
        path: The file.
        vectors: Whether each document's vector is written too.
        without: Ids of documents that are left out.
        choose: Names the documents that are wanted; all where None.
        columns: The columns that are written, in this order, all where None; vectors come after them.
        raw_formulas: Whether cells of a CSV file that a spreadsheet would run as formulas stay as they are.
        filled: Whether a workbook of all columns leaves out those that are empty in every row; a sheet names them.
        indicators: See `rows`.
        change: Returns each row as it is to be written.
        progress: Receives a sentence if such cells were changed, or if texts were too long for a workbook.

    Raises:
        UsageError: The suffix is none of these, vectors are to go into a workbook, a column does not exist, or it is
            the file that the collection was made from.
        SondeError: The file cannot be written, there are more documents than a workbook holds, or there is no document
            to write and the file exists.
    """
    check_export_target(path)
    refuse_source(collection, path)
    suffix = path.suffix.lower()
    if suffix in (".xlsx", ".ris") and vectors:
        where = "a workbook" if suffix == ".xlsx" else "a .ris file"
        raise UsageError(f"{where} has no room for vectors: write a .parquet file", field="vectors", value=True)
    formulas, notes, empty = Formulas(raw_formulas), list[str](), list[str]()
    writers = {
        ".parquet": partial(_write_parquet, indicators),
        ".csv": partial(_write_csv, formulas),
        ".jsonl": _write_lines,
        ".ris": lambda _, documents, stream, names: write_ris(documents, stream, names),
    }
    writer = partial(_write_xlsx, notes, empty) if suffix == ".xlsx" else writers[suffix]
    some = (
        row
        for row in rows(collection, vectors=vectors, choose=choose, indicators=indicators)
        if row["id"] not in without
    )

    def write(stream: IO[bytes]) -> None:
        writer(collection, counted, stream, names)
        if not counted.count and path.exists():
            said = f"there is no document to write, and {path} exists: it stays as it is"
            raise SondeError(said, code="no-documents")

    with collection.view():  # the names of the columns and the rows come from one generation
        names = _columns(collection, columns, vectors, indicators)
        if filled and suffix == ".xlsx" and columns is None:
            empty += empty_columns(names, rows(collection, choose=choose, indicators=indicators))
            names = [name for name in names if name not in empty]
        counted = _Counted(_only(some, names, change))
        write_output(path, write)
    quoted = formulas.note(".jsonl and .parquet", ": use one of these to index the export again")
    for note in filter(None, (quoted, *notes)):
        progress(note)
    return counted.count


def write_table(
    table: Sequence[dict[str, Any]], path: Path, sheet: str, widths: Mapping[str, int], *, raw_formulas: bool = False,
    progress: Notify = silent,
) -> None:  # fmt: skip
    """Write rows that all have the same columns to an XLSX, CSV or JSONL file by its suffix.

    Args:
        table: The rows; at least one.
        path: The file.
        sheet: Name of the sheet of a workbook.
        widths: Widths of its columns, in characters, where they differ from the usual one.
        raw_formulas: Whether cells of a CSV file that a spreadsheet would run as formulas stay as they are.
        progress: Receives a sentence if such cells were changed, or if texts were too long for a workbook.

    Raises:
        UsageError: The file has another suffix.
        SondeError: The file cannot be written.
    """
    check_target(path, TABLES, "write groups to")
    formulas, notes, names = Formulas(raw_formulas), list[str](), list(table[0])

    def write(stream: IO[bytes]) -> None:
        if path.suffix.lower() == ".xlsx":
            with TemporaryDirectory(prefix="sonde-") as folder:
                workbook = Workbook(stream, names, folder, sheet, widths, wrap=True)
                workbook.write(table)
                workbook.close()
            notes.append(workbook.note())
        elif path.suffix.lower() == ".csv":
            _write_rows(stream, names, table, formulas)
        else:
            stream.writelines(json.dumps(_plain(row), ensure_ascii=False).encode() + b"\n" for row in table)

    write_output(path, write)
    for note in filter(None, (formulas.note(".jsonl"), *notes)):
        progress(note)


def write_jsonl(
    collection: StoredCollection, stream: TextIO, *, vectors: bool = False, choose: Choose | None = None,
    columns: Sequence[str] | None = None, indicators: str | None = None, change: Change | None = None,
) -> int:  # fmt: skip
    """Write documents, all or those that `choose` names, as JSON lines to an open text stream; return how many.

    Raises:
        UsageError: A column does not exist.
    """
    with collection.view():
        names = _columns(collection, columns, vectors, indicators)
        found = rows(collection, vectors=vectors, choose=choose, indicators=indicators)
        counted = _Counted(_only(found, names, change))
        for row in counted:
            stream.write(json.dumps(_plain(row), ensure_ascii=False) + "\n")
    return counted.count


def all_columns(collection: StoredCollection, indicators: str | None = None) -> list[str]:
    """Return the columns of an export, without that of the vectors."""
    with collection.view() as view:
        runs = RunColumns(view.catalog, indicators).types
        return [*BUILT_IN, *column_names(view.fields, runs).values(), *runs]


def _columns(
    collection: StoredCollection, wanted: Sequence[str] | None, vectors: bool, indicators: str | None
) -> list[str]:
    """Return the columns that are written: those that are wanted, or all, and those of indicators and vectors.

    Raises:
        UsageError: A column does not exist, or none is wanted.
    """
    known = all_columns(collection, indicators)
    if unknown := [name for name in wanted or [] if name not in known]:
        raise unknown_option("columns", unknown[0], known)
    if wanted is not None and not wanted:
        raise UsageError(f"{arg('columns')} is empty: name a column", code="empty", field="columns", value=wanted)
    more = [] if indicators is None else [name for name in known if name not in all_columns(collection)]
    return [*dict.fromkeys(known if wanted is None else [*wanted, *more]), *(["vector"] if vectors else [])]


def _only(
    table: Iterator[dict[str, Any]], names: Sequence[str], change: Change | None
) -> Iterator[dict[str, Any]]:  # fmt: skip
    some = ({name: row[name] for name in names if name in row} for row in table)
    return map(change, some) if change else some


class _Counted:
    """Counts what is counted from an iterator."""

    def __init__(self, items: Iterator[dict[str, Any]]) -> None:
        self.items = items
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for item in self.items:
            self.count += 1
            yield item


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else json_value(value) for name, value in row.items()}


def _write_lines(_: StoredCollection, documents: _Counted, stream: IO[bytes], __: list[str]) -> None:
    for row in documents:
        stream.write(json.dumps(_plain(row), ensure_ascii=False).encode() + b"\n")


def _write_csv(
    formulas: Formulas, _: StoredCollection, documents: _Counted, stream: IO[bytes], names: list[str]
) -> None:
    _write_rows(stream, names, documents, formulas)


def _write_rows(stream: IO[bytes], names: list[str], table: Iterable[dict[str, Any]], formulas: Formulas) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.DictWriter(text, names)
    writer.writerow({name: formulas.cell(name) for name in names})
    for row in table:
        cells = _plain(row).items()
        writer.writerow({n: json.dumps(v) if isinstance(v, list) else formulas.cell(v) for n, v in cells})
    text.detach()


def _write_xlsx(
    notes: list[str], empty: Sequence[str], _: object, documents: _Counted, stream: IO[bytes], names: list[str]
) -> None:
    with TemporaryDirectory(prefix="sonde-") as folder:
        workbook = Workbook(stream, names, folder)
        workbook.write(documents)
        workbook.name_left_out(empty)
        workbook.close()
    notes.append(workbook.note())


def _write_parquet(
    indicators: str | None, collection: StoredCollection, documents: _Counted, stream: IO[bytes], names: list[str]
) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("pyarrow", "formats", "writing Parquet") from error
    with collection.view() as view:
        schema = _arrow_schema(view, "vector" in names, indicators)
        schema = pa.schema([schema.field(name) for name in names])
    with pq.ParquetWriter(stream, schema) as writer:
        for some in _slices(documents):
            columns = [[_cell(row[name], schema.field(name).type) for row in some] for name in schema.names]
            writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema))


def _slices(documents: _Counted) -> Iterator[list[dict[str, Any]]]:
    counted = iter(documents)
    while some := list(itertools.islice(counted, PARQUET_ROWS)):
        yield some


def _arrow_schema(view: View, vectors: bool, indicators: str | None) -> "pa.Schema":
    """Return the columns' types; times and lists of mixed items are kept as text, as JSON in the case of lists."""
    import pyarrow as pa

    runs = RunColumns(view.catalog, indicators).types
    kinds = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_()}
    columns = [(name, pa.string()) for name in BUILT_IN]
    names = column_names(view.fields, runs)
    for field in view.fields.values():
        kind = kinds.get(field.type) or (_date_type(view, field) if field.type == "date" else _list_type(view, field))
        columns.append((names[field.name], kind))
    run_types = kinds | {"texts": pa.list_(pa.string())}
    columns += [(name, run_types[kind]) for name, kind in runs.items()]
    if vectors:
        columns.append(("vector", pa.list_(pa.float32(), view.generation.segments.dimension)))
    return pa.schema(columns)


def _date_type(view: View, field: Field) -> "pa.DataType":
    import pyarrow as pa

    sql = f"SELECT 1 FROM metadata WHERE instr({field.column}, 'T') LIMIT 1"
    return pa.timestamp("us") if any(True for _ in view.catalog.select(sql)) else pa.date32()


def _list_type(view: View, field: Field) -> "pa.DataType":
    import pyarrow as pa

    sql = f"SELECT DISTINCT e.type FROM metadata m, json_each(m.{field.column}) e WHERE e.type != 'null'"
    kinds = {kind for (kind,) in view.catalog.select(sql)}
    items = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64()}
    return pa.list_(items[kinds.pop()]) if len(kinds) == 1 and kinds <= set(items) else pa.string()


def _cell(value: Any, kind: "pa.DataType") -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return stored_text(value) if pa.types.is_string(kind) and isinstance(value, list) else value

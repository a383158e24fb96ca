"""Lists, generators, DataFrames, Arrow tables, Hugging Face datasets; none of their libraries is imported here."""

import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..document import Document, Skipped, Value, composed
from ..errors import UsageError
from ..wording import listed
from .source import Item, Meter, ReadOptions, Row, Source, row_of
from .tables import BATCH_ROWS, index_columns, rows_of
from .values import NestedError, flattened, natural

_ACCEPTED = (
    "a path, a list or generator of str, dict or Document, a pandas or Polars DataFrame or Series, an Arrow table or "
    "RecordBatchReader, or a Hugging Face dataset"
)
_Start = Callable[[Meter], Iterator[Item]]


class PythonObject(Source):
    """The rows of an object in memory, or of an iterator."""

    unit = "rows"
    nothing = "holds no rows: give an object with content"

    def __init__(
        self,
        name: str,
        start: _Start,
        total: int | None,
        once: bool = False,
        left: Collection[str] = (),
        note: str = "",
    ) -> None:
        """Take its name, what starts reading, how many rows there are, and the columns to leave out with a note."""
        self.name, self.note = name, note
        self._left = frozenset(left)
        self.total = total
        self.once = once
        self._start = start

    def items(self, meter: Meter) -> Iterator[Item]:
        """The object's rows in order; "row 1" is the first."""
        rows = self._start(meter)
        return map(self._without, rows) if self._left else rows

    def _without(self, item: Item) -> Item:
        if not isinstance(item, Row):
            return item
        return Row(item.origin, {name: value for name, value in item.values.items() if name not in self._left})


def python_source(source: Any, options: ReadOptions = ReadOptions()) -> PythonObject:
    """The source for an object. Of `options`, only the columns count that a caller names.

    Raises:
        UsageError: The object is of a kind that cannot be read; says which can.
    """
    kind = _kind(source)
    name = f"the {type(source).__name__}"
    if kind in _READERS:
        once = type(source).__name__ == "RecordBatchReader"
        left, note = index_columns(_arrow_names(source) if kind[0] in ("pyarrow", "datasets") else (), options)
        return PythonObject(name, lambda meter: _READERS[kind](source, meter), _length(source), once, left, note)
    if isinstance(source, Mapping) or kind[1] in ("DatasetDict", "IterableDatasetDict"):
        raise UsageError(
            f"{name} with the keys {listed([str(key) for key in source]) or '(none)'}: give one of its values, or [it]"
        )
    if not isinstance(source, Iterable) or isinstance(source, (str, bytes, Document)):
        raise UsageError(f"{name} cannot be read: give {_ACCEPTED}")
    once = isinstance(source, Iterator)
    return PythonObject(name, lambda meter: _elements(source, meter), _length(source), once)


def is_table(source: object) -> bool:
    """Return whether an object is a DataFrame, an Arrow table or a dataset, rather than a list of anything."""
    return _kind(source) in _READERS


def _kind(source: Any) -> tuple[str, str]:
    """Library and class name of the first class in the object's ancestry that there is a reader for."""
    kinds = [(base.__module__.split(".")[0], base.__name__) for base in type(source).__mro__]
    return next((kind for kind in kinds if kind in _READERS), kinds[0])


def _arrow_names(source: Any) -> Sequence[str]:
    """Return the columns of an Arrow table or a dataset; none if it does not know them before it is read."""
    return source.schema.names if hasattr(source, "schema") else source.column_names or ()


def _length(source: Any) -> int | None:
    if type(source).__name__ == "LazyFrame" or not hasattr(source, "__len__"):
        return getattr(source, "num_rows", None)
    return len(source)


def _elements(source: Iterable[Any], meter: Meter) -> Iterator[Item]:
    for number, element in enumerate(source, start=1):
        meter.done = number
        yield _element(element, f"row {number}")


def _element(element: Any, origin: str) -> Item:
    if isinstance(element, Document):
        return _document(element, element.origin or origin)
    if element is None or isinstance(element, str):
        return Row(origin, {"text": element})
    if isinstance(element, Mapping):
        return row_of(origin, element)
    return Skipped(origin, f"not a str, dict or Document but of type {type(element).__name__}")


def plain_metadata(metadata: Mapping[Any, Any]) -> dict[str, Value]:
    """Return metadata as every collection holds it: names are text, nested objects are flattened.

    Raises:
        NestedError: It has too many levels, or a name is too long.
    """
    return {str(name): natural(value) for name, value in flattened(metadata).items()}


def kind_fault(given: Document) -> str:
    """Return which field of a document has a value of the wrong type, and the value; empty if none has."""
    strings = {"text": given.text, "title": given.title, "id": given.key or "", "language": given.language or ""}
    wrong = next((name for name, value in strings.items() if not isinstance(value, str)), None)
    if wrong:
        return f"the {wrong} is {reprlib.repr(strings[wrong])}, not a string"
    if not isinstance(given.metadata, Mapping):
        return f"the metadata is {reprlib.repr(given.metadata)}, not a mapping"
    return ""


def _document(given: Document, origin: str) -> Document | Skipped:
    if fault := kind_fault(given):
        return Skipped(origin, fault)
    try:
        metadata = plain_metadata(given.metadata)
    except NestedError as error:
        return Skipped(origin, str(error))
    return replace(given, metadata=metadata, origin=origin)


def _pandas(frame: Any, meter: Meter) -> Iterator[Item]:
    # Labels of rows that nobody named are kept unless they are numbers, which pandas gives by itself.
    named = any(name is not None for name in frame.index.names) or frame.index.dtype.kind not in "iu"
    for start in range(0, len(frame), BATCH_ROWS):
        part = frame.iloc[start : start + BATCH_ROWS]
        yield from _records((part.reset_index() if named else part).to_dict("records"), meter)


def _polars(frame: Any, meter: Meter) -> Iterator[Item]:
    yield from _records(frame.iter_rows(named=True, buffer_size=BATCH_ROWS), meter)


def _polars_lazy(frame: Any, meter: Meter) -> Iterator[Item]:
    yield from _polars(frame.collect(), meter)


def _series(series: Any, meter: Meter) -> Iterator[Item]:
    name = str(series.name or "text")
    yield from _records(({name: value} for value in series), meter)


def _records(records: Iterable[Mapping[Any, Any]], meter: Meter) -> Iterator[Item]:
    for record in records:
        meter.done += 1
        yield row_of(f"row {meter.done}", record)


def _arrow(table: Any, meter: Meter) -> Iterator[Item]:
    batches = table.to_batches() if hasattr(table, "to_batches") else [table] if hasattr(table, "columns") else table
    yield from rows_of(batches, meter)


def _dataset(dataset: Any, meter: Meter) -> Iterator[Item]:
    names = _class_labels(dataset)
    for table in dataset.with_format("arrow").iter(BATCH_ROWS):
        for row in _arrow(table, meter):
            yield Row(row.origin, _labelled(row.values, names)) if isinstance(row, Row) and names else row


def _class_labels(dataset: Any) -> dict[str, list[str]]:
    features = dataset.features or {}
    return {
        composed(name): feature.names for name, feature in features.items() if type(feature).__name__ == "ClassLabel"
    }


def _labelled(values: Mapping[str, Any], names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Hugging Face stores classes as numbers; their names say more. A negative number stands for no label."""
    labels = {}
    for name, known in names.items():
        number = values.get(name)
        labels[name] = known[number] if isinstance(number, int) and 0 <= number < len(known) else None
    return {**values, **labels}


_READERS: dict[tuple[str, str], Callable[[Any, Meter], Iterator[Item]]] = {
    ("pandas", "DataFrame"): _pandas,
    ("pandas", "Series"): _series,
    ("polars", "DataFrame"): _polars,
    ("polars", "LazyFrame"): _polars_lazy,
    ("polars", "Series"): _series,
    ("pyarrow", "Table"): _arrow,
    ("pyarrow", "RecordBatch"): _arrow,
    ("pyarrow", "RecordBatchReader"): _arrow,
    ("pyarrow", "Dataset"): _arrow,
    ("datasets", "Dataset"): _dataset,
    ("datasets", "IterableDataset"): _dataset,
}

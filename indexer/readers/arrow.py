"""Arrow record batches, from Parquet files or handed in, as rows."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .natives import flattened
from .source import Meter, Row

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1000


def rows_of(batches: Iterable["pa.RecordBatch"], meter: Meter) -> Iterator[Row]:
    """The rows of the batches, in slices of at most `BATCH_ROWS`; `meter` counts them."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            columns = [_values(column) for column in part.columns]
            for values in zip(*columns, strict=True):
                meter.done += 1
                yield Row(f"row {meter.done}", flattened(dict(zip(part.schema.names, values, strict=True))))


def _values(column: "pa.Array[Any]") -> list[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):  # dates beyond the year 9999, or strings that are no UTF-8
        return [_value(item) for item in column]


def _value(item: "pa.Scalar[Any]") -> Any:
    try:
        return item.as_py()
    except UnicodeDecodeError:
        return item.as_buffer().to_pybytes().decode(errors="surrogateescape")
    except (ValueError, OverflowError):
        return str(item.cast("int64", safe=False).as_py()) if item.is_valid else None

"""Arrow record batches and Parquet files as rows."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import SondeError
from .bytestream import ByteStream
from .source import Item, Meter, ReadOptions, Row, Source
from .values import flattened

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


class Parquet(Source):
    """The rows of a Parquet file; a compressed or piped one through a temporary copy."""

    nothing = "has columns but no rows: give a file with content"

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.name = stream.name
        self._stream = stream.on_disk()
        self.total = stream.size if stream.size is not None else self._stream.size
        try:
            metadata = pq.read_metadata(str(self._stream.path))
        except (pa.ArrowInvalid, OSError) as error:
            raise SondeError(
                f"{self.name} is no Parquet file or a truncated one: get it again ({_line(error)})"
            ) from error
        self._rows = self.items_total = metadata.num_rows

    def items(self, meter: Meter) -> Iterator[Item]:
        """The rows in file order; "row 1" is the first."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        counted = Meter()
        try:
            with pq.ParquetFile(str(self._stream.path), buffer_size=1 << 20) as file:
                for row in rows_of(file.iter_batches(BATCH_ROWS), counted):
                    meter.done = (self.total or 0) * counted.done // self._rows
                    yield row
        except (pa.ArrowException, OSError) as error:
            raise SondeError(
                f"{self.name} is damaged after row {counted.done}: get it again ({_line(error)})"
            ) from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]

"""Parquet files, row group by row group."""

from collections.abc import Iterator

from ..errors import SondeError
from .arrow import BATCH_ROWS, rows_of
from .bytestream import ByteStream
from .options import ReadOptions
from .source import Item, Meter, Source


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

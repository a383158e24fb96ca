"""The bytes of a file, a pipe or standard input, decompressed on the way."""

import gzip
import io
import shutil
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from ..errors import SondeError
from .source import Meter

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SAMPLE_BYTES = 1 << 20
COMPRESSED_SUFFIXES = (".gz", ".gzip", ".zst", ".zstd")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class ByteStream:
    """Bytes that can be opened, again and again unless they come from a pipe or standard input (path None).

    Gzip and Zstandard are recognised by content, not by name. `size` counts bytes as stored, None where unknown.
    """

    def __init__(self, name: str, path: Path | None = None) -> None:
        self.name = name
        self.path = path
        self.once = path is None or not path.is_file()
        self.size = None if self.once or path is None else path.stat().st_size
        if self.size == 0:
            raise SondeError(f"{name} is empty: give a file with content")
        self._pipe = self._open_raw() if self.once else None
        self._prefix = self._pipe.read(SAMPLE_BYTES) if self._pipe else b""
        if self.once and not self._prefix:
            raise SondeError(f"{name} is empty: nothing arrived")
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def sample(self) -> bytes:
        """The first bytes, decompressed; looking at them takes nothing away from `open`."""
        if self.once:
            return _readable_part(_decompressed(io.BufferedReader(io.BytesIO(self._prefix))))
        with self.open(Meter()) as file:
            return file.read(SAMPLE_BYTES)

    def open(self, meter: Meter) -> BinaryIO:
        """The decompressed bytes; `meter` follows the stored bytes that were taken."""
        raw = self._pipe or self._open_raw()
        return _decompressed(io.BufferedReader(_Counted(raw, self._prefix, meter)))

    def on_disk(self) -> "ByteStream":
        """The same bytes as an uncompressed file, maybe a temporary one, for formats that are read out of order."""
        if not self.once and not self.compressed:
            return self
        folder = tempfile.TemporaryDirectory(prefix="sonde-")
        path = Path(folder.name) / "copy"
        with self.open(Meter()) as file, path.open("wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        stream = ByteStream(self.name, path)
        stream._copy = folder
        return stream

    @property
    def compressed(self) -> bool:
        """Whether the stored bytes are gzip or Zstandard."""
        if self.once:
            return self._prefix.startswith((_GZIP, _ZSTD))
        with self._open_raw() as file:
            return file.read(4).startswith((_GZIP, _ZSTD))

    def _open_raw(self) -> BinaryIO:
        return sys.stdin.buffer if self.path is None else cast(BinaryIO, self.path.open("rb"))


class _Counted(io.RawIOBase):
    def __init__(self, raw: BinaryIO, prefix: bytes, meter: Meter) -> None:
        self._raw, self._prefix, self._meter = raw, memoryview(prefix), meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._prefix[: len(view)] or self._raw.read(len(view))
        self._prefix = self._prefix[len(data) :]
        view[: len(data)] = data
        self._meter.done += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed and self._raw is not sys.stdin.buffer:
            self._raw.close()
        super().close()


class _Zstandard(io.RawIOBase):
    """Frames of Zstandard, one after the other; the library's own stream reader takes a truncated one for whole."""

    def __init__(self, raw: io.BufferedReader) -> None:
        import zstandard

        self._raw = raw
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame = self._decompressor.decompressobj()
        self._inside = False
        self._pending = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        while not self._pending:
            chunk = self._raw.read(1 << 14)
            if not chunk:
                if self._inside:
                    raise EOFError("the Zstandard data ends within a frame")
                return 0
            self._pending = memoryview(self._feed(chunk))
        view = memoryview(buffer).cast("B")
        data = self._pending[: len(view)]
        self._pending = self._pending[len(data) :]
        view[: len(data)] = data
        return len(data)

    def _feed(self, chunk: bytes) -> bytes:
        out = []
        while chunk:
            out.append(self._frame.decompress(chunk))
            self._inside = not self._frame.eof
            chunk = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = self._decompressor.decompressobj()
        return b"".join(out)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Gzip(gzip.GzipFile):
    """Closes the file below it, which `GzipFile` leaves open when it was handed in."""

    def __init__(self, raw: io.BufferedReader) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._below = raw

    def close(self) -> None:
        super().close()
        self._below.close()


def _decompressed(file: io.BufferedReader) -> BinaryIO:
    magic = file.peek(4)[:4]
    if magic.startswith(_GZIP):
        return cast(BinaryIO, _Gzip(file))
    if magic.startswith(_ZSTD):
        return cast(BinaryIO, io.BufferedReader(_Zstandard(file)))
    return cast(BinaryIO, file)


def _readable_part(file: BinaryIO) -> bytes:
    """What can be decompressed of bytes that may be cut off."""
    parts = []
    try:
        while sum(map(len, parts)) < SAMPLE_BYTES and (part := file.read(1 << 12)):
            parts.append(part)
    except EOFError:
        pass  # the sample ends within the stream; a stream that really breaks off is found when it is read
    return b"".join(parts)

"""The bytes of a file, a pipe or standard input: decompressed on the way."""

import gzip
import io
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from ..errors import MissingExtraError, SondeError
from .encoding import is_text
from .source import Meter

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


SAMPLE_BYTES = 1 << 20
COMPRESSED_SUFFIXES = (".gz", ".gzip", ".zst", ".zstd")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_NAMED = {".gz": "gzip", ".gzip": "gzip", ".zst": "Zstandard", ".zstd": "Zstandard"}
_BINARY = (b"PAR1", b"PK", b"\xd0\xcf\x11\xe0", b"%PDF")
"""The first bytes of a Parquet file, a workbook, one of old Excel, and a PDF file."""


_LARGEST_WINDOW = 1 << 27
"""Bytes that a frame of Zstandard may ask to be kept: what `zstd --ultra -22` asks for."""
_MOST_COPIED, _LARGEST_RATIO = 1 << 28, 100
"""Bytes of a temporary copy that are always allowed, and those for each stored byte."""
_ZSTD_STEP = 1 << 9
"""Stored bytes that are decompressed at once. Four can stand for 128 kB, so that this makes 16 MB at most."""


class ByteStream:
    """Bytes that can be opened, again and again unless they come from a pipe or standard input (path None).

    Gzip and Zstandard are recognised by content, not by name. `size` counts bytes as stored, None where unknown.
    """

    def __init__(self, name: str, path: Path | None = None, piped: bool = False) -> None:
        """Take a name for messages and a path; what is `piped` arrives on standard input, whatever its path."""
        self.name = name
        self.path = path
        self._piped = piped or path is None
        self.once = self._piped or path is None or not path.is_file()
        self.size = None if self.once or path is None else _size_of(path)
        if self.size == 0:
            raise SondeError(f"{name} is empty: give a file with content")
        if not self.once:
            self._check_named_truly()
        self._pipe = self._open_raw() if self.once else None
        self._prefix = _waited_for(self._pipe, SAMPLE_BYTES) if self._pipe else b""
        if self.once and not self._prefix:
            raise SondeError(f"{name} is empty: nothing arrived")
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def sample(self) -> bytes:
        """The first bytes, decompressed; looking at them takes nothing away from `open`."""
        if self.once:
            return not_compressed(self.name, _readable_part(_decompressed(io.BufferedReader(io.BytesIO(self._prefix)))))
        with self.open(Meter()) as file:
            return not_compressed(self.name, file.read(SAMPLE_BYTES))

    def open(self, meter: Meter) -> BinaryIO:
        """The decompressed bytes; `meter` follows the stored bytes that were taken."""
        raw = self._pipe or self._open_raw()
        return _decompressed(io.BufferedReader(_Counted(raw, self._prefix, meter)))

    def on_disk(self) -> "ByteStream":
        """The same bytes as an uncompressed file, maybe a temporary one, for formats that are read out of order."""
        if not self.once and not self.compressed:
            TAKEN.done += self.size or 0
            return self
        folder = tempfile.TemporaryDirectory(prefix="sonde-")
        path = Path(folder.name) / "copy"
        meter, copied = Meter(), 0
        with self.open(meter) as file, path.open("wb") as copy:
            while part := file.read(1 << 20):
                copied += copy.write(part)
                if copied > _MOST_COPIED + _LARGEST_RATIO * meter.done:
                    raise SondeError(f"{self.name} expands more than {_LARGEST_RATIO} times when decompressed")
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

    def _check_named_truly(self) -> None:
        """Refuse a file that is not compressed, although its name says so, and cannot be read as it is either.

        A file that a browser decompressed while downloading it is read, although it kept its name.

        Raises:
            SondeError: The file is neither.
        """
        ending = self.name[self.name.rfind(".") :].lower()
        if ending not in _NAMED:
            return
        with self._open_raw() as file:
            head = file.read(4096)
        if not head.startswith((_GZIP, _ZSTD, *_BINARY)) and not is_text(head):
            said = f"{self.name} is not a {_NAMED[ending]} file, although its name ends with {ending}"
            raise SondeError(f"{said}: get a new copy, or give it the ending of its format")

    def _open_raw(self) -> BinaryIO:
        return sys.stdin.buffer if self._piped or self.path is None else cast(BinaryIO, self.path.open("rb"))


def _size_of(path: Path) -> int | None:
    """Return how many bytes a file has; None for one below /proc, which has content although its size is 0."""
    if size := path.stat().st_size:
        return size
    with path.open("rb") as file:
        return None if file.read(1) else 0


@dataclass(slots=True)
class Taken:
    """Stored bytes that this process has read, over all streams, and whether it waits for more on standard input."""

    done: int = 0
    waiting: bool = False


TAKEN = Taken()
"""What a parent is told about its reader process; see child.py."""


def _waited_for(pipe: BinaryIO, size: int) -> bytes:
    TAKEN.waiting = True
    data = pipe.read(size)
    TAKEN.waiting = False
    TAKEN.done += len(data)
    return data


class _Counted(io.RawIOBase):
    def __init__(self, raw: BinaryIO, prefix: bytes, meter: Meter) -> None:
        self._raw, self._prefix, self._meter = raw, memoryview(prefix), meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._prefix[: len(view)] or self._taken(len(view))
        self._prefix = self._prefix[len(data) :]
        view[: len(data)] = data
        self._meter.done += len(data)
        return len(data)

    def _taken(self, size: int) -> bytes:
        if self._raw is sys.stdin.buffer:
            return _waited_for(self._raw, size)
        data = self._raw.read(size)
        TAKEN.done += len(data)
        return data

    def close(self) -> None:
        if not self.closed and self._raw is not sys.stdin.buffer:
            self._raw.close()
        super().close()


class _Zstandard(io.RawIOBase):
    """Frames of Zstandard, one after the other; the library's own stream reader takes a truncated one for whole."""

    def __init__(self, raw: io.BufferedReader) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtraError("zstandard", "formats", "reading .zst files") from error
        self._raw = raw
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._inside = False
        self._pending = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        while not self._pending:
            chunk = self._raw.read(_ZSTD_STEP)
            if not chunk:
                if self._inside:
                    raise EOFError("the Zstandard data ends in the middle of a frame")
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


def not_compressed(name: str, data: bytes) -> bytes:
    """Return decompressed bytes as they are.

    Raises:
        SondeError: They are compressed once more.
    """
    if data.startswith((_GZIP, _ZSTD)):
        raise SondeError(f"{name} was compressed twice: decompress it once")
    return data


def _readable_part(file: BinaryIO) -> bytes:
    """What can be decompressed of bytes that may be cut off."""
    parts = []
    try:
        while sum(map(len, parts)) < SAMPLE_BYTES and (part := file.read(1 << 12)):
            parts.append(part)
    except EOFError:
        pass  # the sample ends within the stream; a stream that really breaks off is found when it is read
    return b"".join(parts)

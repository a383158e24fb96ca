"""A JSON file: an array of objects, an object that holds one, or a single object. Streamed, whatever its size."""

import io
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from ..document import Skipped
from ..errors import SondeError
from .bytestream import ByteStream
from .encoding import detect_encoding
from .linewise import json_item
from .options import ReadOptions
from .source import Item, Meter, Source

_Event = tuple[str, str, Any]


class JsonArray(Source):
    """The objects of the first array that holds any."""

    nothing = "holds an empty array: give a file with content"

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream.on_disk() if stream.once else stream
        self.name = stream.name
        self.total = self._stream.size
        self._encoding = options.encoding or detect_encoding(stream.sample)
        if not stream.sample.strip():
            raise SondeError(f"{self.name} is empty: give a file with content")
        self._prefix = self._find_array()
        self._array = self._prefix.removesuffix(".item") if self._prefix != "item" else ""
        self.note = f"the array {self._array!r}" if self._array else ""

    def items(self, meter: Meter) -> Iterator[Item]:
        """The objects of the array in order; "row 1" is the first."""
        import ijson

        others: list[str] = []
        with self._stream.open(meter) as file:
            events = ijson.parse(self._utf8(file), use_float=True)
            objects = ijson.items(self._watched(events, others) if self._array else events, self._prefix)
            for number, value in enumerate(self._explained(objects), start=1):
                yield json_item(f"row {number}", value)
        for other in others:
            yield Skipped(f"array {other}", f"only the array {self._array!r} of this file is read")

    def _find_array(self) -> str:
        """Where the objects are, as ijson's prefix; "" if the file is a single object."""
        import ijson

        with self._stream.open(Meter()) as file:
            events = self._explained(ijson.parse(self._utf8(file), use_float=True))
            for prefix, event, _ in events:
                if event == "start_array" and (not prefix or _starts_object(events)):
                    return f"{prefix}.item".lstrip(".")
        return ""

    def _watched(self, events: Iterable[_Event], others: list[str]) -> Iterator[_Event]:
        """The events as they are; notes the other arrays of objects at the same depth."""
        depth, last = self._array.count("."), ""
        for prefix, event, value in events:
            if event == "start_map" and last and prefix == f"{last}.item" and last not in (*others, self._array):
                others.append(last)
            if event == "start_array":
                last = prefix if prefix.count(".") == depth and ".item" not in prefix else ""
            yield prefix, event, value

    def _explained(self, events: Iterable[Any]) -> Iterator[Any]:
        import ijson

        try:
            yield from events
        except ijson.JSONError as error:
            reason = " ".join(str(error).split())
            raise SondeError(
                f"{self.name}: broken JSON ({reason}): repair it, or set the format (--format jsonl)"
            ) from error
        except RecursionError:
            raise SondeError(f"{self.name}: the JSON is nested too deeply") from None

    def _utf8(self, file: BinaryIO) -> BinaryIO:
        if self._encoding == "utf-8":
            return file
        return _Recoded(io.TextIOWrapper(file, encoding=self._encoding))  # type: ignore[return-value]


class _Recoded:
    """A file of any encoding read as UTF-8; ijson asks for no more than `read`."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def read(self, size: int = -1) -> bytes:
        return self._text.read(size).encode()


def _starts_object(events: Iterator[_Event]) -> bool:
    return next(events, ("", "", None))[1] == "start_map"

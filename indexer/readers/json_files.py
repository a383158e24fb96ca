"""JSON and JSONL files, and plain lines of text, streamed whatever their size."""

import io
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, BinaryIO

from ..document import Skipped
from ..errors import SondeError, arg
from .bytestream import SAMPLE_BYTES, ByteStream
from .encoding import decoded_lines, detect_encoding, named_encoding
from .source import Item, Meter, ReadOptions, Row, Source, row_of
from .values import DEEPEST, too_deep

_LONGEST_LINE = 1 << 28
TOO_MANY_DIGITS = "too many digits: write it as a string, in double quotes"
_NAMES = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}


class _Lines(Source):
    """What both have in common. A line beyond 268 million characters is passed over, for memory's sake."""

    nothing: str = "holds only blank lines: give a file with content"
    _newline = ""

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self.encoding = options.encoding or self._detected(stream.sample, options.encoding_hint)
        self.note = named_encoding(self.encoding, options) if self.encoding not in ("utf-8", "utf-8-sig") else ""

    @abstractmethod
    def _detected(self, sample: bytes, hint: str | None) -> str: ...

    @abstractmethod
    def _item(self, origin: str, line: str) -> Item: ...

    def items(self, meter: Meter) -> Iterator[Item]:
        """One item for each line that is not blank; "line 1" is the first."""
        with self._stream.open(meter) as file, decoded_lines(file, self.encoding, self._newline) as lines:
            for number in count(1):
                line = lines.readline(_LONGEST_LINE)
                if not line:
                    return
                origin = f"line {number}"
                if len(line) == _LONGEST_LINE:
                    while not line.endswith(("\n", "\r")) and (line := lines.readline(_LONGEST_LINE)):
                        pass
                    yield Skipped(origin, f"the line is longer than {_LONGEST_LINE:,} characters")
                elif line.strip():
                    yield self._item(origin, line)


class PlainLines(_Lines):
    """Each line is a text; blank ones are none."""

    def _detected(self, sample: bytes, hint: str | None) -> str:
        return detect_encoding(sample, hint)

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        super().__init__(stream, options, format)
        self.note = "one text per line" + (f", {self.note}" if self.note else "")

    def _item(self, origin: str, line: str) -> Item:
        return Row(origin, {"text": line.rstrip("\r\n")})


class JsonLines(_Lines):
    """Each line is a JSON object, or a string that is a text."""

    _newline = "\n"

    def _detected(self, sample: bytes, hint: str | None) -> str:
        found = detect_encoding(sample, hint)
        return "utf-8" if found != hint and found.startswith(("cp", "koi")) else found

    def _item(self, origin: str, line: str) -> Item:
        try:
            return json_item(origin, json.loads(line))
        except json.JSONDecodeError as error:
            return Skipped(origin, f"broken JSON: {error.msg} at character {error.pos + 1}")
        except RecursionError:
            return Skipped(origin, str(too_deep()))
        except MemoryError:
            return Skipped(origin, f"its {len(line):,} characters need more memory than the process may use")
        except ValueError:  # Python's own words name a function
            return Skipped(origin, f"a number in it has {TOO_MANY_DIGITS}")


def json_item(origin: str, value: object) -> Item:
    """A parsed JSON value as a row."""
    if isinstance(value, dict):
        return row_of(origin, value)
    if isinstance(value, str):
        return Row(origin, {"text": value})
    return Skipped(origin, f"not a JSON object but {_NAMES.get(type(value), 'something else')}")


_Event = tuple[str, str, Any]
_OPENED, _CLOSED = ("start_map", "start_array"), ("end_map", "end_array")


class JsonArray(Source):
    """The objects of the first array that holds any."""

    nothing = "holds an empty array: give a file with content"

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream.on_disk() if stream.once else stream
        self.name = stream.name
        self.total = self._stream.size
        self._encoding = options.encoding or detect_encoding(stream.sample, options.encoding_hint)
        if not stream.sample.strip() and self._is_blank():
            raise SondeError(f"{self.name} is empty: give a file with content")
        self._prefix = self._find_array()
        self._array = self._prefix.removesuffix(".item") if self._prefix != "item" else ""
        self.note = f"the array {self._array!r}" if self._array else ""

    def items(self, meter: Meter) -> Iterator[Item]:
        """The objects of the array in order; "row 1" is the first."""
        import ijson

        others: dict[str, None] = {}
        with self._stream.open(meter) as file:
            cut = _Cut(DEEPEST + 1 + self._array.count(".") + bool(self._array))
            events = ijson.parse(cut.events(ijson.basic_parse(self._utf8(file), use_float=True)))
            objects = ijson.items(self._watched(events, others) if self._array else events, self._prefix)
            for number, value in enumerate(self._explained(objects), start=1):
                item = json_item(f"row {number}", value)
                yield Skipped(item.origin, str(too_deep())) if cut.seen() else item
        for other in others:
            yield Skipped(f"array {other}", f"only the array {self._array!r} of this file is read")

    def _is_blank(self) -> bool:
        with self._stream.open(Meter()) as file:
            return not any(part.strip() for part in iter(lambda: file.read(SAMPLE_BYTES), b""))

    def _find_array(self) -> str:
        """Where the objects are, as ijson's prefix; "" if the file is a single object."""
        import ijson

        with self._stream.open(Meter()) as file:
            basic = _Cut(DEEPEST).events(ijson.basic_parse(self._utf8(file), use_float=True))
            events = self._explained(ijson.parse(basic))
            for prefix, event, _ in events:
                if event == "start_array" and (not prefix or _starts_object(events)):
                    return f"{prefix}.item".lstrip(".")
        return ""

    def _watched(self, events: Iterable[_Event], others: dict[str, None]) -> Iterator[_Event]:
        """The events as they are; notes the other arrays of objects at the same depth."""
        depth, last = self._array.count("."), ""
        for prefix, event, value in events:
            if event == "start_map" and last and prefix == f"{last}.item" and last != self._array:
                others[last] = None
            if event == "start_array":
                last = prefix if prefix.count(".") == depth and ".item" not in prefix else ""
            yield prefix, event, value

    def _explained(self, events: Iterable[Any]) -> Iterator[Any]:
        import ijson

        try:
            yield from events
        except ijson.JSONError as error:
            reason = " ".join(str(error).split())
            if "integer overflow" in reason:
                raise SondeError(f"{self.name}: a number in it has {TOO_MANY_DIGITS}") from error
            raise SondeError(
                f"{self.name}: broken JSON ({reason}): repair it, or set {arg('format')} to jsonl"
            ) from error
        except RecursionError:
            raise SondeError(f"{self.name}: the JSON is nested too deeply") from None

    def _utf8(self, file: BinaryIO) -> BinaryIO:
        if self._encoding == "utf-8":
            return file
        return _Recoded(io.TextIOWrapper(file, encoding=self._encoding))  # type: ignore[return-value]


class _Cut:
    """Leaves out what lies below a level, because ijson keeps the path of every value, which grows with its level."""

    def __init__(self, deepest: int) -> None:
        self._deepest = deepest
        self._left_out = False

    def seen(self) -> bool:
        """Whether something was left out since the last call."""
        found, self._left_out = self._left_out, False
        return found

    def events(self, events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """The events above the level."""
        level = 0
        for event in events:
            if event[0] in _OPENED:
                level += 1
            if level <= self._deepest:
                yield event
            else:
                self._left_out = True
            if event[0] in _CLOSED:
                level -= 1


class _Recoded:
    """A file of any encoding read as UTF-8; ijson asks for no more than `read`."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def read(self, size: int = -1) -> bytes:
        return self._text.read(size).encode()


def _starts_object(events: Iterator[_Event]) -> bool:
    return next(events, ("", "", None))[1] == "start_map"

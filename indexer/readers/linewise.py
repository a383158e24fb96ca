"""One record per line: JSONL, and plain lines of text."""

import json
from abc import abstractmethod
from collections.abc import Iterator
from itertools import count

from ..document import Skipped
from ..errors import SondeError
from .bytestream import ByteStream
from .encoding import decoded_lines, detect_encoding
from .natives import flattened
from .options import ReadOptions
from .source import Item, Meter, Row, Source

_LONGEST_LINE = 1 << 28
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
        self._encoding = options.encoding or self._detected(stream.sample)
        if not stream.sample.strip():
            raise SondeError(f"{self.name} {self.nothing}")
        self.note = self._encoding if self._encoding not in ("utf-8", "utf-8-sig") else ""

    @abstractmethod
    def _detected(self, sample: bytes) -> str: ...

    @abstractmethod
    def _item(self, origin: str, line: str) -> Item: ...

    def items(self, meter: Meter) -> Iterator[Item]:
        """One item for each line that is not blank; "line 1" is the first."""
        with self._stream.open(meter) as file, decoded_lines(file, self._encoding, self._newline) as lines:
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

    def _detected(self, sample: bytes) -> str:
        return detect_encoding(sample)

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        super().__init__(stream, options, format)
        self.note = "one text per line" + (f", {self.note}" if self.note else "")

    def _item(self, origin: str, line: str) -> Item:
        return Row(origin, {"text": line.rstrip("\r\n")})


class JsonLines(_Lines):
    """Each line is a JSON object, or a string that is a text."""

    _newline = "\n"

    def _detected(self, sample: bytes) -> str:
        return "utf-8" if (found := detect_encoding(sample)).startswith(("cp", "koi")) else found

    def _item(self, origin: str, line: str) -> Item:
        try:
            return json_item(origin, json.loads(line))
        except json.JSONDecodeError as error:
            return Skipped(origin, f"broken JSON: {error.msg} at character {error.pos + 1}")
        except (ValueError, RecursionError) as error:
            return Skipped(origin, f"broken JSON: {error}")


def json_item(origin: str, value: object) -> Item:
    """A parsed JSON value as a row."""
    if isinstance(value, dict):
        return Row(origin, flattened(value))
    if isinstance(value, str):
        return Row(origin, {"text": value})
    return Skipped(origin, f"not a JSON object but {_NAMES.get(type(value), 'something else')}")

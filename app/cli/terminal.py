"""What reaches a terminal: text of strangers (titles, ids, names of columns and files) never as a control sequence."""

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

_ORDERS = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Controls of ASCII and Latin-1, separators of lines, and what reverses the order of characters."""
_SHOWN = {order: f"\\u{order:04x}" for order in _ORDERS if chr(order) not in "\n\t"}
"""As JSON writes them: a JSON line that holds one stays the same value."""


def visible(text: str) -> str:
    r"""Return text with each control character, except line feeds and tabs, as `\u001b`."""
    return text.translate(_SHOWN)


class VisibleStream:
    """An output stream that shows control characters in what is written to it.

    Attributes:
        stream: Writes them as they are.
    """

    def __init__(self, stream: TextIO) -> None:
        """Take the stream that writes."""
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text, control characters shown; return the number of characters of the text."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return what else belongs to the stream."""
        return getattr(self.stream, name)


def show_controls() -> None:
    """Let standard output and standard error show control characters, whatever is printed and by whom."""
    sys.stdout = cast(TextIO, VisibleStream(unchanged(sys.stdout)))
    sys.stderr = cast(TextIO, VisibleStream(unchanged(sys.stderr)))


def unchanged(stream: TextIO) -> TextIO:
    """Return the stream that writes control characters as they are: for progress bars, and data for another program."""
    return stream.stream if isinstance(stream, VisibleStream) else stream

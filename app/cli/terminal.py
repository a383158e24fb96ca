"""What reaches a terminal: text of strangers (titles, ids, names of columns and files) never as a control sequence."""

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from ...indexer.wording import visible


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

"""Text files that a reader process reads one after the other; another process follows one that ended."""

import json
import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from ..document import Document, Skipped
from .child import Child, DiedError
from .frames import item_of
from .source import ReadOptions

_AHEAD = 8
"""Files that are asked for at once, so that the process reads on while the parent works."""
_LONG = 4_096
"""Bytes of a request that waits for others to be answered: all must fit into a pipe, or both sides could wait."""


class TextReaders:
    """Reads files, given as keys and paths; one that ends its process is skipped."""

    def __init__(self, files: Sequence[tuple[str, Path]], options: ReadOptions) -> None:
        self._files = files
        self._options = options
        self._child: Child | None = None

    def items(self) -> Iterator[Document | Skipped]:
        """Each file in turn as a document, or why it is none."""
        asked: deque[tuple[str, Path]] = deque()
        unasked = deque(self._files)
        answers: deque[Document | Skipped] = deque()
        while asked or unasked:
            try:
                self._ask(asked, unasked)
                answers += self._answered()
            except DiedError as error:
                answers.append(Skipped(asked[0][0], str(error)))
                unasked.extendleft(reversed([*asked][1:]))
                while len(asked) > 1:
                    asked.pop()
                self.close()
            while answers:
                asked.popleft()
                yield answers.popleft()

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
        self._child = None

    def _ask(self, asked: deque[tuple[str, Path]], unasked: deque[tuple[str, Path]]) -> None:
        if self._child is None:
            self._child = Child("texts", self._options, {}, subprocess.PIPE)
        pipe = cast("IO[bytes]", self._child.process.stdin)
        while unasked and len(asked) < _AHEAD:
            key, path = unasked[0]
            line = json.dumps([key, str(path)]).encode() + b"\n"
            if asked and len(line) > _LONG:
                return
            asked.append(unasked.popleft())
            try:
                pipe.write(line)
                pipe.flush()
            except OSError:
                return  # it has ended, which shows when an answer is read

    def _answered(self) -> list[Document | Skipped]:
        assert self._child is not None
        fields = self._child.frame()["items"]
        self._child.allow()
        return [cast("Document | Skipped", item_of(one)[1]) for one in fields]

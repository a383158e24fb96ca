"""A reader process, seen from its parent: started, followed, and ended when it takes too long.

A file from a stranger can make the library that reads it hang, crash or take all memory. So each table is read in a
process of its own, which can be ended; one process reads text files one after the other, and another follows one that
ended. docs/decisions/0029 has the reasons.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from ..document import Document, Skipped
from .frames import Decoder, error_of, item_of, option_fields
from .source import ReadOptions

SECONDS = 60.0
"""Seconds that a reader process may let its parent wait, in all,"""
SECONDS_PER_BYTE = 1e-5
"""and for each byte that it reads or hands over."""
_LARGEST_FRAME = 1 << 30
_CHECKED_EVERY = 0.25

_AHEAD = 8
"""Files that are asked for at once, so that the process reads on while the parent works."""
_LONG = 4_096
"""Bytes of a request that waits for others to be answered: all must fit into a pipe, or both sides could wait."""

_CODE = """
import json, sys
request = json.loads(sys.argv[1])
sys.path[:] = request["path_of_modules"]
from {package}.child_main import main
main(request)
"""


class DiedError(Exception):
    """A reader process ended before it was done; the message says why."""


class Child:
    """A reader process and the frames that it writes.

    Only the time in which the parent waits for a frame counts. A process that waits for standard input has time.
    """

    def __init__(self, what: str, options: ReadOptions, request: Mapping[str, Any], stdin: IO[Any] | int) -> None:
        tag = os.urandom(16).hex()
        paths = [os.path.abspath(path) for path in sys.path if path]  # noqa: PTH100 - a path may be no folder
        said = {"what": what, "tag": tag, "options": option_fields(options), "path_of_modules": paths}
        self._decoder = Decoder(tag)
        self._folder = tempfile.TemporaryDirectory(prefix="sonde-")  # of copies, which a killed process leaves behind
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE.format(package=__package__), json.dumps(said | dict(request))],
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(self._folder.name),
        )  # fmt: skip
        self._pipe = cast("IO[bytes]", self.process.stdout)
        self._waited = self._allowed = 0.0
        self._taken = 0
        self._since: float | None = None
        self._late = self._memory = False
        self._closed = threading.Event()
        self.allow()
        threading.Thread(target=self._watch, daemon=True).start()

    def allow(self) -> None:
        """Give it the whole time again, for another file."""
        self._waited, self._allowed = 0.0, SECONDS

    def frame(self) -> dict[str, Any]:
        """Wait for a frame that holds more than a sign of life.

        Raises:
            SondeError: The process reports an error.
            DiedError: It ended, or took too long, or too much memory.
        """
        while True:
            found = self._next()
            if found.get("memory"):
                raise DiedError("reading it took more than 1 GB of memory")
            if "error" in found:
                raise error_of(found["error"])
            if len(found) > 3:
                return found

    def _next(self) -> dict[str, Any]:
        begun = self._since = time.monotonic()
        try:
            data = self._read(int.from_bytes(self._read(8), "big"))
        finally:
            self._since = None
        try:
            found = self._decoder.frame(data)
            taken, waiting = found["taken"], found["waiting"]
        except (ValueError, TypeError, LookupError, RecursionError):
            raise DiedError("the process that reads it sent invalid data") from None
        self._waited += 0.0 if waiting else time.monotonic() - begun
        self._allowed += SECONDS_PER_BYTE * (taken - self._taken + len(data))
        self._taken = taken
        return found | {"bytes": len(data)}

    def _read(self, size: int) -> bytes:
        data = self._pipe.read(size) if size <= _LARGEST_FRAME else b""
        if len(data) < size:
            raise DiedError(self._end())
        return data

    def _end(self) -> str:
        self.process.kill()
        code = self.process.wait()
        if self._late:
            return f"reading it took more than {self._allowed:.0f} s"
        with suppress(ValueError):
            ended = signal.Signals(-code).name
            return f"it crashed the process that reads it ({ended}): it is damaged, or needs more than 1 GB of memory"
        return f"it crashed the process that reads it (exit code {code}): it is damaged"

    def _watch(self) -> None:
        while not self._closed.wait(_CHECKED_EVERY):
            since = self._since
            if since is not None and self._waited + time.monotonic() - since > self._allowed:
                self._late = True
                self.process.kill()
                return

    def close(self) -> None:
        """End the process, if it is still there, and remove what it left."""
        self._closed.set()
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not yet written to it is of no use
                    pipe.close()
        self._folder.cleanup()


def _environment(folder: str) -> dict[str, str]:
    """The parent's, with the folder for temporary files, and with allocators that reserve little."""
    own = {"TMPDIR": folder, "TEMP": folder, "TMP": folder, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    return {**os.environ, **own, "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}


def pipe_of(path: Path | None) -> IO[Any] | int:
    """What a process gets as its standard input: ours, or a pipe that has a name.

    `subprocess.PIPE` where our standard input is an object without a file, whose bytes have to be handed on.
    """
    if path is not None:
        return path.open("rb")
    try:
        sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        return subprocess.PIPE if sys.stdin is not None else subprocess.DEVNULL
    return sys.stdin


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
                answers.append(Skipped(asked[0][0], str(error), asked[0][0]))
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

"""What a reader process does: it opens one file, or one text file after the other, and writes items to a pipe.

The process is started by child.py. It has a limit on its memory, and it ends when its parent does.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..document import Document, Skipped
from ..errors import SondeError
from .bytestream import TAKEN, ByteStream
from .formats import table_source
from .frames import Encoder, error_fields, head_of, options_of
from .source import Item, Meter, Place, ReadOptions, source_errors
from .text_files import read_text_file

MEMORY = 1 << 30
"""Bytes that a reader process may take beside what it has when it starts."""
_FRAME = 1 << 16
_TICK = 0.25
_TICKS = 4
_STUCK = 120
_LONGEST_ITEM = 1 << 26


def main(request: Mapping[str, Any]) -> None:
    """Do what the parent asks for, and end the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent has it too, and ends this process
    pipe = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    limit_memory()
    frames = _Frames(pipe, Encoder(request["tag"]), options_of(request["options"]))
    work: dict[str, Callable[[_Frames, Mapping[str, Any]], None]] = {"table": _table, "texts": _texts}
    try:
        work[request["what"]](frames, request)
    except SondeError as error:
        frames.write({"error": error_fields(error)})
    except MemoryError:
        frames.out_of_memory()
    os._exit(0)


def limit_memory() -> None:
    """Set the limit on this process; there is none on Windows, and macOS does not keep to it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not RLIMIT_AS, which counts the address space that Arrow and threads reserve and do not use.
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = _data() + MEMORY if hard == resource.RLIM_INFINITY else min(_data() + MEMORY, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data() -> int:
    """Bytes of memory that this process has already."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 1 << 26
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:")), 1 << 26)


class _Frames:
    """Collects items and writes them in frames: a length of eight bytes and JSON.

    A thread writes what there is four times a second, and a sign of life every second: the parent learns how many
    bytes were read and whether standard input is awaited. If the parent is gone, the write fails and the process ends.
    """

    def __init__(self, pipe: BinaryIO, encoder: Encoder, options: ReadOptions) -> None:
        self._pipe = pipe
        self._encoder = encoder
        self.options = options
        self._longest = max(_LONGEST_ITEM, 2 * options.max_chars)
        self._items: list[str] = []
        self._size = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._live, daemon=True).start()

    def add(self, done: int, item: Item) -> None:
        """Take an item; one that is too large to cross becomes a skipped one."""
        if isinstance(item, Document) and len(item.text) > self.options.max_chars:
            said = f"the text has {len(item.text):,} characters, more than the limit of {self.options.max_chars:,}"
            item = Skipped(item.origin, said)
        text = self._encoder.item(done, item)
        if len(text) > self._longest:
            said = f"its values have {len(text):,} characters, more than the limit of {self._longest:,}"
            text = self._encoder.item(done, Skipped(item.origin, said))
        with self._lock:
            self._items.append(text)
            self._size += len(text)
            if self._size > _FRAME:
                self._flush()

    def flush(self) -> None:
        """Write the items that are there."""
        with self._lock:
            self._flush()

    def write(self, fields: Mapping[str, Any]) -> None:
        """Write the items that are there, and something else."""
        with self._lock:
            self._flush()
            self._send(json.dumps({**fields, **self._state()}, default=repr).encode())

    def out_of_memory(self) -> None:
        """Say so and end."""
        self._items.clear()
        self.write({"memory": True})

    def _flush(self) -> None:
        if self._items:
            state = json.dumps(self._state())
            text = f'{state[:-1]}, "items": [{",".join(self._items)}]}}'
            self._items.clear()
            self._size = 0
            self._send(text.encode("utf-8", "surrogatepass"))

    def _state(self) -> dict[str, object]:
        return {"taken": TAKEN.done, "waiting": TAKEN.waiting}

    def _send(self, data: bytes) -> None:
        try:
            view = memoryview(len(data).to_bytes(8, "big") + data)
            while view:
                view = view[self._pipe.write(view) :]
        except OSError:  # the parent is gone
            os._exit(1)

    def _live(self) -> None:
        for tick in range(1 << 62):
            time.sleep(_TICK)
            with self._lock:
                self._flush()
                if tick % _TICKS == 0:
                    self._send(json.dumps(self._state()).encode())
            _postpone_end()


def _postpone_end() -> None:
    """End the process after minutes in which not even this thread could run, should the parent be gone by then."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + _STUCK, resource.RLIM_INFINITY))


def _table(frames: _Frames, request: Mapping[str, Any]) -> None:
    name, path = request["name"], request["path"]
    place, meter = Place(), Meter()
    with _one_line(name, place):
        source = table_source(ByteStream(name, Path(path) if path else None, request["piped"]), frames.options)
        frames.write({"head": head_of(source)})
        for item in source.items(meter):
            place.origin = item.origin
            frames.add(meter.done, item)
    frames.write({"end": True})


def _texts(frames: _Frames, request: Mapping[str, Any]) -> None:
    for line in sys.stdin.buffer:
        key, path = json.loads(line)
        try:
            with _one_line(key, Place()):
                item: Item = read_text_file(key, Path(path), frames.options)
        except SondeError as error:
            item = Skipped(key, str(error), key)
        frames.add(0, item)
        frames.flush()


@contextmanager
def _one_line(name: str, place: Place) -> Iterator[None]:
    """Turn whatever a file makes its reader raise into one line."""
    try:
        with source_errors(name, place):
            yield
    except (SondeError, MemoryError):
        raise
    except BaseException as error:  # libraries of Rust raise their panics as such
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise SondeError(f"{name} cannot be read{place}: it is damaged ({reason})") from error

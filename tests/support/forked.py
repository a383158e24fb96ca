"""Scripts run in processes that import nothing: copies of one process that has imported everything, for tests of kills.

A copy can be killed like any other process. Importing would take it as long as the work during which it is killed.

usage: forked.py SOCKET SCRIPT [MODULE]..., started by `Forked`; one script at a time
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from select import select

from sonde.indexer.languages import detect

SECONDS = 120
"""How long a test waits for a copy to start or to end."""
LIBRARIES = ("faiss", "numpy", "tantivy", "sonde.indexer.ann.index", "sonde.indexer.upkeep.verify")


class Forked:
    """A script in a process of its own, with as much of `subprocess.Popen` as tests need."""

    def __init__(self, script: Path, *arguments: object, libraries: tuple[str, ...] = ()) -> None:
        self._control, _ = _parent(script, libraries)
        self.returncode: int | None = None
        (out, out_end), (errors, errors_end) = os.pipe(), os.pipe()
        socket.send_fds(self._control, [json.dumps([*map(str, arguments)]).encode()], [out_end, errors_end])
        os.close(out_end)
        os.close(errors_end)
        self.stdout, self._errors = os.fdopen(out, encoding="utf-8"), os.fdopen(errors, encoding="utf-8")
        self.pid = self._said()

    def _said(self) -> int:
        said = self._control.recv(4, socket.MSG_WAITALL)
        if len(said) < 4:  # read as a number, it would be process 0 or a good end
            raise ChildProcessError("the process that copies are made of has ended")
        return int.from_bytes(said, "big", signed=True)

    def kill(self) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        if self.returncode is None and select([self._control], [], [], 0)[0]:
            self.returncode = self._said()
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """Wait for the end; return what was written to both streams, which must fit into a pipe."""
        if self.returncode is None:
            self.returncode = self._said()
        with self.stdout, self._errors:
            return self.stdout.read(), self._errors.read()


@cache
def _parent(script: Path, libraries: tuple[str, ...]) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Start the process that a script's copies are made of; it ends with the tests of a file, see `end_all`."""
    here, there = socket.socketpair()
    command = [sys.executable, __file__, str(there.fileno()), str(script), *LIBRARIES, *libraries]
    process = subprocess.Popen(command, pass_fds=[there.fileno()])
    there.close()
    here.settimeout(SECONDS)
    _started.append((here, process))
    return here, process


_started: list[tuple[socket.socket, "subprocess.Popen[bytes]"]] = []


def end_all() -> None:
    """End the processes that copies are made of: other tests count the children of theirs, and kill them."""
    _parent.cache_clear()
    while _started:
        control, process = _started.pop()
        control.close()
        process.wait()


def main(control: socket.socket, script: Path) -> None:
    """Make a copy of this process for each list of arguments, and say its number and then its exit code."""
    while True:
        given, streams, _, _ = socket.recv_fds(control, 1 << 16, 2)
        if not given:
            return
        number = os.fork()
        if not number:
            control.close()
            _run(script, json.loads(given), streams)
            return
        for stream in streams:
            os.close(stream)
        control.sendall(number.to_bytes(4, "big", signed=True))
        _, status = os.waitpid(number, 0)
        control.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def _run(script: Path, arguments: list[str], streams: list[int]) -> None:
    for place, stream in enumerate(streams, start=1):
        os.dup2(stream, place)
        os.close(stream)
    gc.unfreeze()
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    for name in (Path(sys.argv[2]).stem, *sys.argv[3:]):
        importlib.import_module(name)
    detect(["The model that tells languages apart takes a second to load."])
    gc.freeze()
    main(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))

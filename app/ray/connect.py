"""Ray started on this machine, or a connection to a running cluster."""

import ctypes
import logging
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from filelock import FileLock, Timeout

from ...indexer.errors import MissingExtraError, SondeError, UsageError, arg

HERE = "ray"
FOLDER = "sonde-ray-"
"""Begins the names of the folders of Ray on this machine."""
LOCK = "sonde.lock"
"""A file in each of them that is locked as long as its command runs."""
_GET_HANDLER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(("PyOS_getsig", ctypes.pythonapi))
_SET_HANDLER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(("PyOS_setsig", ctypes.pythonapi))
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LOOPBACK = ("127.0.0.1", "::1")
ATTEMPTS = 3
"""Connections tried to a cluster that answers, but does not complete them."""
REACHING = 5.0
"""Seconds for a cluster to accept a connection. Ray itself would try for half a minute."""
FRAME, SETTINGS = 9, 4
"""Bytes of the head of a frame of HTTP/2, and the kind of the first one that a server sends."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
"""What a client of HTTP/2 sends first (RFC 9113, section 3.4)."""
OBJECT_STORE = 100_000_000
"""Bytes of shared memory for Ray started here: tasks, questions and their answers are small."""


def check_address(address: str) -> None:
    """Check where Ray is to run, and that it is installed.

    Raises:
        UsageError: The address is neither "ray" nor "ray://HOST:PORT".
        MissingExtraError: Ray is not installed.
    """
    if address != HERE and not re.fullmatch(r"ray://[^/:]+:\d+", address):
        said = f"{arg('on')} is {address!r}: give ray, or ray://HOST:PORT for a running cluster"
        raise UsageError(said, code="unknown-option", field="on", value=address)
    _imported(address)


def named(address: str) -> str:
    """Return what a message calls Ray at an address."""
    return "Ray on this machine" if address == HERE else f"Ray at {address}"


def reach(address: str, seconds: float = REACHING) -> None:
    """Check that a Ray cluster may run at an address. Ray on this machine is not started yet, so nothing is checked.

    Raises:
        SondeError: Nothing listens there, or the server does not speak HTTP/2, as Ray does.
    """
    if address == HERE:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), seconds) as there:
            there.settimeout(seconds)
            if not _speaks_http2(there):
                raise SondeError(
                    f"the server at {address} is not Ray: give the port of the Ray client server, usually 10001"
                )
    except (OSError, OverflowError, UnicodeError) as error:  # a port above the largest, or no name of a host
        said = error.strerror if isinstance(error, OSError) and error.strerror else reason(error)
        raise SondeError(f"Ray does not answer at {address} ({said}): is the cluster running?") from error


def _speaks_http2(there: socket.socket) -> bool:
    """Whether a server answers with settings, as every HTTP/2 server does; if Ray uses TLS, this is not checked.

    Raises:
        OSError: It does not answer.
    """
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return True
    there.sendall(HELLO)
    answer = b""
    while len(answer) < FRAME and (part := there.recv(FRAME - len(answer))):
        answer += part
    return len(answer) == FRAME and answer[3] == SETTINGS


def reason(error: BaseException) -> str:
    """Return the first line of an error of Ray's, without colours and its full stop."""
    return _COLOUR.sub("", str(error)).strip().partition("\n")[0].rstrip(".")


@contextmanager
def connected(address: str) -> Iterator[ModuleType]:
    """Start Ray on this machine, or connect to a cluster, until the context ends.

    Raises:
        SondeError: Ray does not start or answer, or would accept connections from other machines.
    """
    ray = _imported(address)
    with _own_folder(address) as folder:
        try:
            reach(address)
            with _own_signals():
                _patiently(ray, address, folder)
        except (ConnectionError, RuntimeError, ValueError) as error:
            if address == HERE:
                said = f"Ray does not start on this machine ({reason(error)}): try again, or work without Ray"
            else:
                said = f"Ray does not answer at {address} ({reason(error)}): is the cluster running?"
            raise SondeError(said) from None
        try:
            if address == HERE and ray.util.get_node_ip_address() not in LOOPBACK:
                said = "Ray would accept connections from other machines, because it was imported before"
                raise SondeError(f"{said}: use a process that has not imported ray")
            yield ray
        finally:
            with _own_signals():
                ray.shutdown()


@contextmanager
def _own_folder(address: str) -> Iterator[str | None]:
    """Give Ray on this machine a folder for its logs and sockets that goes with it; its own ones stay in /tmp/ray."""
    if address != HERE:
        yield None
        return
    short = os.environ.get("RAY_TMPDIR") or ("/tmp" if Path("/tmp").is_dir() else tempfile.gettempdir())
    _remove_left(Path(short))
    with (
        tempfile.TemporaryDirectory(prefix=FOLDER, dir=short, ignore_cleanup_errors=True) as folder,
        FileLock(Path(folder, LOCK)),
    ):
        yield folder


def _remove_left(place: Path) -> None:
    """Remove the folders of commands that were killed."""
    for folder in place.glob(f"{FOLDER}*"):
        with suppress(OSError, Timeout):
            if (folder / LOCK).is_file():
                with FileLock(folder / LOCK, timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)


def _patiently(ray: ModuleType, address: str, folder: str | None) -> None:
    """Connect, also if a cluster that answers does not start its part of the connection at once.

    In Ray 2.60, this part is a process that sometimes hangs before it runs: its parent forks while other threads of it
    use gRPC. Ray gives up after half a minute, and the next attempt usually succeeds.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            _init(ray, address, folder)
            return
        except ConnectionAbortedError:
            if not left:
                raise


def _init(ray: ModuleType, address: str, folder: str | None) -> None:
    if address != HERE:
        # They would tell of a lost connection in their own words. Logs of the cluster do not come here anyway.
        logging.getLogger("ray.util.client.logsclient").disabled = True
        warnings.filterwarnings("ignore", "Ray Client connection timed out", UserWarning)
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        return
    ray.init(
        address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR",
        object_store_memory=OBJECT_STORE, _temp_dir=folder,
    )  # fmt: skip


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what SIGTERM does here: Ray would end the process with a code of its own.

    Ray sets a handler below Python's, from any thread, and removes every handler when it shuts down. Python sets its
    own only from the main thread, so the one below is kept too.
    """
    before, below = signal.getsignal(signal.SIGTERM), _GET_HANDLER(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
        _SET_HANDLER(signal.SIGTERM, below)


def _imported(address: str) -> ModuleType:
    """Import Ray, which asks for a token unless the user has decided otherwise, and sends no statistics of use.

    Ray started here gets a token of its own, which only this process and those that it starts know. The third variable
    is what keeps it on the loopback interface: Ray replaces 127.0.0.1 as the address of a node by the machine's own.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == HERE:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ):
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Ray", "distributed", f"{arg('on')} ray") from None
    return ray

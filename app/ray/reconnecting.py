"""A connection to Ray that is made again when it is lost, for a service that runs for weeks."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import ModuleType

from ...indexer.errors import SondeError
from .connect import HERE, connected, named, reach, reason

CHECK = 1.0
"""Seconds between two looks at the connection."""
PAUSES = (1, 2, 4, 8, 15, *(30,) * 118)
"""Seconds before each attempt to connect again: about an hour in all, and then the service must be started again."""
ENDING = 10.0
"""Seconds to wait at the end for an attempt to connect."""
log = logging.getLogger("sonde.search")


class Kept:
    """A context in which there is a connection to Ray, with what is started on it each time it is made."""

    def __init__(self, address: str, start: Callable[[ModuleType], None], stop: Callable[[], None]) -> None:
        """Take what to do on a new connection, and as soon as one is lost; `start` may raise a `SondeError`."""
        self.address = address
        self._start, self._stop = start, stop
        self._stack = ExitStack()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sonde-ray-kept", daemon=True)

    def __enter__(self) -> "Kept":
        """Connect.

        Raises:
            SondeError: Ray does not answer, or what is to run on it does not start.
        """
        self._connect()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect."""
        self._ended.set()
        self._stop()
        self._thread.join(ENDING)
        self._stack.close()

    def _connect(self) -> None:
        with ExitStack() as stack:
            self._ray = stack.enter_context(connected(self.address))
            self._start(self._ray)
            self._stack = stack.pop_all()

    def _watch(self) -> None:
        while not self._ended.wait(CHECK):
            if self.lost() and not self._again():
                return

    def lost(self) -> bool:
        """Whether the cluster cannot be reached any more, or Ray on this machine has died."""
        if self.address != HERE:
            return not self._ray.util.client.ray.is_connected() or _refuses(self.address)
        node = self._ray._private.worker._global_node
        return node is None or bool({"gcs_server", "raylet"} & {name for name, _ in node.dead_processes()})

    def _again(self) -> bool:
        """Connect again, after pauses; return whether that succeeded before they or the context ended."""
        began = time.monotonic()
        self._stop()
        said = "the connection to %s is lost: results are partial until it is restored, which is tried for an hour"
        log.warning(said, named(self.address))
        for pause in PAUSES:
            with suppress(Exception):  # whatever Ray raises while it leaves a cluster that is dead
                self._stack.close()
            if self._ended.wait(pause):
                return False
            try:
                self._connect()
            except Exception as error:
                level = logging.INFO if isinstance(error, SondeError) else logging.WARNING
                log.log(level, "Ray does not answer yet: %s", reason(error))
                continue
            log.warning("connected to Ray again after %.0f s", time.monotonic() - began)
            return True
        if self.address == HERE:
            log.error("Ray does not start on this machine: restart the service")
        else:
            log.error("Ray at %s does not answer: restart the service once it does", self.address)
        return False


def _refuses(address: str) -> bool:
    """Whether the cluster's head is gone: Ray itself hopes for half a minute that it comes back."""
    try:
        reach(address, CHECK)
    except SondeError as error:
        return isinstance(error.__cause__, ConnectionRefusedError)
    return False

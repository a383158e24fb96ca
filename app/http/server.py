"""The server below the service: it gives up on slow senders, and says how it stopped."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette

from ...indexer.wording import counted
from .settings import ServeSettings

SWITCH = 0.0005
"""Seconds for which a thread may keep Python's lock while another wants it; Python's own 0.005 delays every answer of
the event loop by several times that while searches run."""
SHUTDOWN = 30
"""Seconds for which requests that have begun may go on when the service is stopped."""
TICKS = 5
"""uvicorn calls `on_tick` every 0.1 s; connections are looked at every 0.5 s."""


@contextmanager
def timed_log() -> Iterator[None]:
    """Write the log of the service and of uvicorn to stderr, each line with its time."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    loggers = [logging.getLogger(name) for name in ("sonde", "uvicorn")]
    before = loggers[0].level
    loggers[0].setLevel(logging.INFO)
    for each in loggers:
        each.addHandler(handler)
        each.propagate = False  # the MCP SDK has a handler of its own for all loggers
    try:
        yield
    finally:
        loggers[0].setLevel(before)
        for each in loggers:
            each.removeHandler(handler)
            each.propagate = True


class Server(uvicorn.Server):
    """uvicorn's server, which closes connections that send or receive too slowly, and the oldest idle ones if needed.

    uvicorn itself has a time limit only for connections that wait for their next request.
    """

    def __init__(self, app: Starlette, settings: ServeSettings) -> None:
        """Take the application and its limits."""
        super().__init__(uvicorn.Config(app, log_config=None, log_level="warning", timeout_graceful_shutdown=SHUTDOWN))
        self._settings = settings
        self._ready: asyncio.Event = app.state.ready
        self._before_stop: Callable[[], None] = getattr(app.state, "before_stop", lambda: None)
        self._settled = False
        self._stuck: dict[Any, float] = {}
        self.unfinished = 0

    def run(self, sockets: Any = None) -> None:
        """Serve until a signal, which is raised again at the end."""
        sys.setswitchinterval(SWITCH)
        super().run(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Look at the connections now and then; return whether to stop."""
        if counter % TICKS == 0:
            self._close_stuck(time.monotonic())
            self._settle()
        return await super().on_tick(counter)

    def _settle(self) -> None:
        """Take what was loaded out of the garbage collector, once: its pauses, of up to a second, stop every thread."""
        if not self._settled and self._ready.is_set():
            gc.collect()
            gc.freeze()
            self._settled = True

    def _close_stuck(self, now: float) -> None:
        since = {each: self._stuck.get(each, now) for each in self.server_state.connections if _is_stuck(each)}
        spare = len(self.server_state.connections) - self._settings.connections
        oldest = sorted(since, key=lambda each: since[each])[: max(0, spare)]
        for each in since:
            if each in oldest or now - since[each] > self._settings.receive:
                each.transport.abort()
        self._stuck = since

    async def shutdown(self, sockets: Any = None) -> None:
        """Say what it waits for, then stop."""
        self._before_stop()
        await super().shutdown(sockets)

    async def _wait_tasks_to_complete(self) -> None:
        try:
            await super()._wait_tasks_to_complete()
        except asyncio.CancelledError:
            self.unfinished = len(self.server_state.tasks)
            raise

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on uvicorn's signals, and on the one that a closed terminal sends, unless `nohup` has it ignored."""
        with super().capture_signals():
            hangup = getattr(signal, "SIGHUP", None)
            main = threading.current_thread() is threading.main_thread()
            if hangup is None or not main or signal.getsignal(hangup) is signal.SIG_IGN:
                yield
                return
            before = signal.signal(hangup, lambda _, frame: self.handle_exit(signal.SIGTERM, frame))
            try:
                yield
            finally:
                signal.signal(hangup, before)

    @property
    def ending(self) -> str:
        """What became of the requests that had begun when the service was stopped."""
        if self.unfinished:
            return f"stopped; {counted(self.unfinished, 'request')} took longer than {SHUTDOWN} s and got no answer"
        return "stopped; every request that had begun was answered"


def end_at_once() -> None:
    """End the process with exit code 0, although threads still work that only read; Python would wait for them."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _is_stuck(connection: Any) -> bool:
    """Return whether a connection waits for its client: for headers, for the rest of a body, or to take an answer."""
    cycle = getattr(connection, "cycle", None)
    if cycle is None or cycle.response_complete:
        return True
    flow = getattr(connection, "flow", None)
    return bool(flow and flow.write_paused)

"""Two lanes for the work of a service, so that a cheap request never waits behind expensive ones."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from ...indexer.progress import while_wanted

T = TypeVar("T")
THREADS = 2
"""Threads of each lane. More would only delay one another, and the event loop, which shares Python's lock with them."""


class BusyError(Exception):
    """Too much is waiting."""


class Lane:
    """Threads that work through a queue in order."""

    def __init__(self, name: str, *, threads: int, waiting: int, reads: bool = False) -> None:
        """Allow at most `waiting` calls in the queue; work that only `reads` may end when nobody waits for it."""
        self._reads = reads
        self._most = threads + waiting
        self._begun: set[Future[Any]] = set()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"sonde-{name}")

    async def run(self, work: Callable[[], T], wanted: Callable[[], bool] | None = None) -> T:
        """Run a blocking function in a thread and return its result.

        If the caller is cancelled, work that waits is dropped. Work that has begun keeps its thread, so that no more
        than that many threads ever work. If it only reads, it ends at its next `check_wanted`.

        Args:
            work: What to run.
            wanted: Whether anybody still waits for the result, for work that has several callers.

        Raises:
            BusyError: Too many calls are waiting.
        """
        if len(self._begun) >= self._most:
            raise BusyError
        loop, left = asyncio.get_running_loop(), threading.Event()
        future = self._threads.submit(self._watched(work, wanted or (lambda: not left.is_set())))
        self._begun.add(future)
        future.add_done_callback(lambda done: self._ended(loop, done))
        try:
            return await asyncio.wrap_future(future)
        finally:
            left.set()

    def _watched(self, work: Callable[[], T], wanted: Callable[[], bool]) -> Callable[[], T]:
        def watched() -> T:
            with while_wanted(wanted):
                return work()

        return watched if self._reads else work

    def _ended(self, loop: asyncio.AbstractEventLoop, done: "Future[T]") -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._begun.discard, done)

    def finish(self) -> None:
        """Finish what waits, then stop the threads."""
        self._threads.shutdown(wait=True)

    def leave(self, seconds: float) -> bool:
        """Drop what waits, and wait at most `seconds` for what has begun; return whether it ended."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        return not wait([each for each in self._begun if not each.cancelled()], seconds).not_done


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lane of cheap requests and the lane of expensive ones."""

    quick: Lane
    slow: Lane

    @classmethod
    def of(cls, waiting: int) -> "Lanes":
        """Return two lanes in each of which `waiting` calls may wait."""
        return cls(*(Lane(name, threads=THREADS, waiting=waiting, reads=True) for name in ("quick", "slow")))

    def leave(self, seconds: float) -> bool:
        """Drop what waits, and wait at most `seconds` in each lane for what has begun; return whether all ended."""
        quick, slow = self.quick.leave(seconds), self.slow.leave(seconds)
        return quick and slow

"""Queues for the work of a service: lanes, in which a cheap request waits for no expensive one, and micro-batches."""

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...indexer.progress import UnwantedError, while_wanted

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
        than that many threads ever work. If it only reads, or `wanted` is given, it ends at its next `check_wanted`.

        Args:
            work: What to run.
            wanted: Whether anybody still waits for the result, for work that has several callers or that writes.

        Raises:
            BusyError: Too many calls are waiting.
        """
        if len(self._begun) >= self._most:
            raise BusyError
        loop, left = asyncio.get_running_loop(), threading.Event()
        if self._reads and wanted is None:
            wanted = lambda: not left.is_set()  # noqa: E731
        future = self._threads.submit(work if wanted is None else _watched(work, wanted))
        self._begun.add(future)
        future.add_done_callback(lambda done: self._ended(loop, done))
        try:
            return await asyncio.wrap_future(future)
        finally:
            left.set()

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


def _watched(work: Callable[[], T], wanted: Callable[[], bool]) -> Callable[[], T]:
    def watched() -> T:
        with while_wanted(wanted):
            return work()

    return watched


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


Job = TypeVar("Job")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[Job, Answer]):
    job: Job
    answer: "asyncio.Future[Answer]"


class MicroBatcher(Generic[Job, Answer]):
    """Passes waiting jobs that are alike together to a lane, the longest waiting first.

    A single job starts at once, without waiting for others. `work` gets the jobs and returns an answer or an exception
    for each. A job whose caller is cancelled leaves the queue; a batch that has lost all its callers ends early.
    """

    def __init__(
        self, work: Callable[[Sequence[Job]], Sequence[Answer | Exception]], lane: Lane, *,
        alike: Callable[[Job], Hashable], waiting: int, together: int,
    ) -> None:  # fmt: skip
        """Allow at most `waiting` jobs in the queue, and in a batch at most `together` jobs that are `alike`."""
        self._work = work
        self._lane = lane
        self._alike = alike
        self._most = waiting
        self._together = together
        self._queue: list[_Waiting[Job, Answer]] = []
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Number of waiting jobs."""
        return len(self._queue)

    async def submit(self, job: Job) -> Answer:
        """Return the answer to a job.

        Raises:
            BusyError: Too many jobs are waiting.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        if len(self._queue) >= self._most:
            raise BusyError
        entry: _Waiting[Job, Answer] = _Waiting(job, asyncio.get_running_loop().create_future())
        self._queue.append(entry)
        self._arrived.set()
        try:
            return await entry.answer
        finally:
            if entry in self._queue:
                self._queue.remove(entry)

    async def close(self) -> None:
        """Answer the waiting jobs, then stop."""
        while self._queue:
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            if batch := self._next():
                await self._answer(batch)
            else:
                self._arrived.clear()

    def _next(self) -> list[_Waiting[Job, Answer]]:
        if not self._queue:
            return []
        kind = self._alike(self._queue[0].job)
        batch = [entry for entry in self._queue if self._alike(entry.job) == kind][: self._together]
        self._queue = [entry for entry in self._queue if entry not in batch]
        return batch

    async def _answer(self, batch: list[_Waiting[Job, Answer]]) -> None:
        jobs = [entry.job for entry in batch]

        def wanted() -> bool:
            return not all(entry.answer.done() for entry in batch)

        try:
            answers: Sequence[Answer | Exception] = await self._lane.run(lambda: self._work(jobs), wanted)
        except UnwantedError:
            return
        except Exception as error:
            answers = [error] * len(batch)
        for entry, answer in zip(batch, answers, strict=True):
            if entry.answer.done():
                continue
            if isinstance(answer, Exception):
                entry.answer.set_exception(answer)
            else:
                entry.answer.set_result(answer)

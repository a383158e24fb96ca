"""Micro-batches: jobs that arrive while one batch runs form the next batch."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...indexer.progress import UnwantedError
from .lanes import BusyError, Lane

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

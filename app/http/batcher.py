"""Micro-batches: jobs that arrive while one batch runs form the next batch."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class BusyError(Exception):
    """The queue is full."""


class MicroBatcher(Generic[Job, Answer]):
    """Passes all waiting jobs together to one worker thread.

    A single job starts at once, without waiting for others. `work` gets the jobs and returns an answer or an exception
    for each.
    """

    def __init__(
        self, work: Callable[[Sequence[Job]], Sequence[Answer | Exception]], *, waiting: int, together: int
    ) -> None:
        """Allow at most `waiting` jobs in the queue and `together` jobs in a batch."""
        self._work = work
        self._together = together
        self._queue: asyncio.Queue[tuple[Job, asyncio.Future[Answer]]] = asyncio.Queue(waiting)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sonde-batch")
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Number of waiting jobs."""
        return self._queue.qsize()

    async def submit(self, job: Job) -> Answer:
        """Return the answer to a job.

        Raises:
            BusyError: Too many jobs are waiting.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait((job, future))
        except asyncio.QueueFull:
            raise BusyError from None
        return await future

    async def close(self) -> None:
        """Answer the waiting jobs, then stop."""
        while not self._queue.empty():
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=True)

    async def _run(self) -> None:
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < self._together:
                batch.append(self._queue.get_nowait())
            batch = [entry for entry in batch if not entry[1].done()]  # the client disconnected
            if batch:
                await self._answer(batch)

    async def _answer(self, batch: list[tuple[Job, "asyncio.Future[Answer]"]]) -> None:
        loop = asyncio.get_running_loop()
        jobs = [job for job, _ in batch]
        try:
            answers = await loop.run_in_executor(self._thread, self._work, jobs)
        except Exception as error:
            answers = [error] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

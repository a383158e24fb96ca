"""The writes of a collection: short ones beside a long one, what is known of each, and what becomes of its work."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ...indexer.errors import WriterBusyError
from ...indexer.progress import Notify, Progress, UnwantedError, check_wanted
from ...indexer.store.lock import OWN_THREAD
from ..api.functions import Patience, patience
from .problems import RETRY, ProblemError
from .queues import Lane

T = TypeVar("T")
WAIT = 10.0
"""Seconds that a write waits for another writer of the collection, in this service or in another process."""
LEAST_WAIT = 1.0
"""The same for a write that has waited for others before: many writes must not each wait for the whole time in turn."""
SHORT = ("correct", "delete", "forget_corrections", "judge", "put", "tag")
"""Methods that go beside a long one: each is one commit, or a few. Those of runs and taxonomies wait for each other,
because a long one that reads a run, computes and stores it must not meet a change of the same run."""
ONE_COMMIT = ("check", "cluster", "label", "map", "topics", "watch")
"""Methods that store one run at their end, so that they can stop at any step before it without a trace."""
TOLD = 10.0
"""Seconds from which on the log says that a write ended."""
log = logging.getLogger("sonde.http")


@dataclass(slots=True, eq=False)
class Job:
    """A write: the method, when it came and began, how far it is, and whether its client has left."""

    collection: str
    method: str
    came: float = field(default_factory=time.monotonic)
    began: float | None = None
    progress: Progress | None = None
    left: bool = False

    def __str__(self) -> str:
        return f"`{self.method}` of {self.collection}"

    @property
    def state(self) -> Literal["waiting", "running"]:
        """Whether it waits for other writes of this service, or runs."""
        return "waiting" if self.began is None else "running"

    @property
    def seconds(self) -> float:
        """How long it has been in this state."""
        return time.monotonic() - (self.came if self.began is None else self.began)

    def note(self, event: Progress | str) -> None:
        """Take what the method reports; it stops here if nobody waits for it and it stored nothing."""
        if isinstance(event, Progress):
            self.progress = event
        check_wanted()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        progress = self.progress  # read once: the method's thread replaces it
        told = progress and {name: getattr(progress, name) for name in ("stage", "done", "total", "unit")}
        named = {"collection": self.collection, "method": self.method, "state": self.state}
        return named | {"seconds": round(self.seconds, 1), "client_waits": not self.left, "progress": told or None}


class Writes:
    """The writes of one collection: one long one at a time, and beside it one short one.

    Both take the collection's writer lock for their commits, so neither can lose what the other stored.
    """

    def __init__(self, collection: str, waiting: int) -> None:
        """Allow at most `waiting` writes of each length in a queue."""
        self._collection = collection
        self._stopping = False
        self._jobs: set[Job] = set()
        self._short, self._long = (
            Lane(f"{name}-{collection}", threads=1, waiting=waiting) for name in ("write", "compute")
        )

    @property
    def jobs(self) -> list[Job]:
        """The writes that wait or run, the oldest first."""
        return sorted(self._jobs, key=lambda job: job.came)

    async def run(self, method: str, work: Callable[[Notify], T]) -> T:
        """Run a write after those of its kind; `work` gets what takes its progress.

        If the caller is cancelled, a write that waits is dropped, and one of `ONE_COMMIT` stops at its next step.
        Others go on.

        Raises:
            BusyError: Too many writes are waiting.
            ProblemError: Another writer has the collection for too long (409).
        """
        job = Job(self._collection, method)
        lane = self._short if method in SHORT else self._long
        running = [each for each in self.jobs if each.method not in SHORT and each.began is not None]
        if lane is self._long and running:
            log.info("%s waits for %s, which has run for %.0f s", job, running[0], running[0].seconds)
        self._jobs.add(job)
        wanted = (lambda: not job.left) if method in ONE_COMMIT else None
        try:
            return await lane.run(lambda: self._done(job, work), wanted)
        except asyncio.CancelledError:
            self._leave(job)
            raise
        finally:
            if job.began is None:
                self._jobs.discard(job)

    def _done(self, job: Job, work: Callable[[Notify], T]) -> T:
        """Do the work, in the thread of its lane, and log what became of it if that was long or nobody waits."""
        waited = job.seconds
        self._jobs.add(job)  # its caller may have left in the moment in which it begins
        job.began = time.monotonic()
        ending = "ended"
        try:
            with patience(Patience(max(LEAST_WAIT, WAIT - waited))):
                return work(job.note)
        except WriterBusyError as error:
            ending = "gave up waiting for another writer"
            raise self._busy(job, error) from None
        except UnwantedError:
            ending = "was stopped, and stored nothing,"
            raise
        except BaseException:
            ending = "failed"
            raise
        finally:
            self._jobs.discard(job)
            if job.left or job.seconds >= TOLD:
                log.info("%s %s after %.0f s", job, ending, job.seconds)

    def _leave(self, job: Job) -> None:
        """Take note that the client has left; a service that stops has cut it off itself, and finishes its work."""
        if job.began is None or job not in self._jobs or self._stopping:
            return
        job.left = True
        now = "the write stops at its next step" if job.method in ONE_COMMIT else "the write goes on"
        log.info("the client of %s left after %.0f s: %s", job, job.seconds, now)

    def _busy(self, job: Job, error: WriterBusyError) -> Exception:
        own = OWN_THREAD in str(error)
        others = [each for each in self.jobs if own and each is not job and each.began is not None]
        who = f"{others[0]}, which has run for {others[0].seconds:.0f} s," if others else "another process"
        said = f"{who} is writing to the collection: try again"
        return ProblemError(409, said, headers=RETRY, code=WriterBusyError.code)

    def stop(self) -> None:
        """Prepare for the end of the service: say which writes it waits for."""
        self._stopping = True
        for job in self.jobs:
            log.warning("stopping: %s has been %s for %.0f s and is finished first", job, job.state, job.seconds)

    def finish(self) -> None:
        """Finish what waits, then stop the threads."""
        self._short.finish()
        self._long.finish()

"""The shards of collections held in memory by actors on Ray, which answer a service's questions."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ...indexer.errors import SondeError
from ...indexer.store.elsewhere import Answer, Question
from ...pipelines.search.gather import Replica
from ...pipelines.search.replica import ShardReplica
from .connect import connected

TOGETHER = 4
"""Questions that an actor answers at a time: a service has as many threads that search."""
WAITING = 1_000
"""Questions that may wait for an actor; further ones fail at once, so that one that hangs uses little memory."""
SENDERS = 8
"""Threads that send questions, which takes less than a millisecond each."""
STARTING = 300
"""Seconds within which all actors must have loaded their shards."""


class ShardActor(ShardReplica):
    """One shard in a process of Ray's."""

    def ping(self) -> None:
        """Answer that the process lives."""


class _Remote:
    """An actor as a replica.

    Questions are sent in threads: while the connection to a cluster is lost, sending blocks for half a minute.
    """

    def __init__(self, actor: Any, senders: Executor) -> None:
        self.actor = actor
        self._senders = senders

    def ask(self, question: Question) -> "Future[Answer]":
        """Send a question."""
        return self._sent(lambda: self.actor.answer.remote(question))

    def ping(self) -> "Future[None]":
        """Ask whether the actor lives."""
        return self._sent(lambda: self.actor.ping.remote())

    def _sent(self, send: Callable[[], Any]) -> "Future[Any]":
        """Return the future of an answer, which fails if it cannot be asked for."""
        answer: Future[Any] = Future()

        def work() -> None:
            try:
                send().future().add_done_callback(lambda done: _copy(done, answer))
            except Exception as error:  # whatever Ray raises, the question goes to another replica
                answer.set_exception(error)

        self._senders.submit(work)
        return answer


def _copy(done: "Future[Any]", answer: "Future[Any]") -> None:
    if error := done.exception():
        answer.set_exception(error)
    else:
        answer.set_result(done.result())


@contextmanager
def replicas_on_ray(
    address: str, folders: Sequence[tuple[Path, int]], replicas: int
) -> Iterator[Sequence[Mapping[int, Sequence[Replica]]]]:
    """Start actors for collections, and end them with the context; Ray starts an actor that died again.

    The actors belong to this process: if it is killed, they end, too.

    Args:
        address: As for `check_address`.
        folders: For each collection its folder and its number of shards.
        replicas: Actors for each shard.

    Yields:
        For each collection its replicas by shard.

    Raises:
        SondeError: Ray does not answer, or the actors do not start.
    """
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 is for tasks that nobody waits for
    senders = ThreadPoolExecutor(SENDERS, thread_name_prefix="sonde-ray")
    with connected(address) as ray:
        started = [
            {shard: [_started(ray, senders, folder, shard, n) for n in range(replicas)] for shard in range(shards)}
            for folder, shards in folders
        ]
        every = [each for one in started for some in one.values() for each in some]
        try:
            ray.get([each.actor.ping.remote() for each in every], timeout=STARTING)
        except ray.exceptions.RayError as error:  # GetTimeoutError is one
            reason = str(error).strip().partition("\n")[0]
            raise SondeError(f"the shards could not be loaded on Ray ({reason}): are there enough machines?") from None
        yield started


def _started(ray: ModuleType, senders: Executor, folder: Path, shard: int, place: int) -> _Remote:
    """Start an actor without waiting for it. Its name is for Ray's own tools; it is not looked up."""
    options = {
        "name": f"sonde-{re.sub(r'[^A-Za-z0-9_-]', '-', folder.stem)}-{shard}-{place}",
        "num_cpus": 0,
        "max_restarts": -1,
        "max_task_retries": 0,
        "max_concurrency": TOGETHER,
        "max_pending_calls": WAITING,
        "scheduling_strategy": "SPREAD",
    }
    return _Remote(ray.remote(ShardActor).options(**options).remote(folder, shard), senders)

"""The shards of collections held in memory by actors on Ray, which answer a service's questions for weeks.

A connection to Ray that is lost is made again.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from ...indexer.errors import SondeError
from ...indexer.store.elsewhere import Answer, Question
from ...pipelines.search.gather import OutOfReachError, Replica, ShardReplica
from .connect import HERE, connected, named, reach, reason

TOGETHER = 4
"""Questions that an actor answers at a time: a service has as many threads that search."""
WAITING = 1_000
"""Questions that may wait for an actor; further ones fail at once, so that one that hangs uses little memory."""
SENDERS = 8
"""Threads that send questions, which takes less than a millisecond each."""
LOST = "the connection to Ray is lost"
STARTING = 300
"""Seconds within which all actors must have loaded their shards."""
CHECK = 1.0
"""Seconds between two looks at the connection."""
PAUSES = (1, 2, 4, 8, 15, *(30,) * 118)
"""Seconds before each attempt to connect again: about an hour in all, and then the service must be started again."""
ENDING = 10.0
"""Seconds to wait at the end for an attempt to connect."""
log = logging.getLogger("sonde.search")


class ShardActor(ShardReplica):
    """One shard in a process of Ray's."""

    def ping(self) -> None:
        """Answer that the process lives."""


class _Remote:
    """An actor as a replica.

    Questions are sent in threads: while the connection to a cluster is lost, sending blocks for half a minute.
    """

    def __init__(self, actors: "_Actors") -> None:
        self.actor: Any = None
        self._actors = actors

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
                send().future().add_done_callback(lambda done: self._copy(done, answer))
            except Exception as error:  # whatever Ray raises, the question goes to another replica
                _fail(answer, self._explained(error))

        try:
            self._actors.senders.submit(work)
        except RuntimeError:  # they were shut down, because there is no connection
            raise OutOfReachError(LOST) from None
        self._actors.waiting.add(answer)
        answer.add_done_callback(self._actors.waiting.discard)
        return answer

    def _copy(self, done: "Future[Any]", answer: "Future[Any]") -> None:
        if error := done.exception():
            _fail(answer, self._explained(error))
        else:
            with suppress(InvalidStateError):
                answer.set_result(done.result())

    def _explained(self, error: BaseException) -> Exception:
        """Return why there is no answer: if Ray is gone, that is the reason, whatever else it says."""
        return OutOfReachError(LOST) if self._actors.lost() else SondeError(reason(error))


class _Actors:
    """The replicas of all collections, which stay the same while their actors are replaced.

    Attributes:
        replicas: For each collection its replicas by shard.
        senders: The threads that send questions on the newest connection; those of a lost one may be blocked.
        waiting: Questions without an answer.
        lost: Tells whether the connection is lost, perhaps before it is noticed.
    """

    def __init__(self, folders: Sequence[tuple[Path, int]], replicas: int) -> None:
        self.replicas = [{n: [_Remote(self) for _ in range(replicas)] for n in range(shards)} for _, shards in folders]
        self.senders = ThreadPoolExecutor(SENDERS, thread_name_prefix="sonde-ray")
        self.waiting: set[Future[Any]] = set()
        self.lost: Callable[[], bool] = lambda: False
        self._folders = [folder for folder, _ in folders]

    def start(self, ray: ModuleType) -> None:
        """Start all actors, and wait until they have loaded their shards.

        Raises:
            SondeError: They do not start.
        """
        senders = ThreadPoolExecutor(SENDERS, thread_name_prefix="sonde-ray")
        started = {
            each: _started(ray, folder, shard, place)
            for folder, some in zip(self._folders, self.replicas, strict=True)
            for shard, replicas in some.items()
            for place, each in enumerate(replicas)
        }
        try:
            ray.get([actor.ping.remote() for actor in started.values()], timeout=STARTING)
        except ray.exceptions.RayError as error:  # GetTimeoutError is one
            said = f"the shards could not be loaded on Ray ({reason(error)}): are there enough machines?"
            raise SondeError(said) from None
        for replica, actor in started.items():
            replica.actor = actor
        self.senders = senders

    def stop(self) -> None:
        """Let questions fail at once, because the connection is lost: Ray may never answer those that were asked."""
        self.senders.shutdown(wait=False, cancel_futures=True)
        for answer in list(self.waiting):
            _fail(answer, OutOfReachError(LOST))


def _fail(answer: "Future[Any]", error: BaseException) -> None:
    with suppress(InvalidStateError):  # the connection was lost, and it has failed already
        answer.set_exception(error)


@contextmanager
def replicas_on_ray(
    address: str, folders: Sequence[tuple[Path, int]], replicas: int
) -> Iterator[Sequence[Mapping[int, Sequence[Replica]]]]:
    """Start actors for collections, and end them with the context; Ray starts an actor that died again.

    If the connection to Ray is lost, it is made again, with new actors for the same replicas.

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
    actors = _Actors(folders, replicas)
    with Kept(address, actors.start, actors.stop) as kept:
        actors.lost = kept.lost
        yield actors.replicas


def _started(ray: ModuleType, folder: Path, shard: int, place: int) -> Any:
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
    return ray.remote(ShardActor).options(**options).remote(folder, shard)


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

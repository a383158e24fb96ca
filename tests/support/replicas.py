"""Replicas of shards in this process: they answer, come late, never come, or fail, as a test wants."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from sonde.app.api import Collection
from sonde.indexer.sharded.collection import ShardedCollection
from sonde.indexer.store.elsewhere import Answer, Question, Way
from sonde.pipelines.search.gather import Gatherer, OutOfReachError, ShardReplica


class FakeReplica:
    """A replica that behaves as its attribute `how` says.

    "answers"; "dead": each call fails; "breaks": it cannot even be asked; "lost": nor can others; "hangs": no
    answer comes before `release`.
    """

    def __init__(self, replica: ShardReplica | None = None, how: str = "answers") -> None:
        self.replica, self.how = replica, how
        self.asked: list[Question] = []
        self.held: list[tuple[Future[Answer], Question]] = []
        self._lock = threading.Lock()

    def ask(self, question: Question) -> "Future[Answer]":
        future: Future[Answer] = Future()
        with self._lock:
            self.asked.append(question)
        if self.how in ("breaks", "lost"):
            raise ConnectionError("gone") if self.how == "breaks" else OutOfReachError
        if self.how == "hangs":
            self.held.append((future, question))
        else:
            self._end(future, question)
        return future

    def ping(self) -> "Future[None]":
        future: Future[None] = Future()
        if self.how == "dead":
            future.set_exception(ConnectionError("killed"))
        elif self.how == "answers":
            future.set_result(None)
        return future

    def release(self) -> None:
        """Answer what is held."""
        self.how = "answers"
        for future, question in self.held:
            self._end(future, question)
        self.held = []

    def _end(self, future: "Future[Answer]", question: Question) -> None:
        if self.how == "dead":
            future.set_exception(ConnectionError("killed"))
            return
        try:
            future.set_result(self.replica.answer(question) if self.replica else Answer([], [], Way(None, "fake")))
        except Exception as error:
            future.set_exception(error)


def fakes(folder: Path, count: int = 2) -> dict[int, list[FakeReplica]]:
    """`count` replicas for each shard of a collection."""
    shards = ShardedCollection.open(folder).sharding.shards
    return {shard: [FakeReplica(ShardReplica(folder, shard)) for _ in range(count)] for shard in range(shards)}


def gathered(collection: Collection, replicas: Mapping[int, Sequence[FakeReplica]], deadline: float = 20) -> Collection:
    """The collection, searched by replicas."""
    assert isinstance(collection.stored, ShardedCollection)
    collection.stored.elsewhere = Gatherer(replicas, deadline)
    return collection

"""Gathers the answers of shards that other processes hold: replicas, hedged questions, and what did not answer.

A question goes to the replica with the fewest unanswered questions. It also goes to the next one if no answer comes
within the time that 95 % of recent answers took, and at once if the replica fails. Few questions are therefore asked
twice, but few wait for a slow process: Dean and Barroso, The Tail at Scale, Communications of the ACM 56(2), 2013.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np

from ...indexer.errors import SondeError
from ...indexer.store.collection import StoredCollection
from ...indexer.store.elsewhere import Answer, Question
from .candidates import DenseSearch

HEDGE_SHARE = 0.95
"""The share of answers that come before a question is asked again: about one in 20 is then asked twice."""
RECENT, FEW = 500, 20
"""Answers from which the delay is taken; with fewer than `FEW` of them, it is `UNKNOWN`."""
UNKNOWN = 0.2
LEAST, MOST = 0.01, 1.0
"""Bounds of the delay in seconds: below, the cost of asking twice exceeds the gain; above, a user notices."""
SHUN = 1.0
"""Seconds for which a replica that failed is asked only if no other is left."""
PROBE = 0.5
"""Seconds to wait for a shard whose replicas have all just failed, so that searches go on without it."""
PING = 1.0
"""Seconds within which a replica answers that it lives."""
OPENING = 2.0
"""A new version of a shard is first loaded, so the first answer about it may take this many times as long."""
T = TypeVar("T")
log = logging.getLogger("sonde.search")


class OutOfReachError(Exception):
    """No replica can be asked, because the connection to them is lost. What keeps the connection reports it."""


class Replica(Protocol):
    """A process that holds one shard."""

    def ask(self, question: Question) -> "Future[Answer]":
        """Begin to answer a question."""
        ...

    def ping(self) -> "Future[None]":
        """Begin to answer that it lives."""
        ...


@dataclass(slots=True, eq=False)
class _Member:
    """A replica and how it has answered.

    Attributes:
        name: For the log.
        replica: The process.
        waiting: How many of its questions are unanswered.
        turn: The number of the last question that it was asked, over all replicas.
        shunned: Until when others are preferred, in seconds of the monotonic clock.
        reported: Whether the log has it that it does not answer; it has not answered since.
    """

    name: str
    replica: Replica
    waiting: int = 0
    turn: int = 0
    shunned: float = 0.0
    reported: bool = False


class Gatherer:
    """Asks the replicas of shards; see `Elsewhere`. It may be used from several threads."""

    def __init__(self, replicas: Mapping[int, Sequence[Replica]], deadline: float) -> None:
        """Take the replicas of each shard, and the seconds after which a search goes on without a shard."""
        self._members = {
            shard: [_Member(f"replica {place} of shard {shard:02d}", each) for place, each in enumerate(some)]
            for shard, some in replicas.items()
        }
        self._deadline = deadline
        self._lock = Lock()
        self._seconds: deque[float] = deque(maxlen=RECENT)
        self._versions: dict[int, str] = {}
        self._turn = 0

    def ask(self, questions: Sequence[Question]) -> list[Answer | None]:
        """Return an answer to each question, None if no replica gave one in time."""
        now, delay = time.monotonic(), self.delay
        asked = [_Asked(self, each, self._in_order(each.shard, now), now, delay) for each in questions]
        while pending := [each for each in asked if each.pending]:
            until = min(each.until for each in pending)
            futures = [future for each in pending for future in each.futures]
            wait(futures, max(0.0, until - time.monotonic()), FIRST_COMPLETED)
            for each in pending:
                each.look(time.monotonic())
        return [each.answer for each in asked]

    def alive(self) -> dict[int, int]:
        """Return by shard how many replicas answer within `PING` seconds that they live."""
        pings = {shard: [_begun(each.replica.ping) for each in some] for shard, some in self._members.items()}
        done = wait([each for some in pings.values() for each in some], PING).done
        return {shard: sum(each in done and each.exception() is None for each in some) for shard, some in pings.items()}

    @property
    def delay(self) -> float:
        """Seconds after which a question is also put to another replica."""
        with self._lock:
            recent = list(self._seconds)
        return float(np.clip(np.quantile(recent, HEDGE_SHARE), LEAST, MOST)) if len(recent) >= FEW else UNKNOWN

    def patience(self, question: Question, members: Sequence[_Member], now: float) -> float:
        """Return for how many seconds to wait for an answer."""
        if all(each.shunned > now for each in members):
            return min(PROBE, self._deadline)
        return self._deadline * (1 if self._versions.get(question.shard) == question.version else OPENING)

    def send(self, member: _Member, question: Question) -> "Future[Answer]":
        """Ask a replica, and note how it answers, also if nobody waits any more."""
        began = time.monotonic()
        with self._lock:
            self._turn += 1
            member.turn = self._turn
            member.waiting += 1
        future = _begun(lambda: member.replica.ask(question))
        future.add_done_callback(lambda done: self._ended(member, question, began, done))
        return future

    def shun(self, member: _Member, why: object) -> None:
        """Prefer other replicas for a while; report it once until the replica answers again."""
        if not member.reported and not isinstance(why, OutOfReachError):
            log.warning("%s does not answer: %s", member.name, str(why).strip().partition("\n")[0])
            member.reported = True
        member.shunned = time.monotonic() + SHUN

    def _ended(self, member: _Member, question: Question, began: float, done: "Future[Answer]") -> None:
        error = done.exception()
        with self._lock:
            member.waiting -= 1
            if error is None:
                member.shunned, member.reported = 0.0, False
                self._versions[question.shard] = question.version
                self._seconds.append(time.monotonic() - began)
        if error is not None:
            self.shun(member, error)

    def _in_order(self, shard: int, now: float) -> list[_Member]:
        """Return the replicas of a shard in the order in which to ask them."""
        with self._lock:
            members = self._members.get(shard, [])
            return sorted(members, key=lambda each: (each.shunned > now, each.waiting, each.turn))


@dataclass(slots=True)
class _Asked:
    """One question on its way.

    Attributes:
        left: The replicas that it was not put to yet.
        delay: Seconds until it is put to the next one.
        futures: The answers that may come, each with its replica.
        deadline: When to give up.
        hedge: When to ask the next replica.
    """

    gatherer: Gatherer
    question: Question
    left: list[_Member]
    began: float
    delay: float
    answer: Answer | None = None
    futures: "dict[Future[Answer], _Member]" = field(default_factory=dict)
    deadline: float = 0.0
    hedge: float = 0.0

    def __post_init__(self) -> None:
        self.deadline = self.began + self.gatherer.patience(self.question, self.left, self.began)
        self._send(self.began)

    @property
    def pending(self) -> bool:
        """Whether an answer may still come."""
        return self.answer is None and bool(self.futures)

    @property
    def until(self) -> float:
        """When to look again at the latest."""
        return min(self.hedge, self.deadline) if self.left else self.deadline

    def look(self, now: float) -> None:
        """Take an answer, ask the next replica, or give up."""
        for future in [each for each in self.futures if each.done()]:
            del self.futures[future]
            if future.exception() is None:
                self.answer = future.result()
                return
            self._send(now)
        if now >= self.deadline:
            for member in self.futures.values():
                self.gatherer.shun(member, f"no answer in {now - self.began:.1f} s")
            self.futures.clear()
        elif now >= self.hedge:
            self._send(now)

    def _send(self, now: float) -> None:
        """Ask the next replica, if there is one."""
        if self.left:
            member = self.left.pop(0)
            self.futures[self.gatherer.send(member, self.question)] = member
            self.hedge = now + self.delay


def _begun(call: "Callable[[], Future[T]]") -> "Future[T]":
    """Return the future of a call; one that has failed if the call raises."""
    try:
        return call()
    except Exception as error:
        failed: Future[T] = Future()
        failed.set_exception(error)
        return failed


KEPT = 2
"""Versions that stay open: a service may still search the one before the newest."""


class ShardReplica:
    """Answers questions about one shard, also from several threads at once. It searches on the CPU."""

    def __init__(self, folder: Path, shard: int) -> None:
        """Load the newest version of a shard of the collection in `folder`.

        If that fails, each question about it fails, too, and says why.
        """
        from ...indexer.sharded.generations import newest_generation
        from ...indexer.sharded.layout import shard_folder
        from ...indexer.sharded.objects import LocalTruth

        self._folder = shard_folder(folder, shard)
        self._opened: dict[str, StoredCollection] = {}
        self._opening = Lock()
        try:
            newest = newest_generation(LocalTruth(folder), folder)
            if newest and (state := newest.shards[shard]):
                self._version(state.version)
        except (OSError, SondeError):  # a run may just have replaced this version
            return

    def answer(self, question: Question) -> Answer:
        """Return the best passages of one version for each query.

        Raises:
            SondeError: The version cannot be read.
        """
        with self._version(question.version).view() as view:
            alive = view.generation.alive if view.generation.tombstones else None
            packed, rows = question.allowed, len(view.generation.owners)
            allowed = alive if packed is None else np.unpackbits(packed, count=rows, bitorder="little").view(bool)
            dense = DenseSearch(view, allowed, question.breadth)
            found = dense.search(question.queries, question.k)
            return Answer([each.scores for each in found], [each.rows for each in found], dense.way(question.k))

    def _version(self, name: str) -> StoredCollection:
        """Return an open version with its FAISS index loaded; the oldest one that is open is forgotten for it."""
        if opened := self._opened.get(name):
            return opened
        with self._opening:
            if name not in self._opened:
                opened = StoredCollection.open(self._folder / name, device="cpu")
                with opened.view() as view:
                    _ = view.generation.ann
                self._opened = dict(list(self._opened.items())[-(KEPT - 1) :]) | {name: opened}
            return self._opened[name]

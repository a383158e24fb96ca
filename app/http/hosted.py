"""The collections that a service keeps open, each with its own search batches."""

import logging
import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, UsageError, nearest
from ...indexer.wording import existing
from ...pipelines.search.results import Results
from ...pipelines.search.settings import SearchSettings
from ..api import Collection
from ..api.served import UNREADABLE, Opening, open_sound, searched_on
from .problems import ProblemError
from .queues import Lanes, MicroBatcher
from .settings import ServeSettings
from .writes import Job, Writes

QUICK_HITS = 100
"""Hits, including those left out, up to which a search is quick: 100 take a few milliseconds, 1,000 about 50."""
QUICK_FILTER = 1_000
"""Characters up to which a filter is quick."""
SHARD_SHARE = 1 / 3
"""Part of the time limit of a request after which a search goes on without a shard that does not answer."""
SLOW_TOGETHER = 4
"""Slow searches that are answered together. A batch ends early only when all its clients have left."""
LEAVING = 2.0
"""Seconds that a service which stops waits for work that only reads and has lost its client, such as loading models."""
UNUSABLE = ("damaged", "no-collection")
"""Codes of the errors of a search that say that the collection cannot be used, whatever was asked."""
Note = Callable[[Exception], None]
log = logging.getLogger("sonde.http")


@dataclass(frozen=True, slots=True)
class SearchJob:
    """One query with its settings, and how its results become the body of the answer, in the thread that has them."""

    query: str
    settings: SearchSettings
    rendered: Callable[[Results], bytes]


def is_quick(settings: SearchSettings) -> bool:
    """Return whether a search is cheap enough to go before expensive ones."""
    hits, filter = settings.k + settings.offset, settings.where or ""
    examined = max(hits, settings.depth or 0)
    return examined <= QUICK_HITS and len(filter) <= QUICK_FILTER and not settings.rerank and not settings.explain


class Searches:
    """The searches of a collection in two batches: quick ones, and the others."""

    def __init__(self, collection: Callable[[], Collection], lanes: Lanes, settings: ServeSettings, note: Note) -> None:
        """Take what returns the collection, the lanes in which they run, and what notes that it cannot be used."""
        work, waiting = _searcher(collection, note), settings.queue
        self.quick = MicroBatcher(work, lanes.quick, alike=_settings_of, waiting=waiting, together=settings.batch)
        self.slow = MicroBatcher(work, lanes.slow, alike=_settings_of, waiting=waiting, together=SLOW_TOGETHER)

    @property
    def waiting(self) -> int:
        """Number of waiting searches."""
        return self.quick.waiting + self.slow.waiting

    async def submit(self, job: SearchJob) -> bytes:
        """Return the rendered results of a search.

        Raises:
            BusyError: Too many searches are waiting.
        """
        return await (self.quick if is_quick(job.settings) else self.slow).submit(job)

    async def close(self) -> None:
        """Answer the waiting searches, then stop."""
        await self.quick.close()
        await self.slow.close()


class Hosted:
    """One collection.

    Attributes:
        name: Its name in requests.
        searches: Its searches.
        writes: Its writes.
        problem: The code of the error if it could not be used when it was last checked; otherwise empty.
        warm: Whether its model and its indexes were loaded.
    """

    def __init__(self, opening: Opening, lanes: Lanes, settings: ServeSettings) -> None:
        """Take what opens it, and the lanes and settings of its requests."""
        self.name, self.problem, self.warm = opening.name, "", False
        self.opening, self._said = opening, ""
        self.searches = Searches(lambda: self.collection, lanes, settings, self.note)
        self.writes = Writes(opening.name, settings.queue)

    @property
    def collection(self) -> Collection:
        """The open collection. If it was damaged when the service started, it is opened once it is restored.

        Raises:
            SondeError: It cannot be opened.
        """
        return self.opening.collection

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Record in `problem` that the work inside could not use the collection. A new problem is logged once."""
        try:
            yield
        except Exception as error:
            self.note(error)
            raise

    def look(self) -> int | None:
        """Check whether the collection can be used now; return how many documents it has, None if it cannot be used.

        Without a problem, only its files are opened, which takes less than a millisecond. With one, a search must
        succeed: the files of damaged embeddings can be opened, too.
        """
        with suppress(Exception), self.looked_at():
            documents = len(self.collection)
            if self.problem:
                self.load()
            return None if self.problem else documents
        return None

    def note(self, error: Exception) -> None:
        """Record why it cannot be used."""
        self.problem = getattr(error, "code", SondeError.code)
        if str(error) != self._said:
            known = isinstance(error, UNREADABLE)
            log.error("the collection %s cannot be used: %s", self.name, error, exc_info=None if known else error)
        self._said = str(error)

    def load(self) -> None:
        """Load its model and indexes, or record why that is not possible."""
        with suppress(Exception), self.looked_at():
            list(self.collection.search_many("warm", k=1))
            self.warm, self.problem, self._said = True, "", ""


class Hosts:
    """All collections of a service by name. Requests can use only these names; they never become paths.

    Attributes:
        hosted: The collections by name.
        lanes: The lanes in which they work.
        ended: Whether no thread still reads or loads after `close`; Python would wait for it before the process ends.
    """

    def __init__(self, hosted: dict[str, Hosted], lanes: Lanes) -> None:
        """Take the open collections, and the lanes in which they work."""
        self.hosted = hosted
        self.lanes = lanes
        self.ended = True

    @classmethod
    def open(cls, paths: Sequence[Path], settings: ServeSettings, encoder: Encoder | None = None) -> "Hosts":
        """Open collections; the name of each is its folder's name without `.sonde`. Damaged ones are kept.

        Raises:
            SondeError: A collection does not exist, or all are damaged.
            UsageError: Two collections have the same name, or no paths were given.
        """
        if not paths:
            raise UsageError("name at least one collection to serve")
        hosted: dict[str, Hosted] = {}
        lanes = Lanes.of(settings.queue)
        for path in paths:
            opening = Opening.at(path, settings.device, encoder)
            if opening.name in hosted:
                raise UsageError(f"two collections are called {opening.name!r}: rename the folder of one")
            hosted[opening.name] = Hosted(opening, lanes, settings)
        for name, error in open_sound([host.opening for host in hosted.values()]).items():
            hosted[name].note(error)
        return cls(hosted, lanes)

    def find(self, name: str | None) -> Hosted:
        """Return the collection of this name, or the only collection if no name is given.

        Raises:
            ProblemError: The collection does not exist (404), or no name was given and there are several (422).
        """
        if name is None and len(self.hosted) > 1:
            raise ProblemError(422, f"name one of the collections: {', '.join(self.hosted)}", "collection")
        found = next(iter(self.hosted.values())) if name is None else self.hosted.get(name)
        if found is None:
            raise ProblemError(404, f"there is no collection {reprlib.repr(name)}: {self._hint(name)}", "collection")
        return found

    def _hint(self, name: str | None) -> str:
        bare = (name or "").removesuffix(".sonde")
        near = nearest(bare, self.hosted)
        return f"did you mean {near!r}?" if near else existing(self.hosted)

    def searched(self, on: str | None, replicas: int | None, settings: ServeSettings) -> AbstractContextManager[None]:
        """Return a context in which the shards of all collections are searched on Ray, if `on` says where.

        Raises:
            UsageError: A collection has no shards.
            SondeError: Ray does not answer, or the processes do not start.
        """
        if on is None:
            return nullcontext()
        collections = [host.collection for host in self.hosted.values() if not host.problem]
        return searched_on(on, collections, settings.timeout * SHARD_SHARE, replicas)

    def warm(self) -> bool:
        """Load models and indexes, so that the first request does not wait for them; return whether all are loaded."""
        for host in self.hosted.values():
            if not host.warm:
                host.load()
        return all(host.warm for host in self.hosted.values())

    def look(self) -> None:
        """Check whether each collection can be used now."""
        for host in self.hosted.values():
            host.look()

    @property
    def problems(self) -> dict[str, str]:
        """The collections that could not be used when they were last checked, with the code of the error."""
        return {name: host.problem for name, host in self.hosted.items() if host.problem}

    @property
    def jobs(self) -> list[Job]:
        """The writes that wait or run, of all collections."""
        return [job for host in self.hosted.values() for job in host.writes.jobs]

    def stop(self) -> None:
        """Say in the log which writes the end of the service waits for."""
        for host in self.hosted.values():
            host.writes.stop()

    async def close(self) -> None:
        """Answer the waiting searches and finish writes; drop the rest of the work."""
        for host in self.hosted.values():
            await host.searches.close()
            host.writes.finish()
        self.ended = self.lanes.leave(LEAVING)


def _settings_of(job: SearchJob) -> SearchSettings:
    return job.settings


def _searcher(
    collection: Callable[[], Collection], note: Note = lambda _: None
) -> Callable[[Sequence[SearchJob]], list[bytes | Exception]]:
    def search(jobs: Sequence[SearchJob]) -> list[bytes | Exception]:
        """Answer jobs of equal settings: they are encoded and searched together."""
        found = _together(collection, [job.query for job in jobs], jobs[0].settings)
        for each in found:
            if isinstance(each, Exception) and getattr(each, "code", "") in UNUSABLE:
                note(each)
        return [
            each if isinstance(each, Exception) else job.rendered(each) for job, each in zip(jobs, found, strict=True)
        ]

    return search


def _together(
    collection: Callable[[], Collection], queries: Sequence[str], settings: SearchSettings
) -> Sequence[Results | Exception]:
    try:
        return list(collection().search_many(queries, settings=settings))
    except Exception as error:
        if len(queries) == 1:
            return [error]
        return [answer for query in queries for answer in _together(collection, [query], settings)]

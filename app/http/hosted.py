"""The collections that a service keeps open, each with its own search batches."""

import asyncio
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, UsageError
from ...pipelines.search.results import Results
from ...pipelines.search.settings import SearchSettings
from ..api import Collection
from .batcher import MicroBatcher
from .problems import ProblemError
from .settings import ServeSettings


@dataclass(frozen=True, slots=True)
class SearchJob:
    """One query with its settings."""

    query: str
    settings: SearchSettings


@dataclass(slots=True)
class Hosted:
    """One open collection; `writing` is the lock that makes its writes run one at a time."""

    name: str
    collection: Collection
    searches: MicroBatcher[SearchJob, Results]
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Hosts:
    """All collections of a service by name. Requests can use only these names; they never become paths."""

    def __init__(self, hosted: dict[str, Hosted]) -> None:
        """Take the open collections."""
        self.hosted = hosted

    @classmethod
    def open(cls, paths: Sequence[Path], settings: ServeSettings, encoder: Encoder | None = None) -> "Hosts":
        """Open collections; the name of each is its folder's name without `.sonde`.

        Raises:
            SondeError: A collection cannot be opened.
            UsageError: Two collections have the same name, or no paths were given.
        """
        if not paths:
            raise UsageError("name at least one collection to serve")
        hosted: dict[str, Hosted] = {}
        for path in paths:
            name = path.name.removesuffix(".sonde") or path.absolute().name
            if name in hosted:
                raise UsageError(f"two collections are called {name!r}: rename the folder of one")
            collection = Collection.open(path, device=settings.device, encoder=encoder)
            batcher = MicroBatcher(_searcher(collection), waiting=settings.queue, together=settings.batch)
            hosted[name] = Hosted(name, collection, batcher)
        return cls(hosted)

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
        close = [bare] if bare in self.hosted else get_close_matches(bare, self.hosted, 1)
        return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(self.hosted)}"

    def warm(self) -> None:
        """Load models and indexes, so that the first request does not wait for them."""
        for host in self.hosted.values():
            list(host.collection.search_many("warm", k=1))

    async def close(self) -> None:
        """Answer the waiting searches, then close the collections."""
        for host in self.hosted.values():
            await host.searches.close()


def _searcher(collection: Collection):  # noqa: ANN202  (a closure for `MicroBatcher`, typed there)
    def search(jobs: Sequence[SearchJob]) -> list[Results | Exception]:
        """Answer all jobs; jobs with equal settings are encoded and searched together."""
        answers: list[Results | Exception] = [SondeError("no answer")] * len(jobs)
        places: dict[SearchSettings, list[int]] = {}
        for place, job in enumerate(jobs):
            places.setdefault(job.settings, []).append(place)
        for settings, some in places.items():
            for place, answer in zip(some, _together(collection, [jobs[p].query for p in some], settings), strict=True):
                answers[place] = answer
        return answers

    return search


def _together(
    collection: Collection, queries: Sequence[str], settings: SearchSettings
) -> Sequence[Results | Exception]:
    try:
        return list(collection.search_many(queries, settings=settings))
    except Exception as error:
        if len(queries) == 1:
            return [error]
        return [answer for query in queries for answer in _together(collection, [query], settings)]

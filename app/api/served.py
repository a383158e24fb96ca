"""The collections of a server: opened although others are damaged, their shards searched in other processes."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, UsageError, arg, out_of_range
from ...indexer.sharded.collection import ShardedCollection
from ...pipelines.search.gather import Gatherer
from .collection import Collection
from .opened import Opened

DAMAGED = "damaged"
UNREADABLE = (SondeError, OSError)
"""What reading a damaged collection raises."""
REPLICAS = 2
"""Processes for each shard, unless the user says otherwise: if one dies, the other answers."""


class Opening:
    """A collection by its name, opened when it is first used."""

    def __init__(self, path: Path, opened: Callable[[], Collection]) -> None:
        """Take its folder, and what opens it."""
        self.name = path.name.removesuffix(".sonde") or path.absolute().name
        self._path, self._open = path, opened
        self._opened: Collection | None = None

    @classmethod
    def at(cls, path: Path, device: str = "auto", encoder: Encoder | None = None) -> "Opening":
        """Take the arguments of `Collection.open`."""
        return cls(path, partial(Collection.open, path, device=device, encoder=encoder))

    @property
    def collection(self) -> Collection:
        """The open collection. If it could not be opened before, this tries again: it may have been restored.

        Raises:
            SondeError: It cannot be opened.
        """
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @property
    def folder(self) -> Path:
        """The folder that its messages name."""
        return self._path if self._opened is None else self._opened.path

    def without_folder(self, error: Exception | str) -> str:
        """Return a message without the path to the collection."""
        said = str(error)
        for place in (self.folder.absolute(), self.folder):
            folder = re.escape(f"{place.parent}{os.sep}")
            said = re.sub(rf"(?<![^\s'`]){folder}", "", said)  # only where a path begins
        return said


def open_sound(openings: Sequence[Opening]) -> dict[str, SondeError]:
    """Open collections; return the errors of damaged ones, by name.

    Raises:
        SondeError: A collection does not exist or cannot be opened for another reason, or all are damaged.
    """
    damaged = dict[str, SondeError]()
    for each in openings:
        try:
            _ = each.collection
        except SondeError as error:
            if error.code != DAMAGED:
                raise
            damaged[each.name] = error
    if damaged and len(damaged) == len(openings):
        raise next(iter(damaged.values()))
    return damaged


def check_elsewhere(on: str | None, replicas: int | None) -> None:
    """Check where shards are to be searched, before anything is opened.

    Raises:
        UsageError: The address or the number of replicas is not valid.
        MissingExtraError: Ray is not installed.
        SondeError: Nothing listens at the address.
    """
    if replicas is not None and on is None:
        raise UsageError(f"{arg('replicas')} needs {arg('on')}", field="replicas")
    if replicas is not None and replicas < 1:
        raise out_of_range("replicas", replicas, "give a whole number from 1")
    if on is not None:
        from ..ray.connect import check_address, reach

        check_address(on)
        reach(on)


@contextmanager
def searched_on(on: str, collections: Sequence[Opened], deadline: float, replicas: int | None = None) -> Iterator[None]:
    """Have the embeddings of sharded collections searched by processes on Ray, until the context ends.

    This process then loads none of their FAISS indexes. It must not have searched the collections before.

    Args:
        on: "ray" starts Ray on this machine, on the loopback interface only. "ray://HOST:PORT" uses a running cluster,
            whose machines must have the collections' folders under the same paths.
        collections: Open collections.
        deadline: Seconds after which a search goes on without a shard.
        replicas: Processes for each shard; None: `REPLICAS`.

    Raises:
        UsageError: A collection has no shards.
        SondeError: Ray does not answer, or the processes do not start.
    """
    from ..ray.serve import replicas_on_ray

    stored = [_sharded(each) for each in collections]
    folders = [(each.path.absolute(), each.sharding.shards) for each in stored]
    with replicas_on_ray(on, folders, replicas or REPLICAS) as started:
        for each, some in zip(stored, started, strict=True):
            each.elsewhere = Gatherer(some, deadline)
        yield


def _sharded(collection: Opened) -> ShardedCollection:
    if isinstance(collection.stored, ShardedCollection):
        return collection.stored
    named = collection.stored.named
    said = f"{named} has no shards, and {arg('on')} serves shards: index its sources with {arg('shards')}"
    raise UsageError(f"{said}, or leave out {arg('on')}", code="not-sharded", field="on")


def alive(collection: Opened) -> Mapping[int, int]:
    """Return by shard how many processes answer for it now; empty if this process searches the collection."""
    stored = collection.stored
    return stored.elsewhere.alive() if isinstance(stored, ShardedCollection) and stored.elsewhere else {}

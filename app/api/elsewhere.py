"""Searching the shards of open collections in other processes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...indexer.errors import UsageError, arg, out_of_range
from ...indexer.sharded.collection import ShardedCollection
from ...pipelines.search.gather import Gatherer
from .opened import Opened

REPLICAS = 2
"""Processes for each shard, unless the user says otherwise: if one dies, the other answers."""


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


def alive(collection: Opened) -> Mapping[int, int]:
    """Return by shard how many processes answer for it now; empty if this process searches the collection."""
    stored = collection.stored
    return stored.elsewhere.alive() if isinstance(stored, ShardedCollection) and stored.elsewhere else {}


def _sharded(collection: Opened) -> ShardedCollection:
    if isinstance(collection.stored, ShardedCollection):
        return collection.stored
    named = collection.stored.named
    said = f"{named} has no shards, and {arg('on')} serves shards: index its sources with {arg('shards')}"
    raise UsageError(f"{said}, or leave out {arg('on')}", code="not-sharded", field="on")

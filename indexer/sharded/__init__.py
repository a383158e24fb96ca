"""Sharded collections: several ordinary collections that are built apart and searched as one.

Only what tells them apart is here, so that opening an ordinary collection loads nothing of the rest.
"""

from pathlib import Path
from typing import Any

from ..store.collection import StoredCollection

COLLECTION = "collection.json"


def is_sharded(folder: Path) -> bool:
    """Whether a folder is a sharded collection."""
    return (folder / COLLECTION).is_file()


def open_stored(path: str | Path, **options: Any) -> StoredCollection:
    """Open a collection, sharded or not, with the arguments of `StoredCollection.open`.

    Raises:
        SondeError: There is no collection at `path`, or it cannot be read.
    """
    if is_sharded(Path(path)):
        from .collection import ShardedCollection

        return ShardedCollection.open(path, **options)
    return StoredCollection.open(path, **options)

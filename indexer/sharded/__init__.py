"""Sharded collections: several ordinary collections that are built apart and searched as one.

Only what tells them apart is here, so that opening an ordinary collection loads nothing of the rest.
"""

import re
from pathlib import Path
from typing import Any

from ..store.collection import StoredCollection
from ..store.lock import COLLECTION

_ADDRESS = re.compile(r"s3:/{1,2}([^/]+(?:/[^/]+)+)")


def address_of(path: str | Path) -> str | None:
    """Return "s3://BUCKET/NAME" if that is what a path means, from which `Path` takes one slash; None for any other."""
    match = _ADDRESS.fullmatch(str(path).rstrip("/"))
    return f"s3://{match[1]}" if match else None


def lasting_file(folder: Path) -> Path | None:
    """Return the file of a collection, sharded or not, that stays for as long as it is the same; None if there is none.

    The address of a collection in an object store is not that of a folder.
    """
    return next((path for name in (COLLECTION, "catalog.db") if (path := folder / name).is_file()), None)


def is_sharded(folder: Path) -> bool:
    """Whether a folder is a sharded collection, or a path the address of one in an object store."""
    return address_of(folder) is not None or (folder / COLLECTION).is_file()


def open_stored(path: str | Path, **options: Any) -> StoredCollection:
    """Open a collection, sharded or not, with the arguments of `StoredCollection.open`.

    Raises:
        SondeError: There is no collection at `path`, or it cannot be read.
    """
    if address_of(path):
        from .bucket import opened_copy

        path = opened_copy(path) or path
    if is_sharded(Path(path)):
        from .collection import ShardedCollection

        return ShardedCollection.open(path, **options)
    return StoredCollection.open(path, **options)

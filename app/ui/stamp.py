"""What tells one state of a collection from another, for what pages keep of it."""

from ..api import Collection

Stamp = tuple[tuple[int, int, int], ...]


def stamp(collection: Collection) -> Stamp:
    """Return a value that changes with every commit: of documents, which count the generation up, and of runs."""
    parts = [collection.catalog_path, collection.catalog_path.with_name(collection.catalog_path.name + "-wal")]
    found = [part.stat() for part in parts if part.exists()]
    return tuple((part.st_ino, part.st_mtime_ns, part.st_size) for part in found)

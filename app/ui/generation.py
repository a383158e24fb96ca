"""What tells one state of a collection's documents from any other: a key for what the server keeps of it."""

from typing import Any

from ..api import Collection


def stamp(collection: Collection) -> tuple[Any, ...]:
    """Return a key that changes when documents do, and when a collection is made anew; a run has its own number."""
    made = collection.catalog_path.stat()
    return str(collection.path), made.st_dev, made.st_ino, collection.get("generation", 0)

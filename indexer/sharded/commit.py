"""The one commit of a sharded collection, of documents or of runs: the file of a new generation."""

from pathlib import Path

from ..errors import WriterBusyError
from .bucket import bucket_of
from .layout import ShardedGeneration
from .objects import LocalTruth


def commit(folder: Path, new: ShardedGeneration) -> None:
    """Make a generation the newest one; what it consists of must be there.

    Raises:
        WriterBusyError: Another run committed first.
        SondeError: The object store of the collection does not answer.
    """
    if bucket := bucket_of(folder):
        bucket.publish(new)
    if not LocalTruth(folder).create(new.name, new.to_bytes()):
        raise WriterBusyError(
            f"another command committed generation {new.number} of {folder} first: this one committed nothing; "
            "run the same command again"
        )

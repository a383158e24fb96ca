"""One writer at a time: a lock that the operating system releases when its process dies."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from .disk import explained
from .errors import WriterBusyError


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Hold the collection's writer lock; trouble with the disk comes out as one line that says so.

    Raises:
        SondeError: Another process holds it, which the message names; or the disk is full or read-only.
    """
    lock = FileLock(folder / "writer.lock")
    note = folder / "writer.json"
    try:
        lock.acquire(timeout=0)
        try:
            note.write_text(json.dumps({"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}))
            yield
        finally:
            note.unlink(missing_ok=True)
            lock.release()
    except Timeout:
        raise WriterBusyError(
            f"{folder} is being written by {_holder(note)}: wait for it to end, then try again"
        ) from None
    except BaseException as error:
        raise explained(error, folder) from None


def being_written(folder: Path) -> bool:
    """Return whether a process that is alive holds the lock, from the note that it left; the lock is not touched."""
    import psutil

    try:
        return psutil.pid_exists(int(json.loads((folder / "writer.json").read_text())["pid"]))
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _holder(note: Path) -> str:
    try:
        held = json.loads(note.read_text())
    except (OSError, ValueError):
        return "another process"
    return f"process {held['pid']} since {held['since']}"

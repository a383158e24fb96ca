"""One writer at a time: a lock that the operating system releases when its process dies."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from .errors import SondeError


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Hold the collection's writer lock.

    Raises:
        SondeError: Another process holds it; the message names the process.
    """
    lock = FileLock(folder / "writer.lock")
    note = folder / "writer.json"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SondeError(f"{folder} is being written by {_holder(note)}: wait for it to end, then try again") from None
    try:
        note.write_text(json.dumps({"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}))
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _holder(note: Path) -> str:
    try:
        held = json.loads(note.read_text())
    except (OSError, ValueError):
        return "another process"
    return f"process {held['pid']} since {held['since']}"

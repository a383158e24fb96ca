"""Where one shard is built: a lock that one process holds, and a folder that a stopped run continues in."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import WriterBusyError
from ..files import link_or_copy, make_folder, write_durably
from .generations import read_note
from .layout import DIGITS, shard_folder, work_folder
from .manifest import MANIFEST

LEFT_OUT = ("writer.lock", "writer.json", "writer.queue", "catalog.db-wal", "catalog.db-shm", MANIFEST, "skipped.jsonl")
"""Files of a collection that are not part of a published version."""
ORPHANS = 300.0
"""Seconds to wait for another process that builds the shard: on Ray, tasks outlive their command for a while."""
LEARNED = "late"
_NOTE = "run"


@contextmanager
def alone(folder: Path, shard: int) -> Iterator[None]:
    """Be the only process that builds a shard: of a collection's folder, and the shard's number.

    The command holds the writer lock, but on Ray, its tasks may still run when it is dead and another command begins.

    Raises:
        WriterBusyError: Another process builds it, and does not end within `ORPHANS` seconds.
    """
    from filelock import FileLock, Timeout

    place = shard_folder(folder, shard)
    make_folder(place)
    lock = FileLock(place / "build.lock")
    try:
        lock.acquire(timeout=ORPHANS)
    except Timeout:
        said = f"shard {shard} of {folder} is still being built for an earlier command"
        raise WriterBusyError(f"{said}: end its processes, or run the same command again later") from None
    try:
        yield
    finally:
        lock.release()


def learned_folder(folder: Path, generation: int) -> Path:
    """Return where a run keeps what a late index learned from the documents of a generation."""
    return work_folder(folder) / LEARNED / str(generation)


def begun(folder: Path, shard: int, base: str | None, version: str) -> Path:
    """Return the folder to build a version in: the one of the same run, stopped, or a copy of the version `base`.

    What another run left is removed, also if its process has written it only now.
    """
    place = work_folder(folder) / f"{shard:02d}"
    there, note = place / "collection.sonde", place / _NOTE
    if read_note(note) != version[DIGITS:]:
        shutil.rmtree(place, ignore_errors=True)
        make_folder(place)
        write_durably(note, lambda stream: stream.write(version[DIGITS:].encode()))
    if there.exists() or base is None:
        (there / MANIFEST).unlink(missing_ok=True)  # of a run that was stopped just before it published
        return there
    copy = place / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    make_folder(copy)
    source = shard_folder(folder, shard) / base
    for path in sorted(source.rglob("*")):
        target = copy / path.relative_to(source)
        if path.is_dir():
            make_folder(target)
        elif path.parent.name == "vectors" or path.parent.parent.name == "late":
            link_or_copy(path, target)  # writers replace such a file and never change it
        elif path.name not in LEFT_OUT:
            shutil.copy2(path, target)
    copy.rename(there)
    return there

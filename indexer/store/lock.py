"""One writer at a time: a lock that the operating system releases when its process dies, and how long others wait."""

import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SondeError, WriterBusyError
from ..files import disk_error
from ..progress import Notify, silent
from ..small_files import read_json
from ..wording import counted, on_one_line, shown_path

if TYPE_CHECKING:
    from filelock import FileLock

_POLL_SECONDS = 0.05
OWN_THREAD = "another thread of this program"
"""Who holds a lock, in the message of an error, if it is this process."""
QUEUE = "writer.queue"
"""A second lock: who waits for the first holds it, and so a long run knows that somebody waits."""
COLLECTION = "collection.json"
"""The file of a sharded collection that never changes; see `indexer/sharded/layout.py`."""
PARTS = ("vectors", "ann", "lexical", "late", "models", "shards", "generations", "runs", "work")
"""The folders inside a collection, sharded or not."""
MANIFEST = "shard.json"
"""The list of files in a published version of a shard, which never changes; see `indexer/sharded/generations.py`."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a writer waits while another process writes, in seconds from 0, and who is told about it."""

    seconds: float = 0.0
    notify: Notify = silent


NONE = Patience()
USUAL = Patience(30.0)
"""How long a writer waits by default."""
AGAIN = Patience(600.0)
"""How long a run that made room for another writer waits for its own next turn."""
PATIENCE: ContextVar[Patience | None] = ContextVar("patience", default=None)


def asked() -> Patience:
    """Return how long writers in this context wait: as long as `patience` says, or the usual time."""
    return PATIENCE.get() or USUAL


@contextmanager
def patience(wait: Patience) -> Iterator[None]:
    """Set how long writers wait until the context ends."""
    before = PATIENCE.set(wait)
    try:
        yield
    finally:
        PATIENCE.reset(before)


@contextmanager
def writer_lock(folder: Path, wait: Patience | None = None) -> Iterator[None]:
    """Hold the collection's writer lock; disk errors are raised as one line that says what is wrong.

    Args:
        folder: The collection.
        wait: How long to wait for another writer; see `asked` if None.

    Raises:
        SondeError: Another process holds the lock, which the message names; the folder is a published version of a
            shard; or the disk is full or read-only.
    """
    from filelock import FileLock, Timeout

    refuse_links(folder)
    if (folder / MANIFEST).is_file():
        raise SondeError(f"{folder} is a part of a sharded collection and never changes: name the whole collection")
    lock = FileLock(folder / "writer.lock")
    note = folder / "writer.json"
    try:
        _acquire(lock, note, wait or asked())
        try:
            note.write_text(json.dumps({"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}))
            yield
        finally:
            with suppress(OSError):  # a disk that fails here must not hide why the work failed, nor keep the lock
                note.unlink(missing_ok=True)
            lock.release()
    except Timeout:
        raise WriterBusyError(
            f"{folder} is being written to by {holder_of(note)}: wait for it to end, then try again"
        ) from None
    except BaseException as error:
        raise disk_error(error, folder) from None


def is_noted(folder: Path) -> bool:
    """Return whether a writer has noted that it is at work, if only one that was killed."""
    return (folder / "writer.json").exists()


def _acquire(lock: "FileLock", note: Path, patience: Patience) -> None:
    from filelock import FileLock, Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not patience.seconds:
            raise
        patience.notify(f"{note.parent} is being written to by {holder_of(note)}: waiting up to {patience.seconds:g} s")
        end = time.monotonic() + patience.seconds
        with FileLock(note.parent / QUEUE).acquire(timeout=patience.seconds, poll_interval=_POLL_SECONDS):
            lock.acquire(timeout=max(0.0, end - time.monotonic()), poll_interval=_POLL_SECONDS)


def is_awaited(folder: Path) -> bool:
    """Return whether another writer waits for the lock of a collection, which the caller holds."""
    from filelock import FileLock, Timeout

    try:
        if (folder / QUEUE).exists():
            with FileLock(folder / QUEUE).acquire(timeout=0):
                pass
    except Timeout:
        return True
    return False


def let_in(folder: Path) -> None:
    """Wait, without the lock, until the writer that is next has it or has given up.

    Raises:
        WriterBusyError: Neither happens in time.
    """
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / QUEUE).acquire(timeout=AGAIN.seconds, poll_interval=_POLL_SECONDS):
            pass
    except Timeout:
        raise WriterBusyError(f"other processes keep {folder} busy: run the same command again later") from None


def refuse_links(folder: Path) -> None:
    """Refuse a collection that holds anything but files and folders of its own.

    A link in a collection that someone sent could have Sonde write or delete files elsewhere. Nothing is followed here.

    Raises:
        SondeError: It holds a link, a pipe or a device; the message names it.
    """
    for path in _below(folder):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue  # a writer replaces files while others read
        except OSError as error:
            raise SondeError(f"{shown_path(path)} cannot be checked: {error.strerror}; remove it first") from None
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
            raise SondeError(f"{shown_path(path)} is {what}: a collection holds only its own files, so remove it first")


def _below(folder: Path) -> Iterator[Path]:
    """Yield everything in a folder and its subfolders, without following links; what vanishes meanwhile is left out."""
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def being_written(folder: Path) -> bool:
    """Return whether a process that is alive holds the lock, from the note that it left; the lock is not touched."""
    import psutil

    writer = _writer(folder)
    return writer is not None and psutil.pid_exists(writer)


def no_collection(folder: Path, why: str = "") -> SondeError:
    """Return the error for a folder without a catalog: it is none, or its first writer has not come that far yet.

    Args:
        folder: The folder.
        why: What is wrong with its catalog; empty if there is none.
    """
    if being_written(folder) and _writer(folder) != os.getpid():
        holder = holder_of(folder / "writer.json")
        return WriterBusyError(
            f"{folder} is being written to by {holder}, and nothing is committed yet: try again later"
        )
    if not folder.exists():
        return SondeError(f"there is no collection at {folder}: it was deleted or moved", code="no-collection")
    if whole := next((each for each in folder.absolute().parents if _is_part(folder, each)), None):
        return _part_of(whole, folder)
    return SondeError(f"{folder} is not a Sonde collection: {why or _held(folder)}", code="no-collection")


def unfinished(named: object) -> SondeError:
    """Return the error for a collection whose first run was stopped before its first commit; its work is kept."""
    return SondeError(f"{named} is unfinished: its first `sonde index` was stopped; run it again to continue")


def whole_of(folder: Path) -> Path:
    """Return the collection that a folder, such as that of a shard, is a part of; else the folder itself."""
    return next((each for each in folder.parents if _is_part(folder, each)), folder)


def _is_part(folder: Path, whole: Path) -> bool:
    """Whether a folder is one of those inside a collection."""
    known = any((whole / name).is_file() for name in (COLLECTION, "catalog.db"))
    return known and folder.absolute().relative_to(whole.absolute()).parts[0] in PARTS


def _part_of(whole: Path, folder: Path) -> SondeError:
    below = folder.absolute().relative_to(whole).parts
    name = Path(*folder.parts[: -len(below)]) if len(folder.parts) > len(below) else whole
    what = "a shard" if below[0] == "shards" and len(below) > 1 else "a part"
    return SondeError(f"{folder} is {what} of {name}: use {name}", code="no-collection")


def _held(folder: Path) -> str:
    """Return what a folder without a catalog holds, in words."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if {"vectors", "generations"} & set(names):
        return f"it has no {COLLECTION if 'generations' in names else 'catalog.db'}"
    others = [name for name in names if name not in ("writer.lock", "writer.json")]
    known = [name for name in others if _is_collection(folder / name)]
    if known:
        return f"it holds {counted(len(known), 'collection')}; name one, such as {on_one_line(str(folder / known[0]))}"
    held = f"it holds other files, such as {on_one_line(others[0])}" if others else "it is empty"
    return f"{held}; name a collection, or a new folder to index into"


def _is_collection(folder: Path) -> bool:
    with suppress(PermissionError):  # a folder of somebody else's
        return any((folder / name).is_file() for name in (COLLECTION, "catalog.db"))
    return False


def _writer(folder: Path) -> int | None:
    return (_note(folder / "writer.json") or (None,))[0]


def holder_of(note: Path) -> str:
    """Return who holds a lock, in words, from the note `writer.json` beside it."""
    held = _note(note)
    if held is None:
        return "another process"
    who = OWN_THREAD if held[0] == os.getpid() else f"process {held[0]}"
    return f"{who} since {held[1]}"


def _note(path: Path) -> tuple[int, str] | None:
    """Return which process holds a lock, and since when; None if no note says that."""
    try:
        held = read_json(path)
        pid, since = held["pid"], datetime.fromisoformat(held["since"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return (pid, since.isoformat(timespec="seconds")) if type(pid) is int and 0 < pid < 2**31 else None

"""The folder of a shard or of the runs' catalog: where a version is built, and the list of its files."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import SondeError, WriterBusyError
from ..files import link_or_copy, make_folder, sha256, sync_folder, write_durably
from ..small_files import parsed, read_small
from ..store.lock import MANIFEST
from .generations import read_note
from .layout import DIGITS, Published, shard_folder, work_folder

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
        said = f"shard {shard:02d} of {folder} is still being built for an earlier command"
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


def publish(folder: Path, final: Path, facts: Mapping[str, Any]) -> None:
    """Give a finished folder its name, with a list of its files and their digests, and what else is to be kept.

    What another run has left under this name is removed; no generation names it.
    """
    files = {str(path.relative_to(folder)): sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    content = json.dumps({**facts, "files": files}, indent=1).encode()
    write_durably(folder / MANIFEST, lambda stream: stream.write(content))
    make_folder(final.parent)
    shutil.rmtree(final, ignore_errors=True)
    folder.rename(final)
    sync_folder(final.parent)


def manifest_of(folder: Path) -> tuple[dict[str, Any], str]:
    """Return what a published folder says of itself, and the SHA-256 of that; its files lie in the folder.

    Raises:
        SondeError: The manifest is damaged, or names a file outside.
    """
    content = _content(folder)
    return _stored(content, str(folder)), hashlib.sha256(content).hexdigest()


def has_manifest(folder: Path, state: Published) -> bool:
    """Whether a folder holds the version that a generation names, to judge by its manifest."""
    path = folder / MANIFEST
    return path.is_file() and sha256(path) == state.sha256


def changed_files(folder: Path, state: Published) -> Sequence[str]:
    """Return the files of a published folder that are missing or have changed since; its manifest if that has.

    Raises:
        SondeError: The manifest names a file outside.
    """
    if not has_manifest(folder, state):
        return [MANIFEST]
    files = files_in(_content(folder), str(folder))
    return [name for name, digest in files.items() if not (folder / name).is_file() or sha256(folder / name) != digest]


def files_in(manifest: bytes, place: str) -> Mapping[str, str]:
    """Return the digests of a version's files by name, each name checked to lie below the version's folder.

    Raises:
        SondeError: The manifest is damaged, or names a file outside.
    """
    return _stored(manifest, place)["files"]


def _content(folder: Path) -> bytes:
    try:
        return read_small(folder / MANIFEST)
    except ValueError as error:
        raise _damaged(folder, error) from None


def _stored(manifest: bytes, place: str) -> dict[str, Any]:
    try:
        found = dict(parsed(manifest))
        found["files"] = dict(found["files"])
        names = [PurePosixPath(name) for name in found["files"]]
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(place, error) from None
    for name in names:
        if not name.parts or name.is_absolute() or ".." in name.parts or "\\" in str(name) or str(name) == MANIFEST:
            raise SondeError(
                f"{place} names the file {str(name)!r}, which is outside its folder: restore the collection from a "
                "backup",
                code="damaged",
            )
    return found


def _damaged(place: object, error: Exception) -> SondeError:
    said = f"{place}/{MANIFEST} is damaged ({type(error).__name__}: {error})"
    return SondeError(f"{said}: restore the collection from a backup, or index the sources again", code="damaged")

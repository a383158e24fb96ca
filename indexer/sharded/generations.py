"""The generations of a sharded collection, and the versions that they name: built, published, lost, or removed."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import SondeError, WriterBusyError
from ..files import link_or_copy, make_folder, sha256, sync_folder, write_durably
from ..small_files import parsed, read_small
from ..store.lock import MANIFEST
from .layout import (
    DIGITS,
    ORDER,
    RUNS,
    VERSION,
    Published,
    ShardedGeneration,
    Sharding,
    coming_note,
    shard_folder,
    work_folder,
)
from .objects import LocalTruth, Truth

KEPT = 2
"""Generations whose versions are kept: a reader may have opened the one before the newest. `compact` keeps one."""
REMEMBERED = 100
"""Generations whose files are kept, so that a run that began long ago still finds its number taken."""
FIRST = "000001"
_GENERATION = re.compile(r"generations/(\d{6})\.json")


def current_sharding(folder: Path) -> Sharding | None:
    """Return what a folder's `collection.json` says, with the model of the newest generation; None if there is none.

    Raises:
        SondeError: A file is damaged, or written by a newer Sonde.
    """
    known = Sharding.read(folder)
    return known and known.with_model_of(committed_generation(folder))


def generation_names(truth: Truth) -> list[str]:
    """Return the names of the generations' files, ascending; others that lie beside them are none."""
    return [name for name in truth.names("generations") if _GENERATION.fullmatch(name)]


def newest_generation(truth: Truth, folder: Path) -> ShardedGeneration | None:
    """Return the newest generation, None before the first.

    Raises:
        SondeError: Its file is damaged.
    """
    names = generation_names(truth)
    return ShardedGeneration.load(truth, folder, names[-1]) if names else None


def committed_generation(folder: Path) -> ShardedGeneration | None:
    """Return the newest generation of a collection in a folder, None before the first.

    Raises:
        SondeError: Its file is damaged; or there is none, although there have been some.
    """
    newest = newest_generation(LocalTruth(folder), folder)
    if newest is None and has_lost(folder, 0):
        newest = newest_generation(LocalTruth(folder), folder)  # which may just have been committed
        if newest is None:
            said = f"{folder} has lost its generations, but not its shards"
            raise SondeError(f"{said}: restore the collection from a backup", code="damaged")
    return newest


def refuse_lost_shards(folder: Path) -> None:
    """Check that the newest generation has all its shards, before a run spends hours on new ones.

    Raises:
        SondeError: One is missing.
    """
    while newest := committed_generation(folder):
        lost = lost_folders(folder, newest)
        if not lost:
            return
        if generation_number(folder) == newest.number:  # no run has committed meanwhile and removed this version
            raise lost_shard(lost[0], folder)


def lost_folders(folder: Path, generation: ShardedGeneration) -> list[Path]:
    """Return the folders of a generation that are missing, or lack a file that cannot be made from the others."""
    lost = []
    for name, state in generation.folders.items():
        path = folder / name / state.version
        needed = ("catalog.db",) if name == RUNS else ("catalog.db", ORDER)
        if not all((path / file).is_file() for file in needed):
            lost.append(path)
    return lost


def lost_shard(missing: str | Path, folder: str | Path) -> SondeError:
    """Return the error for a file or folder of the newest generation that does not exist."""
    runs = RUNS in Path(missing).parts[-3:]
    other = "index its sources into a new folder" if runs else rebuilding(folder)
    return SondeError(f"{missing} is missing: restore {folder} from a backup, or {other}", code="damaged")


def rebuilding(folder: str | Path) -> str:
    """Return the advice for a shard whose texts are lost."""
    return f"rebuild the shard with `sonde index SOURCES --to {folder} --rebuild`"


def read_note(path: Path) -> str:
    """Return what a run has noted in a file of its own; empty if there is none, or if it cannot be one."""
    try:
        return read_small(path).decode()
    except (OSError, ValueError):
        return ""


def generation_number(folder: Path) -> int:
    """Return the number of the newest generation, 0 before the first."""
    names = generation_names(LocalTruth(folder))
    return int(Path(names[-1]).stem) if names else 0


def remove_old_versions(folder: Path, *places: str, kept: int = KEPT) -> None:
    """Remove versions that none of the newest generations names, and files of generations long past.

    If one of the newest generations cannot be read, nothing is removed: what it names is not known.

    Args:
        folder: The collection.
        places: Patterns of folders of versions; those of all shards and of the runs if none is given.
        kept: How many of the newest generations keep their versions, from 1.
    """
    truth = LocalTruth(folder)
    names = generation_names(truth)
    try:
        generations = [ShardedGeneration.load(truth, folder, name) for name in names[-kept:]]
    except SondeError:
        return
    for name in names[:-REMEMBERED]:
        (folder / name).unlink(missing_ok=True)
    needed = {folder / name / state.version for each in generations for name, state in each.folders.items()}
    for place in places or ("shards/*", RUNS):
        for path in folder.glob(f"{place}/*"):
            if path not in needed and VERSION.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)


def has_lost(folder: Path, number: int) -> bool:
    """Whether there is a version of a later generation than `number`, the newest that there is (0: none).

    A run that was stopped before its commit leaves such versions, too, and a note.
    """
    coming = f"{number + 1:06d}"
    noted = read_note(coming_note(folder))[:DIGITS]
    own = {coming} if noted in (f"{number:06d}", coming) else set[str]()  # `_resume` renames before it notes that
    versions = {path.parent.name[:DIGITS] for path in folder.glob(f"shards/*/*/{MANIFEST}")} - own
    return any(each >= coming for each in versions) or (number == 0 and any(folder.glob(f"{RUNS}/*")))


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

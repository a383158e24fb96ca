"""The list of files in a folder that is published: a version of a shard, or of the runs' catalog."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import SondeError
from ..files import make_folder, sha256, sync_folder, write_durably
from ..small_files import parsed, read_small
from ..store.lock import MANIFEST
from .layout import Published


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

"""The list of files in a folder that is published: a version of a shard, or of the runs' catalog."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import SondeError
from ..files import make_folder, sha256, sync_folder, write_durably
from ..store.lock import PUBLISHED as MANIFEST
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
    """Return what a published folder says of itself, and the SHA-256 of that."""
    content = (folder / MANIFEST).read_bytes()
    return json.loads(content), hashlib.sha256(content).hexdigest()


def has_manifest(folder: Path, state: Published) -> bool:
    """Whether a folder holds the version that a generation names, to judge by its manifest."""
    path = folder / MANIFEST
    return path.is_file() and sha256(path) == state.sha256


def changed_files(folder: Path, state: Published) -> Sequence[str]:
    """Return the files of a published folder that are missing or have changed since; its manifest if that has."""
    if not has_manifest(folder, state):
        return [MANIFEST]
    files = manifest_of(folder)[0]["files"]
    return [name for name, digest in files.items() if not (folder / name).is_file() or sha256(folder / name) != digest]


def files_in(manifest: bytes, place: str) -> Mapping[str, str]:
    """Return the digests of a version's files by name, each name checked to lie below the version's folder.

    Raises:
        SondeError: The manifest is damaged, or names a file outside.
    """
    try:
        found = dict(json.loads(manifest)["files"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SondeError(f"{place}/{MANIFEST} is damaged: restore it, or index the sources again") from None
    for name in found:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or name == MANIFEST:
            raise SondeError(
                f"{place} names the file {name!r}, which is outside its folder: nothing was downloaded; "
                "restore the collection from a backup"
            )
    return found

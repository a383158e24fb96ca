"""Durable files: a kill or a full disk leaves either the old content or the new one."""

import hashlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import IO

from .errors import SondeError


def write_durably(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write through `write(stream)` to a temporary name, flush it to the disk, and rename it to `path`."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut, where the system can open folders."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


FULL = ("full", "no space", "too large", "quota")
FORBIDDEN = ("readonly", "read-only", "permission", "unable to open")


def disk_error(error: BaseException, folder: Path) -> BaseException:
    """Return what went wrong while `folder` was written as an error that a user can act on; others as they are."""
    if not isinstance(error, OSError | SystemError | sqlite3.Error):
        return error
    text = str(error).lower()
    if any(word in text for word in FULL):
        return SondeError(f"the disk is full: {folder} keeps all that was committed; free space, then run it again")
    if any(word in text for word in FORBIDDEN):
        return SondeError(f"{folder} cannot be written ({error}): is its disk read-only, or another user's?")
    if isinstance(error, sqlite3.DatabaseError):
        return SondeError(f"the catalog of {folder} failed ({error}): `sonde verify {folder}` tells what is wrong")
    return error

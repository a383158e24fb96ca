"""Writing files so that a kill or a full disk leaves either the old content or the new one."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO


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

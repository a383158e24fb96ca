"""What a full, a read-only or a damaged disk looks like to a writer, in one line."""

import sqlite3
from pathlib import Path

from .errors import SondeError

FULL = ("full", "no space", "too large", "quota")
FORBIDDEN = ("readonly", "read-only", "permission", "unable to open")


def explained(error: BaseException, folder: Path) -> BaseException:
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

"""Turning Tantivy's errors, and the panics of its Rust code, into one line that a user can act on."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import SondeError
from .state import damaged


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Raise what Tantivy raises inside as a `SondeError` that names the index and the remedy."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise _explain(folder, str(error)) from None
    except BaseException as error:
        # PyO3 derives its panics from BaseException, and no module exports the class.
        if type(error).__name__ != "PanicException":
            raise
        raise damaged(folder, error) from None


def _explain(folder: Path, reason: str) -> SondeError:
    if "LockBusy" in reason or "LockFailure" in reason:
        return SondeError(f"another process is writing to the lexical index in {folder}: try again when it is done")
    if "index writer was killed" in reason or "No space left" in reason:
        # Tantivy does not tell why its writing thread died.
        free = shutil.disk_usage(folder).free / 1e6
        says = f"the lexical index in {folder} cannot be written; the disk has {free:,.1f} MB free"
        return SondeError(f"{says}: make room and run the same command again, its last commit is untouched")
    if "Read-only" in reason or "ermission" in reason:
        return SondeError(f"{folder} cannot be written ({' '.join(reason.split())}): check the permissions")
    return damaged(folder, reason)

"""Removing a whole collection."""

import secrets
import shutil
from pathlib import Path

from .collection import check_folder
from .disk import explained
from .lock import writer_lock


def remove_collection(folder: Path) -> None:
    """Remove a collection and all that it holds. It vanishes at once; who is reading it keeps what is open.

    Raises:
        SondeError: It is no collection, another process is writing it, or it may not be removed.
    """
    check_folder(folder)
    gone = folder.with_name(f".{folder.name[:40]}-{secrets.token_hex(4)}.removed")
    with writer_lock(folder):
        pass  # nobody writes; a writer that begins just now fails, and loses what is being removed anyway
    try:
        folder.rename(gone)
    except OSError as error:
        raise explained(error, folder) from None
    shutil.rmtree(gone, ignore_errors=True)

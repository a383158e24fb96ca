"""Where a sharded collection's shared files are kept: small files that are written once and never changed."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..errors import SondeError
from ..files import make_folder, sync_folder
from ..small_files import read_small


class Truth(Protocol):
    """Small files that are each written once. An object store with a conditional put can implement it."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None if there is none."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that must not exist yet; return whether this call wrote it. Readers see all of it or nothing."""
        ...

    def names(self, prefix: str) -> Sequence[str]:
        """Return the names of the files in a folder, sorted."""
        ...


class LocalTruth:
    """The files in a local folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None if there is none.

        Raises:
            SondeError: It is larger than such a file can be.
        """
        try:
            return read_small(self.folder / name)
        except FileNotFoundError:
            return None
        except ValueError as error:
            said = f"{self.folder / name} is damaged ({error}): restore the collection from a backup"
            raise SondeError(said, code="damaged") from None

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that must not exist yet; return whether this call wrote it.

        A link to a finished file is made, because, unlike a rename, it fails if the name is taken. A file system
        without links, such as exFAT, gets a rename: there, only the writer lock keeps a second writer out.
        """
        path = self.folder / name
        make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            except OSError:
                if path.exists():
                    return False
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
        return True

    def names(self, prefix: str) -> Sequence[str]:
        """Return the names of the files in a folder, sorted; unfinished ones are left out."""
        folder = self.folder / prefix
        if not folder.is_dir():
            return []
        return sorted(f"{prefix}/{path.name}" for path in folder.iterdir() if not path.name.startswith("."))

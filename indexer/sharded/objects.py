"""Where a sharded collection's shared files are kept: in a local folder, or as objects in an object store (S3)."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ..errors import MissingExtraError, SondeError
from ..files import make_folder, sync_folder
from ..small_files import LARGEST, read_small

PATIENCE = 20
"""Seconds in which a request is tried again if the store does not answer."""


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


class Objects:
    """Objects below an address: a `Truth`, since a store can refuse to write an object that exists.

    Attributes:
        address: "s3://BUCKET/PATH".
    """

    def __init__(self, address: str) -> None:
        self.address = address

    @cached_property
    def store(self) -> Any:
        """The library's object for the store.

        Raises:
            MissingExtraError: obstore is not installed.
        """
        try:
            from obstore.store import from_url
        except ImportError:
            raise MissingExtraError("obstore", "distributed", "a collection in an object store") from None
        with store_errors(self.address):
            patience = {"max_retries": 5, "retry_timeout": timedelta(seconds=PATIENCE)}
            return from_url(self.address, retry_config=patience)  # type: ignore[arg-type]

    def read(self, name: str) -> bytes | None:
        """Return an object's content, None if there is none.

        Raises:
            SondeError: The store does not answer, or the object is larger than such a file can be.
        """
        import obstore

        with store_errors(self.address):
            try:
                found = obstore.get(self.store, name)
                if found.meta["size"] > LARGEST:
                    raise self.damaged(name)
                return bytes(found.bytes())
            except FileNotFoundError:
                return None

    def create(self, name: str, content: bytes) -> bool:
        """Write an object that must not exist yet; return whether it now has this content.

        If the store's answer is lost, the request is sent again and refused, although it was this one that wrote it.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with store_errors(self.address):
            try:
                obstore.put(self.store, name, content, mode="create")
            except AlreadyExistsError:
                return self.read(name) == content
            return True

    def names(self, prefix: str) -> Sequence[str]:
        """Return the names of the objects directly below a prefix, sorted."""
        import obstore

        with store_errors(self.address):
            return sorted(each["path"] for each in obstore.list_with_delimiter(self.store, prefix)["objects"])

    def paths(self, *tops: str) -> Sequence[str]:
        """Return the names of all objects below some prefixes."""
        import obstore

        with store_errors(self.address):
            batches = (batch for top in tops for batch in obstore.list(self.store, top))
            return [each["path"] for batch in batches for each in batch]

    def get(self, name: str) -> bytes:
        """Return the content of an object that must be there.

        Raises:
            SondeError: It is not, or the store does not answer.
        """
        content = self.read(name)
        if content is None:
            raise SondeError(f"{self.address} lacks {name}: restore it from a backup, or index the sources again")
        return content

    def fetch(self, name: str, path: Path) -> None:
        """Download an object of any size into a file.

        Raises:
            SondeError: There is none, or the store does not answer.
        """
        import obstore

        with store_errors(self.address), path.open("wb") as stream:
            try:
                for chunk in obstore.get(self.store, name).stream():
                    stream.write(chunk)
            except FileNotFoundError:
                said = f"{self.address} lacks {name}: restore it from a backup, or index the sources again"
                raise SondeError(said) from None
            stream.flush()
            os.fsync(stream.fileno())

    def damaged(self, name: str) -> SondeError:
        """Return the error for an object that is not what it should be."""
        said = f"{name} in {self.address} is damaged: restore it from a backup, or index the sources again"
        return SondeError(said, code="damaged")


_METADATA = "169.254.169.254"
"""The address of a cloud's service that tells its machines their credentials."""


@contextmanager
def store_errors(address: str) -> Iterator[None]:
    """Say in one line what an object store answers; its library adds pages of details."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    try:
        yield
    except BaseError as error:
        reason = " ".join(str(error).split("Debug source")[0].split())[:300]
        if "NoSuchBucket" in str(error):
            bucket = address.split("/")[2]
            raise SondeError(f"{address}: there is no bucket {bucket!r}: create it first", code="not-found") from None
        if _METADATA in reason:  # where obstore asks for credentials if the environment has none
            said = "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        elif isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
            said = "the store refuses access; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
        else:
            said = "the store gives no usable answer; check AWS_ENDPOINT_URL, AWS_ALLOW_HTTP and the network"
        raise SondeError(f"{address}: {said} ({reason})") from None

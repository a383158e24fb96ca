"""Durable files: a kill or a full disk leaves either the old content or the new one."""

import codecs
import errno
import gzip
import hashlib
import os
import secrets
import shutil
import sqlite3
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from .errors import SondeError, UsageError, arg
from .wording import either, size

WINDOWS = sys.platform == "win32"
PATIENCE = 5.0
"""Seconds to wait for another program to close a file that is to be replaced, or to leave a folder that is removed."""

LARGEST_TEXT = 1 << 27
"""Bytes of a file of queries, judgements, labels or ids: such files are read as a whole, by this process."""


def text_of(path: Path, what: str, detect: Callable[[bytes], str] | None = None) -> str:
    """Return the text of a file that is read as a whole; one whose name ends in .gz is decompressed.

    Args:
        path: Of the file, in UTF-8, or in UTF-16 with a byte order mark, as spreadsheets write it.
        what: What it holds, for messages: "the queries".
        detect: Returns the encoding of the bytes, where the file may have another one.

    Raises:
        SondeError: It cannot be read, is not UTF-8, or has more than `LARGEST_TEXT` bytes.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(LARGEST_TEXT + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise SondeError(f"cannot read {what} in {path}: {reason}") from None
    if len(data) > LARGEST_TEXT:
        raise SondeError(f"cannot read {what} in {path}: it is larger than {size(LARGEST_TEXT)}; split it")
    marked = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(marked if detect is None else detect(data))
    except UnicodeDecodeError as error:
        said = f"it is not UTF-8 (byte {error.start + 1:,}): save it as UTF-8 (in Excel: CSV UTF-8)"
        raise SondeError(f"cannot read {what} in {path}: {said}") from None


def write_durably(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write through `write(stream)` to a temporary name, flush it to the disk, and rename it to `path`.

    The temporary name is nobody else's, and a file that is replaced keeps its permissions.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if path.is_file():
            temporary.chmod(path.stat().st_mode & 0o777)
        replace_file(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.filename in (None, str(temporary)):
            error.filename = str(path)  # the name that a user knows
        raise
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_file(source: Path, target: Path) -> None:
    """Rename a file to `target`, which may exist. On Windows this waits up to 5 s while somebody reads `target`."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            source.replace(target)
            return
        except PermissionError:
            if not WINDOWS or time.monotonic() > until:
                raise
            time.sleep(0.05)


def remove_folder(path: Path) -> None:
    """Remove a folder, again where something was made in it meanwhile.

    Tantivy looks at an index in a thread of its own once it is opened, and makes its lock file there after others
    have closed it.

    Raises:
        OSError: It cannot be removed, or is written to for `PATIENCE` seconds.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return shutil.rmtree(path)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or time.monotonic() > until:
                raise
            time.sleep(0.05)


def remove(path: Path) -> bool:
    """Remove a file or folder and return whether it is gone; Windows keeps what somebody has open."""
    try:
        remove_folder(path) if path.is_dir() else path.unlink(missing_ok=True)
    except PermissionError:
        if not WINDOWS:
            raise
        return False
    return True


def write_output(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file that the user named, as `write_durably` does; a symbolic link stays; its target is replaced.

    A device or a pipe, such as /dev/null, stays too: it is written to, and so is a file that stdout is redirected to.

    Raises:
        SondeError: It cannot be written.
    """
    target = path.resolve() if path.is_symlink() else path
    try:
        if not _is_stream(path):
            return write_durably(target, write)
        with path.open("ab") as stream:
            write(stream)
    except OSError as error:
        if error.filename not in (None, str(path), str(target)):  # what is written was to be read from another file
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            said = f"the disk is full: {path}: free some space, then run the same command again"
            raise SondeError(said, code=DISK_FULL) from None
        raise SondeError(f"cannot write {path}: {error.strerror or error}", code=NOT_WRITABLE) from None


def _is_stream(path: Path) -> bool:
    opened = str(path) in ("/dev/stdout", "/dev/stderr") or path.is_relative_to("/dev/fd")
    return opened or (path.exists() and not path.is_file())


def share(path: Path) -> None:
    """Let those who may read the folder around a path read it too: libraries make some files for this user alone."""
    with suppress(OSError):  # a disk without modes
        mode = stat.S_IMODE(path.parent.stat().st_mode)
        path.chmod(mode if path.is_dir() else mode & 0o666)


def make_folder(folder: Path) -> None:
    """Make a folder that may exist, with its parents, so that its name survives a power cut."""
    if not folder.parent.exists():
        make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def check_target(path: Path, suffixes: Sequence[str], action: str) -> None:
    """Check where a file is to be written, before the work is done.

    Args:
        path: Of the file.
        suffixes: Those that can be written, lower case.
        action: What is done, for the message: "export to", "draw".

    Raises:
        UsageError: It is a folder, or its suffix is none of these.
        SondeError: Its folder does not exist.
    """
    ends = f"must end in {either(suffixes)}"
    if path.is_dir():
        raise UsageError(f"cannot {action} {str(path)!r}: it is a folder; give a file, whose name {ends}")
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"cannot {action} {path.name!r}: the name {ends}")
    check_file(path)


def check_file(path: Path) -> None:
    """Check that a file that is to be written is not a folder, and that files can be made in its folder.

    Raises:
        UsageError: It is a folder.
        SondeError: Its folder does not exist, or may not be written.
    """
    if path.is_dir():
        raise UsageError(f"cannot write {str(path)!r}: it is a folder; give a file")
    if not path.absolute().parent.is_dir():
        raise SondeError(f"cannot write {path}: the folder {path.parent} does not exist")
    try:
        tempfile.TemporaryFile(dir=path.absolute().parent).close()
    except OSError as error:
        raise SondeError(f"cannot write {path}: {error.strerror or error}; give a file in another folder") from None


def check_different(**targets: Path | None) -> None:
    """Check that no two outputs go to one file; the names are those of the arguments in Python.

    Raises:
        UsageError: Two of them do.
    """
    seen: dict[Path, str] = {}
    for name, path in targets.items():
        if path is not None and (first := seen.setdefault(path.resolve(), name)) != name:
            raise UsageError(f"{arg(first)} and {arg(name)} are both {path}: give two different files")


def sync_file(path: Path) -> None:
    """Make the content of a file that was written by somebody else survive a power cut."""
    with path.open("rb+") as stream:  # Windows flushes only files that are open for writing
        os.fsync(stream.fileno())


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file, which is never written again, a second name; copy it where the disk has no links."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        sync_file(target)


def sync_folder(folder: Path) -> None:
    """Make new names and renames inside `folder` survive a power cut, where it can be opened."""
    if WINDOWS or not os.access(folder, os.R_OK):
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


DISK_FULL, DISK_FAILED, NOT_WRITABLE = "disk-full", "disk-failed", "not-writable"
"""Codes of errors that have the disk as their cause."""
CHECK_DISK = "check that the disk is not damaged or full, then run the same command again"
FULL = ("full", "no space", "too large", "quota")
FORBIDDEN = ("readonly", "read-only", "permission", "not permitted", "unable to open")


def disk_error(error: BaseException, folder: Path) -> BaseException:
    """Return what went wrong while `folder` was written as an error that a user can act on; others as they are."""
    if not isinstance(error, OSError | SystemError | sqlite3.Error):
        return error
    text = str(getattr(error, "strerror", None) or error).lower()  # without the path, which may hold such a word
    if any(word in text for word in FULL):
        return SondeError(
            f"the disk is full: {folder} keeps everything that was committed; free some space, then run it again",
            code=DISK_FULL,
        )
    if any(word in text for word in FORBIDDEN):
        return SondeError(
            f"{folder} cannot be written: is the disk or a file read-only, or does it belong to another user?",
            code=NOT_WRITABLE,
        )
    if "disk i/o error" in text or (isinstance(error, OSError) and error.errno == errno.EIO):
        return SondeError(f"the disk of {folder} failed ({error}): {CHECK_DISK}", code=DISK_FAILED)
    if isinstance(error, FileNotFoundError) and (lost := _lost(error, folder)):
        return SondeError(f"{lost} is missing: run `sonde repair {folder}`", code="damaged")
    if isinstance(error, sqlite3.DatabaseError):
        return SondeError(f"the catalog of {folder} failed ({error}): `sonde verify {folder}` shows what is wrong")
    return error


def _lost(error: FileNotFoundError, folder: Path) -> Path | None:
    """Return the file or folder of a collection that is missing; None if the whole collection is, or another file."""
    path = Path(str(error.filename))
    if not folder.exists() or not path.is_relative_to(folder):
        return None
    return path if path.parent.exists() else path.parent

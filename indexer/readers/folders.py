"""Which files of folders are read as texts, and of what kinds the others are."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import SondeError
from ..wording import shown_path
from .source import TEXT_SUFFIXES
from .unread import HIDDEN, LINK_OUT, SPECIAL, count_kinds, kind_of


def files_to_read(paths: Sequence[Path], format: str | None) -> tuple[list[Path], dict[str, int]]:
    """Return the files to read, those of a folder in sorted order, and how many of each other kind there are.

    A symbolic link in a folder that leads out of all given folders is not followed: it would put a private file
    into a collection that others get. A folder that is given as a link is read.

    Raises:
        SondeError: A folder may not be looked at.
    """
    files: dict[Path, None] = {}
    unread: dict[Path, str] = {}
    roots = [Path(os.path.realpath(path)) for path in paths if path.is_dir()]
    for path in paths:
        for file, kind in _below(path, roots) if path.is_dir() else [(path, None)]:
            kind = kind or (None if _is_read(file, format) or not path.is_dir() else kind_of(file))
            if kind is None:
                files[file.absolute()] = None
            else:
                unread[file.absolute()] = kind
    return list(files), count_kinds(kind for file, kind in unread.items() if file not in files)


def _is_read(file: Path, format: str | None) -> bool:
    return bool(format) or file.suffix.lower() in TEXT_SUFFIXES


def _below(folder: Path, roots: Sequence[Path]) -> list[tuple[Path, str | None]]:
    """Return the files of a folder and its subfolders, each with its kind if it is left out whatever its suffix.

    A link to a folder is among them if it leads out of the `roots`; what others lead to is read where it is.
    """
    below: list[tuple[Path, str | None]] = []
    for where, folders, names in os.walk(folder, onerror=_raise):
        inner = [Path(where) / name for name in folders]
        below += [(file, HIDDEN) for each in inner if _is_hidden(each) for file in _files(each)]
        below += [(each, LINK_OUT) for each in inner if not _is_hidden(each) and _leads_out(each, roots)]
        folders[:] = [each.name for each in inner if not _is_hidden(each)]
        below += [(file, _fault(file, roots)) for file in (Path(where) / name for name in names)]
    return sorted(below, key=lambda each: each[0].relative_to(folder).parts)


def _files(folder: Path) -> Iterator[Path]:
    return (Path(where) / name for where, _, names in os.walk(folder) for name in names)


def _fault(file: Path, roots: Sequence[Path]) -> str | None:
    if _is_hidden(file):
        return HIDDEN
    if _leads_out(file, roots):
        return LINK_OUT
    with suppress(OSError):
        return None if file.is_file() or not file.exists() else SPECIAL  # a pipe would be waited for
    return None


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".")


def _leads_out(path: Path, roots: Sequence[Path]) -> bool:
    try:
        linked = path.is_symlink()
    except OSError:  # a path that is too long: the walk, or reading the file, says so
        linked = False
    if not linked:
        return False
    target = Path(os.path.realpath(path))
    return not any(target.is_relative_to(root) for root in roots)


def _raise(error: OSError) -> None:
    raise SondeError(f"{shown_path(error.filename)} cannot be read: {error.strerror}") from error

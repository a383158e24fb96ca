"""Which files of folders are read as texts, and of what kinds the others are."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import SondeError
from ..wording import shown_path
from .source import TEXT_SUFFIXES
from .unread import HIDDEN, SPECIAL, count_kinds, kind_of


def found(paths: Sequence[Path], format: str | None) -> tuple[list[Path], dict[str, int]]:
    """Return the files to read, those of a folder in sorted order, and how many of each other kind there are.

    Raises:
        SondeError: A folder may not be looked at.
    """
    files: dict[Path, None] = {}
    unread: dict[Path, str] = {}
    for path in paths:
        for file, kind in _below(path) if path.is_dir() else [(path, None)]:
            kind = kind or (None if _is_read(file, format) or not path.is_dir() else kind_of(file))
            if kind is None:
                files[file.absolute()] = None
            else:
                unread[file.absolute()] = kind
    return list(files), count_kinds(kind for file, kind in unread.items() if file not in files)


def _is_read(file: Path, format: str | None) -> bool:
    return bool(format) or file.suffix.lower() in TEXT_SUFFIXES


def _below(folder: Path) -> list[tuple[Path, str | None]]:
    """Return the files of a folder and its subfolders, each with its kind if it is left out whatever its suffix."""
    below: list[tuple[Path, str | None]] = []
    for where, folders, names in os.walk(folder, onerror=_raise):
        hidden = [Path(where) / name for name in folders if name.startswith(".")]
        folders[:] = [name for name in folders if not name.startswith(".")]
        below += [(file, HIDDEN) for each in hidden for file in _files(each)]
        files = (Path(where) / name for name in names)
        below += [(file, _fault(file)) for file in files]
    return sorted(below, key=lambda each: each[0].relative_to(folder).parts)


def _files(folder: Path) -> Iterator[Path]:
    return (Path(where) / name for where, _, names in os.walk(folder) for name in names)


def _fault(file: Path) -> str | None:
    if file.name.startswith("."):
        return HIDDEN
    return None if file.is_file() or not file.exists() else SPECIAL  # a pipe would be waited for


def _raise(error: OSError) -> None:
    raise SondeError(f"{shown_path(error.filename)} cannot be read: {error.strerror}") from error

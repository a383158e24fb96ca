"""The collections of a server: if one is damaged, the others can still be used."""

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError
from .collection import Collection

DAMAGED = "damaged"
UNREADABLE = (SondeError, OSError)
"""What reading a damaged collection raises."""


class Opening:
    """A collection by its name, opened when it is first used."""

    def __init__(self, path: Path, opened: Callable[[], Collection]) -> None:
        """Take its folder, and what opens it."""
        self.name = path.name.removesuffix(".sonde") or path.absolute().name
        self._path, self._open = path, opened
        self._opened: Collection | None = None

    @classmethod
    def at(cls, path: Path, device: str = "auto", encoder: Encoder | None = None) -> "Opening":
        """Take the arguments of `Collection.open`."""
        return cls(path, partial(Collection.open, path, device=device, encoder=encoder))

    @property
    def collection(self) -> Collection:
        """The open collection. If it could not be opened before, this tries again: it may have been restored.

        Raises:
            SondeError: It cannot be opened.
        """
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @property
    def folder(self) -> Path:
        """The folder that its messages name."""
        return self._path if self._opened is None else self._opened.path

    def without_folder(self, error: Exception | str) -> str:
        """Return a message without the path to the collection."""
        said = str(error)
        for place in (self.folder.absolute(), self.folder):
            folder = re.escape(f"{place.parent}{os.sep}")
            said = re.sub(rf"(?<![^\s'`]){folder}", "", said)  # only where a path begins
        return said


def open_sound(openings: Sequence[Opening]) -> dict[str, SondeError]:
    """Open collections; return the errors of damaged ones, by name.

    Raises:
        SondeError: A collection does not exist or cannot be opened for another reason, or all are damaged.
    """
    damaged = dict[str, SondeError]()
    for each in openings:
        try:
            _ = each.collection
        except SondeError as error:
            if error.code != DAMAGED:
                raise
            damaged[each.name] = error
    if damaged and len(damaged) == len(openings):
        raise next(iter(damaged.values()))
    return damaged

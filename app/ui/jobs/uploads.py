"""Files that visitors sent, kept until the job that reads them is done: a job that is resumed reads them again."""

import secrets
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

LONGEST_NAME = 120
"""Bytes of a file's name: every file system takes as many, with room for what is added."""
UNUSED_SECONDS = 86_400.0
"""After a day, files that no job has asked for go."""
FORBIDDEN = '<>:"|?*'


class Sent(Protocol):
    """A file as it arrived: its name, which is the visitor's, and its content."""

    name: str

    def getbuffer(self) -> memoryview:
        """Return the content."""
        ...


class Uploads:
    """Folders of uploaded files, one for each time that somebody sent some."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made when the first file comes."""
        self.folder = folder

    def keep(self, files: Sequence[Sent]) -> list[Path]:
        """Write files into a new folder, under names that are safe and different, and return where they are."""
        place = self.folder / secrets.token_hex(8)
        place.mkdir(parents=True)
        paths = [place / name for name in safe_names(file.name for file in files)]
        for path, file in zip(paths, files, strict=True):
            path.write_bytes(file.getbuffer())
        return paths

    def drop(self, words: Iterable[str]) -> None:
        """Remove the folders that a command names."""
        for folder in self.named(words):
            shutil.rmtree(folder, ignore_errors=True)

    def named(self, words: Iterable[str]) -> set[Path]:
        """Return the folders whose files a command names."""
        parents = {Path(word).parent for word in words if Path(word).is_absolute()}
        return {parent for parent in parents if parent.parent == self.folder and parent.is_dir()}

    def drop_unused(self, commands: Iterable[Iterable[str]]) -> None:
        """Remove folders that none of the commands names and that are a day old."""
        used = {folder for words in commands for folder in self.named(words)}
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            if folder not in used and time.time() - folder.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def safe_names(given: Iterable[str]) -> list[str]:
    """Return a name for each file that stays in its folder, and that no two share."""
    names: list[str] = []
    taken: set[str] = set()
    for name in map(safe_name, given):
        stem, dot, suffixes = name.partition(".")
        number, free = 2, name
        while free.casefold() in taken:
            free, number = f"{stem}-{number}{dot}{suffixes}", number + 1
        taken.add(free.casefold())
        names.append(free)
    return names


def safe_name(given: str) -> str:
    """Return the last part of what a browser calls a file, without what a file system could take amiss.

    The end of a long name stays, because its suffix tells the format.
    """
    last = given.replace("\\", "/").rstrip("/").rpartition("/")[2]
    kept = "".join(c for c in last if c.isprintable() and c not in FORBIDDEN)
    short = kept.encode("utf-8", "replace")[-LONGEST_NAME:].decode("utf-8", "ignore")
    return short.strip(" .").lstrip("-") or "file"

"""A disk that may lose power: what it holds for sure, what it was told since, and every state in which it may wake up.

Contents are certain after a flush of the file; names (creation, renaming, removal) after a flush of their folder. Until
then, any part of what was told may be there: a write whole, not at all, or some of its sectors.
"""

import os
import random
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from _calls import Call

ROOT = 0
SECTORS = (512, 4096)
WAYS = ("nothing", "everything", "order", "journal", "any")
Slot = tuple[int, str]
"""A name in a folder."""
Tree = dict[str, bytes | None]
"""Paths below the root, with the contents of files; None for a folder."""


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes written to a file, or its new size where there are none."""

    file: int
    offset: int
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Named:
    """A name that a file or folder gets, loses, or both: a creation, a removal, a renaming."""

    file: int
    old: Slot | None
    new: Slot | None


Change = Written | Named


@dataclass
class Image:
    """Names and contents."""

    names: dict[Slot, int] = field(default_factory=dict)
    contents: dict[int, bytes | None] = field(default_factory=lambda: {ROOT: None})

    def copy(self) -> "Image":
        """Return an independent copy."""
        return Image(dict(self.names), dict(self.contents))

    def apply(self, change: Change) -> None:
        """Make a change."""
        if isinstance(change, Named):
            if change.old and self.names.get(change.old) == change.file:
                del self.names[change.old]
            if change.new:
                self.names[change.new] = change.file
            return
        content = self.contents[change.file] or b""
        if change.data is None:
            self.contents[change.file] = content[: change.offset].ljust(change.offset, b"\0")
        else:
            before = content[: change.offset].ljust(change.offset, b"\0")
            self.contents[change.file] = before + change.data + content[change.offset + len(change.data) :]

    def tree(self) -> Tree:
        """Return what can be reached from the root."""
        below: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), file in self.names.items():
            below.setdefault(folder, []).append((name, file))
        found: Tree = {}

        def walk(folder: int, path: PurePosixPath) -> None:
            for name, file in sorted(below.get(folder, [])):
                found[str(path / name)] = self.contents[file]
                if self.contents[file] is None:
                    walk(file, path / name)

        walk(ROOT, PurePosixPath())
        return found


class Disk:
    """A folder as calls change it: `certain` survives any power cut, `now` is what programs see."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.certain = Image()
        self.pending: list[Change] = []
        for parent, folders, files in os.walk(root):
            here = self._found(self.certain, parent)
            for name in (*sorted(folders), *sorted(files)):
                path = Path(parent, name)
                number = len(self.certain.contents)
                self.certain.contents[number] = path.read_bytes() if path.is_file() else None
                self.certain.names[here or ROOT, name] = number
        self.now = self.certain.copy()

    def copy(self) -> "Disk":
        """Return an independent copy."""
        found = copy(self)
        found.certain, found.now, found.pending = self.certain.copy(), self.now.copy(), [*self.pending]
        return found

    def take(self, call: Call) -> None:
        """Make a call, if it can be made.

        Raises:
            NotImplementedError: The model does not know what such a call leaves after a power cut.
        """
        if call.kind == "other" or (call.kind == "map" and not call.path.endswith("-shm")):
            raise NotImplementedError(f"{call.name or call.kind} of {call.path}")
        file = self._found(self.now, call.path)
        if call.kind in ("create", "mkdir"):
            self._create(call, file)
        elif file is None:
            return
        elif call.kind == "flush":
            self._flush(file)
        elif call.kind == "rename":
            self._told(Named(file, self._slot(call.path), self._slot(call.target)))
        elif call.kind == "link":
            self._told(Named(file, None, self._slot(call.target)))
        elif call.kind == "remove":
            self._told(Named(file, self._slot(call.path), None))
        elif call.kind == "truncate":
            self._told(Written(file, call.offset or 0, None))
        elif call.kind == "write":
            end = len(self.now.contents[file] or b"")
            self._told(Written(file, end if call.offset is None else call.offset, call.data))

    def woken(self, way: str, chance: random.Random) -> Tree:
        """Return a state in which the disk may be after a power cut at this moment.

        Args:
            way: "nothing" of what is not certain is there, "everything", what was told first ("order"), the names that
                were changed first with any of the contents ("journal", as ext4 does), or "any" of both.
            chance: Chooses what is there.
        """
        image = self.certain.copy()
        for change in self._kept(way, chance):
            image.apply(change)
        return image.tree()

    def _kept(self, way: str, chance: random.Random) -> Iterator[Change]:
        count = len(self.pending)
        if way in ("nothing", "everything"):
            yield from self.pending if way == "everything" else ()
            return
        first, share = chance.randint(0, count), chance.choice((0.2, 0.5, 0.8))
        kept = {place for place in range(count) if (place < first if way == "order" else chance.random() < share)}
        if way == "journal":
            names = [place for place, change in enumerate(self.pending) if isinstance(change, Named)]
            kept = (kept - {*names}) | {*names[: chance.randint(0, len(names))]}
        for place in sorted(self._with_needed(kept)):
            change = self.pending[place]
            torn = place == first - 1 if way == "order" else chance.random() < 0.25
            if torn and isinstance(change, Written) and change.data:
                yield from _sectors(change, chance)
            else:
                yield change

    def _with_needed(self, kept: set[int]) -> set[int]:
        """Add what a renaming needs: that the file got its old name."""
        found = set(kept)
        for place in sorted(kept, reverse=True):
            change = self.pending[place]
            if place in found and isinstance(change, Named) and change.old and change.new:
                found |= self._with_needed({p for p in range(place) if self._gives(p, change) and p not in found})
        return found

    def _gives(self, place: int, needs: Named) -> bool:
        change = self.pending[place]
        return isinstance(change, Named) and change.new == needs.old and change.file == needs.file

    def _create(self, call: Call, file: int | None) -> None:
        slot = self._slot(call.path)
        if file is None and slot:
            file = len(self.now.contents)
            for image in (self.certain, self.now):
                image.contents[file] = None if call.kind == "mkdir" else b""
            self._told(Named(file, None, slot))
        elif call.empties and file is not None and self.now.contents[file]:
            self._told(Written(file, 0, None))

    def _flush(self, file: int) -> None:
        due = {place for place, change in enumerate(self.pending) if _touches(change, file)}
        due = self._with_needed(due)
        for place in sorted(due):
            self.certain.apply(self.pending[place])
        self.pending = [change for place, change in enumerate(self.pending) if place not in due]

    def _told(self, change: Change) -> None:
        self.now.apply(change)
        self.pending.append(change)

    def _slot(self, path: str) -> Slot | None:
        parent, _, name = path.rpartition("/")
        folder = self._found(self.now, parent)
        return None if folder is None else (folder, name)

    def _found(self, image: Image, path: str) -> int | None:
        """Return the number of what a path names, None if there is nothing."""
        found: int | None = ROOT
        for name in path.removeprefix(self._root).strip("/").split("/"):
            if name and found is not None:
                found = image.names.get((found, name))
        return found


def _touches(change: Change, file: int) -> bool:
    if isinstance(change, Written):
        return change.file == file
    return any(slot and slot[0] == file for slot in (change.old, change.new))


def _sectors(change: Written, chance: random.Random) -> Iterator[Written]:
    """Yield some of the sectors of a write."""
    size, data = chance.choice(SECTORS), change.data or b""
    start = change.offset
    while start < change.offset + len(data):
        end = min(start - start % size + size, change.offset + len(data))
        if chance.random() < 0.5:
            yield Written(change.file, start, data[start - change.offset : end - change.offset])
        start = end


def digest(tree: Tree, leave_out: Sequence[str]) -> bytes:
    """Return a digest of a tree without the files whose names have these ends."""
    found = blake2b(digest_size=16)
    for path, content in sorted(tree.items()):
        if not path.endswith(tuple(leave_out)):
            found.update(repr((path, content if content is None else blake2b(content).digest())).encode())
    return found.digest()


def laid_out(tree: Tree, folder: Path) -> None:
    """Write a tree into a new folder."""
    folder.mkdir(parents=True)
    for path, content in tree.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)

"""Which generation a sharded collection has, and which of its files no generation needs any more."""

import re
import shutil
from pathlib import Path

from ..errors import SondeError
from ..small_files import read_small
from ..store.lock import MANIFEST
from .layout import DIGITS, RUNS, VERSION, ShardedGeneration, Sharding, coming_note
from .objects import LocalTruth, Truth
from .order import ORDER

KEPT = 2
"""Generations whose versions are kept: a reader may have opened the one before the newest. `compact` keeps one."""
REMEMBERED = 100
"""Generations whose files are kept, so that a run that began long ago still finds its number taken."""
FIRST = "000001"
_GENERATION = re.compile(r"generations/(\d{6})\.json")


def current_sharding(folder: Path) -> Sharding | None:
    """Return what a folder's `collection.json` says, with the model of the newest generation; None if there is none.

    Raises:
        SondeError: A file is damaged, or written by a newer Sonde.
    """
    known = Sharding.read(folder)
    return known and known.with_model_of(committed_generation(folder))


def generation_names(truth: Truth) -> list[str]:
    """Return the names of the generations' files, ascending; others that lie beside them are none."""
    return [name for name in truth.names("generations") if _GENERATION.fullmatch(name)]


def newest_generation(truth: Truth, folder: Path) -> ShardedGeneration | None:
    """Return the newest generation, None before the first.

    Raises:
        SondeError: Its file is damaged.
    """
    names = generation_names(truth)
    return ShardedGeneration.load(truth, folder, names[-1]) if names else None


def committed_generation(folder: Path) -> ShardedGeneration | None:
    """Return the newest generation of a collection in a folder, None before the first.

    Raises:
        SondeError: Its file is damaged; or there is none, although there have been some.
    """
    newest = newest_generation(LocalTruth(folder), folder)
    if newest is None and has_lost(folder, 0):
        newest = newest_generation(LocalTruth(folder), folder)  # which may just have been committed
        if newest is None:
            said = f"{folder} has lost its generations, but not its shards"
            raise SondeError(f"{said}: restore the collection from a backup", code="damaged")
    return newest


def refuse_lost_shards(folder: Path) -> None:
    """Check that the newest generation has all its shards, before a run spends hours on new ones.

    Raises:
        SondeError: One is missing.
    """
    while newest := committed_generation(folder):
        lost = lost_folders(folder, newest)
        if not lost:
            return
        if generation_number(folder) == newest.number:  # no run has committed meanwhile and removed this version
            raise lost_shard(lost[0], folder)


def lost_folders(folder: Path, generation: ShardedGeneration) -> list[Path]:
    """Return the folders of a generation that are missing, or lack a file that cannot be made from the others."""
    lost = []
    for name, state in generation.folders.items():
        path = folder / name / state.version
        needed = ("catalog.db",) if name == RUNS else ("catalog.db", ORDER)
        if not all((path / file).is_file() for file in needed):
            lost.append(path)
    return lost


def lost_shard(missing: str | Path, folder: str | Path) -> SondeError:
    """Return the error for a file or folder of the newest generation that does not exist."""
    runs = RUNS in Path(missing).parts[-3:]
    other = "index its sources into a new folder" if runs else rebuilding(folder)
    return SondeError(f"{missing} is missing: restore {folder} from a backup, or {other}", code="damaged")


def rebuilding(folder: str | Path) -> str:
    """Return the advice for a shard whose texts are lost."""
    return f"rebuild the shard with `sonde index SOURCES --to {folder} --rebuild`"


def read_note(path: Path) -> str:
    """Return what a run has noted in a file of its own; empty if there is none, or if it cannot be one."""
    try:
        return read_small(path).decode()
    except (OSError, ValueError):
        return ""


def generation_number(folder: Path) -> int:
    """Return the number of the newest generation, 0 before the first."""
    names = generation_names(LocalTruth(folder))
    return int(Path(names[-1]).stem) if names else 0


def remove_old_versions(folder: Path, *places: str, kept: int = KEPT) -> None:
    """Remove versions that none of the newest generations names, and files of generations long past.

    If one of the newest generations cannot be read, nothing is removed: what it names is not known.

    Args:
        folder: The collection.
        places: Patterns of folders of versions; those of all shards and of the runs if none is given.
        kept: How many of the newest generations keep their versions, from 1.
    """
    truth = LocalTruth(folder)
    names = generation_names(truth)
    try:
        generations = [ShardedGeneration.load(truth, folder, name) for name in names[-kept:]]
    except SondeError:
        return
    for name in names[:-REMEMBERED]:
        (folder / name).unlink(missing_ok=True)
    needed = {folder / name / state.version for each in generations for name, state in each.folders.items()}
    for place in places or ("shards/*", RUNS):
        for path in folder.glob(f"{place}/*"):
            if path not in needed and VERSION.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)


def has_lost(folder: Path, number: int) -> bool:
    """Whether there is a version of a later generation than `number`, the newest that there is (0: none).

    A run that was stopped before its commit leaves such versions, too, and a note.
    """
    coming = f"{number + 1:06d}"
    noted = read_note(coming_note(folder))[:DIGITS]
    own = {coming} if noted in (f"{number:06d}", coming) else set[str]()  # `_resume` renames before it notes that
    versions = {path.parent.name[:DIGITS] for path in folder.glob(f"shards/*/*/{MANIFEST}")} - own
    return any(each >= coming for each in versions) or (number == 0 and any(folder.glob(f"{RUNS}/*")))

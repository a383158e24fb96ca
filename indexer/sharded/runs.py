"""The catalog of runs: one small SQLite file for all shards, in versions that never change.

It has the tables of any catalog, but no documents. So what reads and writes runs does not know of shards, and writing a
run copies this file alone, not the catalogs with the texts.
"""

import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import SondeError
from ..files import make_folder, sha256
from ..store.catalog import Catalog
from ..store.documents import document_numbers
from ..store.exchange import attached, changed_since
from ..store.members import documents_in_runs
from ..store.run_editing import forget_ids
from ..store.runs import columns_of_runs
from ..store.writing import forget_in_runs
from .generations import changed_files, committed_generation, manifest_of, publish
from .layout import RUNS, Published, ShardedGeneration, ShardState, work_folder

ChangeRuns = Callable[[Catalog], None]
"""Changes the catalog of runs, in its transaction."""
DIGITS = 12
"""Of the digest of the catalog, in the name of its version."""


def runs_catalog(folder: Path, runs: Published) -> Path:
    """Return the file of a version."""
    return folder / RUNS / runs.version / "catalog.db"


def known_columns_of_runs(folder: Path) -> tuple[str, ...]:
    """Return the columns that runs of the newest generation add to an export, without those that are metadata, too.

    A catalog that cannot be read gives none: the run itself says what is wrong with it.
    """
    with suppress(SondeError):
        base = committed_generation(folder)
        if base and base.runs:
            with closing(Catalog.open(runs_catalog(folder, base.runs))) as catalog:
                return columns_of_runs(catalog, base.fields)
    return ()


@dataclass(slots=True)
class Writing:
    """A new version in the making.

    Attributes:
        catalog: A copy of the catalog, with an open transaction.
        state: The version that the copy became; the one before if nothing was changed. Set at the end.
    """

    catalog: Catalog
    state: Published | None


@contextmanager
def changed_runs(folder: Path, base: ShardedGeneration) -> Iterator[Writing]:
    """Change a copy of the runs of a generation, in one transaction, and publish it; the caller holds the writer lock.

    Nobody sees the version until a generation names it.
    """
    with _place(folder) as place:
        with closing(_copy(folder, base.runs, place)) as catalog:
            before = catalog.connection.total_changes
            writing = Writing(catalog, base.runs)
            with catalog.transaction(write=True):
                yield writing
            damaged = base.runs is not None and changed_files(folder / RUNS / base.runs.version, base.runs)
            changed = damaged or catalog.connection.total_changes > before
            catalog.checkpoint()
        if changed:
            writing.state = _published(folder, place, base.number + 1)


def compacted_runs(
    folder: Path, base: ShardedGeneration, known: Callable[[Sequence[str]], Collection[str]]
) -> Published | None:
    """Publish the runs of a generation without the space of what was deleted; the caller holds the writer lock.

    Args:
        folder: The collection.
        base: The generation.
        known: As for `forget_ids`.

    Returns:
        The new version, or the current one if nothing changes or the disk is too full.
    """
    if base.runs is None:
        return None
    with _place(folder) as place:
        try:
            with closing(_copy(folder, base.runs, place)) as catalog:
                with catalog.transaction(write=True):
                    forgot = forget_ids(catalog, known)
                catalog.vacuum()
                catalog.checkpoint()
        except sqlite3.OperationalError:
            return base.runs
        smaller = (place / "catalog.db").stat().st_size < runs_catalog(folder, base.runs).stat().st_size
        return _published(folder, place, base.number + 1) if smaller or forgot else base.runs


@contextmanager
def _place(folder: Path) -> Iterator[Path]:
    """Give an empty folder to make a version in, and remove what is left of it."""
    place = work_folder(folder) / RUNS
    shutil.rmtree(place, ignore_errors=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):  # a stopped index run has left something there
            place.parent.rmdir()


def _copy(folder: Path, runs: Published | None, place: Path) -> Catalog:
    make_folder(place)
    if runs is None:
        return Catalog.create(place / "catalog.db")
    shutil.copyfile(runs_catalog(folder, runs), place / "catalog.db")
    return Catalog.open(place / "catalog.db", write=True)


def _published(folder: Path, place: Path, number: int) -> Published:
    for name in ("catalog.db-wal", "catalog.db-shm"):
        (place / name).unlink(missing_ok=True)
    version = f"{number:06d}-{sha256(place / 'catalog.db')[:DIGITS]}"
    publish(place, folder / RUNS / version, {})
    return Published(version, manifest_of(folder / RUNS / version)[1])


def runs_after(
    folder: Path, base: ShardedGeneration | None, changed: Mapping[int, ShardState], change: ChangeRuns | None = None
) -> Published | None:
    """Return the runs without what they say of documents that new versions of shards lack, or have with another text.

    Args:
        folder: The collection, whose writer lock the caller holds.
        base: The generation before.
        changed: The new versions, by shard.
        change: What else to change; without it, no runs stay no runs.
    """
    if base is None or (base.runs is None and change is None):
        return None
    with changed_runs(folder, base) as writing:
        if change:
            change(writing.catalog)
        for shard, state in changed.items():
            place, old = folder / f"shards/{shard:02d}", base.shards[shard]
            new = place / state.version
            if old is None:  # it had no documents, or was lost
                forget_in_runs(writing.catalog, _missing(writing.catalog, new, shard, len(base.shards)))
                continue
            gone, replaced = _changed(place / old.version, new)
            forget_in_runs(writing.catalog, gone)
            forget_in_runs(writing.catalog, replaced, replaced=True)
    return writing.state


def _missing(runs: Catalog, new: Path, shard: int, shards: int) -> list[int]:
    """Return the documents of a shard that runs name and its new version lacks; numbers tell the shard."""
    named = documents_in_runs(runs)
    with closing(Catalog.open(new / "catalog.db")) as catalog:
        return np.setdiff1d(named[named % shards == shard], document_numbers(catalog)).tolist()


def _changed(old: Path, new: Path) -> tuple[list[int], list[int]]:
    """Return the documents that a new version lacks, and those that have another text there."""
    with closing(Catalog.open(new / "catalog.db")) as catalog, attached(catalog, old):
        changed = changed_since(catalog)
        there = np.isin(changed, document_numbers(catalog))
    return changed[~there].tolist(), changed[there].tolist()

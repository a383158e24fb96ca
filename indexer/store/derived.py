"""The derived indexes: kept in step with the catalog, loaded once, rebuilt when they cannot be read.

All live in a folder per epoch, `ann/EPOCH`, `lexical/EPOCH` and `late/EPOCH`: `compact` renumbers the rows and starts a
new one.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..ann import AnnIndex, AnnSettings, build, checked_info, load_index
from ..ann.devices import search_device
from ..ann.kinds import suits_cpu
from ..ann.settings import GPU_KINDS, AnnInfo
from ..encoder import ModelSpec
from ..errors import SondeError
from ..files import remove_folder
from ..late import REPAIR, LateIndex
from ..lexical import LexicalEntry, LexicalIndex
from ..progress import Notify, Progress, silent, tell
from .catalog import Catalog
from .late import late_folder
from .segments import Segments

Stamp = tuple[str, int, int]

ASKED = ("kind", "target_recall", "memory_budget")
"""Settings of the FAISS index that stay with the collection: `compact` and `repair` build what was asked for."""

DERIVED = ("ann", "lexical", "late")
"""The folders of indexes that can be rebuilt, each with one folder for each epoch."""

ANN_BUILT = "ann_epoch"
"""Property of the catalog: the epoch whose FAISS index was saved, None where there never was one."""

TAIL_ROWS, TAIL_SHARE = 2_000, 0.02
"""Newer rows that are left to an exact scan: at most this many, or this share of the collection if that is more."""

DEAD_SHARE = 0.3
"""Share of tombstones among the indexed rows above which the FAISS index is rebuilt."""

MAPPED = 256 << 20
"""Bytes from which a reader leaves the FAISS index on disk: the system keeps in memory what searches use of it."""

SETTLED_ROWS, SETTLED_SHARE = 20_000, 0.05
"""Up to this many passages, the lexical index never keeps the statistics of deleted ones; above, at most this share."""


def ann_folder(folder: Path, epoch: int) -> Path:
    """Return where the FAISS index of an epoch lies."""
    return folder / "ann" / str(epoch)


def lexical_folder(folder: Path, epoch: int) -> Path:
    """Return where the Tantivy index of an epoch lies."""
    return folder / "lexical" / str(epoch)


class Loaded:
    """The indexes that a reader holds in memory, shared by generations for as long as the files stay the same.

    What a generation was given never changes under it: another thread may be searching an older one.
    """

    def __init__(self, folder: Path, device: str = "auto") -> None:
        self.folder = folder
        self.device = device
        self._ann: tuple[Stamp, AnnIndex] | None = None
        self._lexical: tuple[Stamp, LexicalIndex] | None = None
        self._late: tuple[Stamp, LateIndex] | None = None
        self._links: tempfile.TemporaryDirectory[str] | None = None

    def ann(self, epoch: int) -> AnnIndex | None:
        """Return the FAISS index on the device; None if none can be read: vectors are then scanned exactly.

        Raises:
            UsageError: The machine has GPUs, but not this one.
        """
        folder, device = ann_folder(self.folder, epoch), search_device(self.device)
        try:
            stamp = _stamp(folder / "info.json")
            if self._ann is None or self._ann[0] != stamp:
                self._ann = (stamp, load_index(folder, device=device, mapped_from=MAPPED))
        except (OSError, SondeError):
            return None
        found = self._ann[1]
        if device == "cpu" and _made_for_gpu(found.info):
            tell(
                f"the FAISS index of {self.folder} was built for a GPU: this CPU scans {found.info.vectors:,} vectors "
                f"in each search until `sonde repair` builds one for it"
            )
        return found

    def lexical(self, epoch: int) -> LexicalIndex | None:
        """Return the Tantivy index as of its newest commit, None where there is none that can be read."""
        folder = lexical_folder(self.folder, epoch)
        try:
            stamp = _stamp(folder / "state.json")
            if self._lexical is None or self._lexical[0] != stamp:
                self._lexical = (stamp, self._opened(folder))
        except (OSError, SondeError):
            return None
        return self._lexical[1]

    def late(self, epoch: int, model: str) -> LateIndex | None:
        """Return the late index for a model of this fingerprint, None where there is none that can be read."""
        folder = late_folder(self.folder, epoch)
        try:
            stamp = _stamp(folder / "info.json")
            if self._late is None or self._late[0] != stamp:
                self._late = (stamp, LateIndex.open(folder, model))
        except OSError:
            return None
        except SondeError as error:
            tell(f"the late index of {self.folder} is not used ({error}): passages are embedded instead; {REPAIR}")
            return None
        return self._late[1]

    def _opened(self, folder: Path) -> LexicalIndex:
        """Open the index; where its folder cannot be written, as Tantivy's locks must, through links to its files."""
        if os.access(folder, os.W_OK):
            return LexicalIndex.open(folder)
        self._links = tempfile.TemporaryDirectory(prefix="sonde-", ignore_cleanup_errors=True)
        for path in folder.iterdir():
            if path.suffix != ".lock":
                (Path(self._links.name) / path.name).symlink_to(path.absolute())
        return LexicalIndex.open(Path(self._links.name))


def _stamp(path: Path) -> Stamp:
    """Return what changes whenever a file is replaced."""
    found = path.stat()
    return str(path), found.st_ino, found.st_mtime_ns


class LexicalFollower:
    """Keeps the lexical index in step with the catalog during a run, through one open writer.

    A commit of the catalog adds its rows here first, inside its transaction: readers leave out rows that their view of
    the catalog does not have, so that a new document is found by its words as soon as it exists, and a replaced one is
    never without. What the catalog's transaction buried is deleted here after it.
    """

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self.catalog = catalog
        path = lexical_folder(folder, catalog.epoch())
        self._index = _opened(path)
        self._writer = self._index.writer()
        # A writer killed between both commits leaves rows here that the catalog does not know, and will number again.
        self._through = min(self._index.state.through_row, catalog.rows())
        self._language = catalog.get("language")

    def __enter__(self) -> "LexicalFollower":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def follow(self) -> None:
        """Add the rows that the index lacks and delete its tombstones; nothing where it is up to date."""
        self.add()
        self.bury()

    def add(self) -> None:
        """Add the rows that the index lacks, those of the catalog's open transaction among them."""
        end = self.catalog.rows()
        if end == self._through == self._index.state.through_row:
            return
        self._writer.delete_from(self._through)
        self._writer.add(self._live(self._through, end))
        self._writer.commit(end, self._index.state.settled)
        self._through = end

    def bury(self) -> None:
        """Delete the catalog's tombstones."""
        if tombstones := self._tombstones():
            self._writer.delete(tombstones)
            self._writer.commit(self._through, self._index.state.settled)

    def settle(self) -> None:
        """Rebuild the index where deleted passages still count in its statistics, and so in every BM25 score.

        Tantivy counts them until it merges their segment, at a time of its own. Without this, two collections of the
        same documents would give other scores if one of them had a longer history. A large index with few deleted
        passages is left alone. The index's state remembers how many tombstones it was last built without.
        """
        _, live, tombstones = self.catalog.counts()
        residue = tombstones - self._index.state.settled
        if residue and (live <= SETTLED_ROWS or residue > SETTLED_SHARE * live):
            self._writer.delete_from(0)
            self._writer.add(self._live(0, self._through))
            self._writer.commit(self._through, tombstones)
            self.catalog.advance()  # readers that hold the index with its old statistics look again

    def _live(self, start: int, end: int) -> Iterator[LexicalEntry]:
        sql = (
            "SELECT row, title, substr(text, start + 1, end - start), language "
            "FROM passages JOIN documents USING (doc) WHERE row >= ? AND row < ?"
        )
        for row, title, text, language in self.catalog.connection.execute(sql, (start, end)):
            yield LexicalEntry(row, title, text, language or self._language)

    def _tombstones(self) -> list[int]:
        expected = self.catalog.counts()[1]
        dead = self.catalog.connection.execute("SELECT row FROM passages WHERE doc IS NULL").fetchall()
        return [row for (row,) in dead] if self._index.rows != expected else []


def _opened(path: Path) -> LexicalIndex:
    try:
        return LexicalIndex.open(path)
    except SondeError:
        if path.exists():
            remove_folder(path)
        return LexicalIndex.create(path)


def update_lexical(folder: Path, catalog: Catalog, notify: Notify = silent) -> None:
    """Bring the lexical index up to date with the catalog, rebuilding it where it cannot be read."""
    notify(Progress("lexical index", 0, None, "passages"))
    with LexicalFollower(folder, catalog) as follower:
        follower.follow()
        follower.settle()


def update_derived(folder: Path, catalog: Catalog, settings: AnnSettings, notify: Notify = silent) -> None:
    """Bring both indexes up to date with the catalog; the caller holds the writer lock."""
    update_lexical(folder, catalog, notify)
    update_ann(folder, catalog, settings, notify)


def update_ann(folder: Path, catalog: Catalog, settings: AnnSettings, notify: Notify = silent) -> None:
    """Build the FAISS index, extend it, or leave a small number of newer rows to the exact scan."""
    settings = remembered(catalog, settings)
    spec = ModelSpec.from_dict(catalog.get("model"))
    vectors = Segments(folder / "vectors", catalog.segments(), spec.dimension)
    alive = catalog.document_of_row() >= 0
    path = ann_folder(folder, catalog.epoch())
    if not alive.any():
        shutil.rmtree(path, ignore_errors=True)
        catalog.set(ANN_BUILT, None)
        return
    known = checked_info(path)
    if known is not None and _fits(known, vectors, alive, settings) and _covers(known, vectors):
        return
    steps = _Steps(notify)
    index = _usable(path, vectors, alive, settings, notify)
    if index is None:
        index = build(vectors, settings, alive=alive, notify=steps)
    elif _covers(index.info, vectors):
        return
    else:
        index.add(vectors, index.info.rows, len(vectors), alive=alive, notify=steps)
    info = index.save(path)
    catalog.set(ANN_BUILT, catalog.epoch())
    catalog.advance()
    where = "" if info.device == "cpu" else f" on {info.device}"
    notify(f"FAISS index: {info.reason}; recall@10 {info.recall:.3f}, {info.latency_ms:.2f} ms{where}")


def remembered(catalog: Catalog, given: AnnSettings) -> AnnSettings:
    """Return the settings with what was asked for in earlier runs, and remember what is asked for now."""
    known = catalog.get("ann", {})
    asked = {name: getattr(given, name) for name in ASKED if getattr(given, name) is not None}
    if known | asked != known:
        catalog.set("ann", known | asked)
    kept = known | asked
    device = search_device(given.device)
    if kept.get("kind", "auto") not in ("auto", *GPU_KINDS):
        device = "cpu"
    if device == "cpu" and kept.get("kind") == "cagra" and given.kind != "cagra":
        kept["kind"] = "auto"  # requested on a machine with a GPU
    return replace(given, **kept, device=device)


def repaired_ann(folder: Path, catalog: Catalog, notify: Notify = silent) -> bool:
    """Build the FAISS index again if it was built for a GPU and there is none; return whether it was.

    The caller holds the writer lock.
    """
    try:
        info = load_index(ann_folder(folder, catalog.epoch()), device="cpu").info
    except SondeError:
        return False
    if search_device() != "cpu" or not _made_for_gpu(info):
        return False
    update_ann(folder, catalog, AnnSettings(device="cpu"), notify)
    return True


def _made_for_gpu(info: AnnInfo) -> bool:
    return info.device != "cpu" and not suits_cpu(info.kind, info.dimension, info.vectors)


def _usable(path: Path, vectors: Segments, alive: np.ndarray, settings: AnnSettings, notify: Notify) -> AnnIndex | None:
    """Return the index that is there, unless it should be rebuilt."""
    try:
        index = load_index(path, device=settings.device)
    except SondeError:
        return None
    if _left_by_a_gpu(index.info, vectors, settings):
        notify(f"the FAISS index ({index.info.kind}) was built for a GPU: building one for this CPU")
        return None
    return index if _fits(index.info, vectors, alive, settings) else None


def _fits(info: AnnInfo, vectors: Segments, alive: np.ndarray, settings: AnnSettings) -> bool:
    """Return whether an index need not be rebuilt."""
    stale = info.rows > len(vectors) or (~alive[: info.rows]).mean() > DEAD_SHARE
    outgrown = info.vectors * 2 < alive.sum()  # another kind may suit twice as many vectors
    asked = settings.kind not in (None, "auto", info.kind) or settings.target_recall not in (None, info.target)
    return not (stale or outgrown or asked or _left_by_a_gpu(info, vectors, settings))


def _left_by_a_gpu(info: AnnInfo, vectors: Segments, settings: AnnSettings) -> bool:
    behind = info.kind == "cagra" and len(vectors) > info.rows  # a CPU cannot add to it
    return settings.device == "cpu" and settings.kind in (None, "auto") and (behind or _made_for_gpu(info))


def _covers(info: AnnInfo, vectors: Segments) -> bool:
    """Return whether there are no newer rows, or few enough for an exact scan beside an approximate index."""
    newer = len(vectors) - info.rows
    return newer == 0 or (newer <= max(TAIL_ROWS, TAIL_SHARE * len(vectors)) and info.kind != "exact")


class _Steps:
    """Passes FAISS's progress on in the build's terms."""

    def __init__(self, notify: Notify) -> None:
        self.notify = notify

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.notify(Progress(f"FAISS index, {stage}", done, total, "vectors"))

"""Delete documents or a collection, and compact what deletion leaves behind."""

import secrets
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..ann import AnnSettings
from ..encoder import ModelSpec
from ..errors import SondeError
from ..files import disk_error, sync_folder
from ..progress import Notify, Progress, silent
from ..store.catalog import Catalog
from ..store.collection import check_folder
from ..store.derived import update_derived, update_lexical
from ..store.disk import disk_bytes
from ..store.documents import numbers_by_id
from ..store.integrity import sweep
from ..store.late import move_late
from ..store.lock import COLLECTION, writer_lock
from ..store.passages import add_segment, move_passages, remove_segments, remove_tombstones
from ..store.run_editing import forget_ids
from ..store.segments import Segment, Segments, write_segment
from ..store.writing import delete_documents
from ..wording import shown_id

SEGMENT_ROWS = 65_536
FREE = 0.05
"""Share of empty pages from which a catalog is rewritten although nothing was deleted since."""
SPARSE = "sparse"
"""Property of a catalog that was compacted, until it is rewritten: pages that are half empty cannot be counted."""
BRIEFLY = 1.0
"""Seconds to wait for readers of an older state; if they stay, a later commit shortens the file."""


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What `compact` did.

    Attributes:
        removed: How many tombstones there were.
        segments_before: How many segments there were.
        segments: How many there are.
        bytes_before: Bytes that the embeddings took.
        bytes: Bytes that they take.
        disk_before: Bytes that the whole collection took on disk.
        disk: Bytes that it takes.
    """

    removed: int
    segments_before: int
    segments: int
    bytes_before: int
    bytes: int
    disk_before: int
    disk: int


def compact(folder: Path, *, ann: AnnSettings = AnnSettings(), notify: Notify = silent) -> CompactReport:
    """Rewrite the collection without tombstones; readers go on with what they have opened.

    New segments and indexes are written beside the old ones; one transaction makes them the collection. Killed
    before it, the collection is as it was; after it, the next writer removes what is left of the old files. Then the
    catalog is rewritten without the space of what was deleted.

    Raises:
        SondeError: Another process is writing.
    """
    disk_before = disk_bytes(check_folder(folder))
    with writer_lock(folder), closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        sweep(folder, catalog)
        before, (_, live, removed) = catalog.segments(), catalog.counts()
        size_before = vectors_size(folder)
        with catalog.transaction(write=True):
            if forget_ids(catalog, lambda ids: numbers_by_id(catalog, ids)):
                catalog.set(SPARSE, True)
        if removed or len(before) > -(-live // SEGMENT_ROWS):
            with catalog.transaction(write=True):
                _rewrite(folder, catalog, before, notify)
                update_derived(folder, catalog, ann, notify)
                catalog.set(SPARSE, True)
            sweep(folder, catalog)
        _shrink(catalog, notify)
        segments, size = len(catalog.segments()), vectors_size(folder)
    return CompactReport(removed, len(before), segments, size_before, size, disk_before, disk_bytes(folder))


def _shrink(catalog: Catalog, notify: Notify) -> None:
    """Give back the space of deleted rows in the catalog, if it is worth that; what fails changes nothing."""
    try:
        if catalog.get(SPARSE) or catalog.free_share() > FREE:
            notify(Progress("rewriting the catalog", 0, None, "documents"))
            catalog.vacuum()
            catalog.remove(SPARSE)
    except sqlite3.OperationalError as error:
        notify(
            f"the catalog keeps the space of deleted documents, because it cannot be rewritten ({error}): "
            "free some space for it and for temporary files, then compact again"
        )
    with suppress(sqlite3.OperationalError):  # what the log holds is committed
        catalog.empty_log(BRIEFLY)


def vectors_size(folder: Path) -> int:
    """Return the bytes of a collection's embeddings."""
    return sum(path.stat().st_size for path in (folder / "vectors").iterdir())


def _rewrite(folder: Path, catalog: Catalog, before: list[Segment], notify: Notify) -> None:
    """Write new segments and renumber the passages, in the caller's transaction."""
    dimension = ModelSpec.from_dict(catalog.get("model")).dimension
    vectors = Segments(folder / "vectors", before, dimension)
    rows = np.flatnonzero(catalog.document_of_row() >= 0)
    number = 1 + max((segment.number for segment in before), default=0)
    remove_tombstones(catalog)
    remove_segments(catalog, before)
    for start in range(0, len(rows), SEGMENT_ROWS):
        some = rows[start : start + SEGMENT_ROWS]
        segment = write_segment(folder / "vectors", number + start // SEGMENT_ROWS, start, vectors.read(some))
        add_segment(catalog, segment)
        notify(Progress("compacting", start + len(some), len(rows), "passages"))
    # New numbers never exceed old ones, so that in ascending order each target is free.
    moved = [(new, int(old)) for new, old in enumerate(rows) if new != old]
    move_passages(catalog, moved)
    catalog.set("epoch", catalog.epoch() + 1)
    move_late(folder, catalog, rows, ModelSpec.from_dict(catalog.get("model")).fingerprint, notify)
    catalog.advance()


def delete_chosen(folder: Path, choose: Callable[[Catalog], Sequence[int]], notify: Notify = silent) -> int:
    """Delete the documents whose numbers `choose` returns, all in one commit; return how many there were.

    They are chosen inside the transaction that deletes them: a number that another writer freed may be used again.

    Raises:
        SondeError: Another process is writing, or the collection cannot be written.
    """
    with writer_lock(check_folder(folder)), closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        sweep(folder, catalog)
        with catalog.transaction(write=True):
            before = catalog.counts()[0]
            delete_documents(catalog, choose(catalog))
            deleted = before - catalog.counts()[0]
            if deleted:
                catalog.advance()
        update_lexical(folder, catalog, notify)
    return deleted


def numbers_of(catalog: Catalog, keys: Sequence[str]) -> list[int]:
    """Return the numbers of documents by id.

    Raises:
        SondeError: An id does not exist; the message names it and counts the others.
    """
    found = numbers_by_id(catalog, keys)
    missing = [key for key in keys if key not in found]
    if missing:
        others = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise SondeError(f"there is no document with the id {shown_id(missing[0])}{others}: nothing was changed")
    return [found[key] for key in dict.fromkeys(keys)]


def remove_collection(folder: Path) -> None:
    """Remove a collection and all that it holds. It vanishes at once; who is reading it keeps what is open.

    Raises:
        SondeError: It is no collection, another process is writing it, or it may not be removed.
    """
    if not (folder / COLLECTION).is_file():
        check_folder(folder)
    gone = folder.with_name(f".{folder.name[:40]}-{secrets.token_hex(4)}.removed")
    with writer_lock(folder):
        pass  # nobody writes; a writer that begins just now fails, and loses what is being removed anyway
    try:
        folder.rename(gone)
        sync_folder(folder.parent)  # or else a power cut could bring back the name, and not all of the files
    except OSError as error:
        raise disk_error(error, folder) from None
    shutil.rmtree(gone, ignore_errors=True)

"""The late index of a collection: whether it is wanted, which passages it covers, its move to a new epoch."""

from pathlib import Path

import numpy as np

from ..errors import SondeError
from ..late import LateIndex, LateWriter, key
from ..progress import Notify, Progress, silent
from .catalog import Catalog

WANTED = "late"
"""Property of the catalog: whether the collection keeps a late index."""
LATE_BUILT = "late_epoch"
"""Property of the catalog: the epoch in which the late index was built or moved to, None where there is none."""
ROWS_AT_ONCE = 4_096


def late_folder(folder: Path, epoch: int) -> Path:
    """Return where the late index of an epoch lies."""
    return folder / "late" / str(epoch)


def is_wanted(catalog: Catalog) -> bool:
    """Return whether the collection keeps a late index."""
    return bool(catalog.get(WANTED, False))


def want(catalog: Catalog, wanted: bool) -> None:
    """Remember whether the collection keeps a late index."""
    if is_wanted(catalog) != wanted:
        with catalog.transaction(write=True):
            catalog.set(WANTED, True) if wanted else catalog.remove(WANTED)
            catalog.remove(LATE_BUILT)
            catalog.advance()


def live_passages(catalog: Catalog) -> tuple[np.ndarray, list[bytes]]:
    """Return the rows of all passages but tombstones, int64 [n] ascending, and their digests."""
    found = catalog.connection.execute("SELECT row, digest FROM passages WHERE doc IS NOT NULL ORDER BY row").fetchall()
    return np.array([row for row, _ in found], np.int64), [digest for _, digest in found]


def uncovered(catalog: Catalog, index: LateIndex | None) -> tuple[np.ndarray, list[bytes]]:
    """Return the rows and digests of the passages that the index has no entry for, without tombstones."""
    rows, digests = live_passages(catalog)
    if index is None or not len(rows):
        return rows, digests
    keys = np.zeros(int(rows[-1]) + 1, np.int64)
    keys[rows] = [key(digest) for digest in digests]
    lacking = ~index.covered(len(keys), keys)[rows]
    return rows[lacking], [digest for digest, lacks in zip(digests, lacking.tolist(), strict=True) if lacks]


def move_late(folder: Path, catalog: Catalog, rows: np.ndarray, model: str, notify: Notify = silent) -> None:
    """Write the late index of the coming epoch, in the transaction of `compact`: no passage is embedded again.

    Args:
        folder: The collection.
        catalog: Its catalog, with the new epoch and rows.
        rows: int64 [n], the old row of each new one.
        model: Fingerprint of the collection's model.
        notify: Receives progress.
    """
    epoch = catalog.epoch()
    try:
        before = LateIndex.open(late_folder(folder, epoch - 1), model)
    except (OSError, SondeError):
        before = None
    if not is_wanted(catalog) or before is None:
        return
    writer = LateWriter(late_folder(folder, epoch), model)
    writer.begin(before.codec)
    now, digests = live_passages(catalog)
    for start in range(0, len(now), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        keys = np.array([key(digest) for digest in digests[some]], np.int64)
        found = before.read(rows[some], keys)
        kept = [place for place, each in enumerate(found) if each is not None]
        writer.add(now[some][kept], keys[kept], [each for each in found if each is not None])
        notify(Progress("late index", start + len(keys), len(now), "passages"))
    catalog.set(LATE_BUILT, epoch)

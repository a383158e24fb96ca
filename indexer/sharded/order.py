"""The order in which passages were added: with it, a search over shards orders equal scores as one collection does.

A passage has the place of its document among all that were ever read. The file ends with its own digest, since nothing
else could tell a changed number from another.
"""

import io
from hashlib import sha256
from pathlib import Path

import numpy as np

from ..errors import SondeError
from ..files import write_durably
from ..small_files import reading_array

ORDER = "order.npy"
MOST_READ = 2**52
"""Documents that can ever be read: their numbers, times the number of shards, stay below 2^63."""
_DIGEST = sha256().digest_size
_HEADER = 4096
"""Bytes that the header of a .npy file and the digest have at most."""


def read_order(path: Path, rows: int, advice: str = "restore the collection from a backup") -> np.ndarray:
    """Return int64 [rows], ascending: when each passage came.

    Args:
        path: The file.
        rows: How many passages the shard has, deleted ones included: the file may have fewer, not more.
        advice: What to do if it is damaged.

    Raises:
        FileNotFoundError: There is none.
        SondeError: It is damaged.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(most := rows * 8 + _HEADER)
        if len(content) == most:
            raise ValueError(f"it lists more than the {rows:,} passages of the shard")
        found, rest = _array(content)
        if found.dtype != np.int64 or found.ndim != 1:
            raise ValueError(f"it holds {found.dtype} {found.shape}")
        if rest and sha256(content[: len(content) - len(rest)]).digest() != rest:  # an earlier Sonde wrote none
            raise ValueError("its content does not match its digest")
        if len(found) > rows or (np.diff(found, prepend=0) < 0).any() or (found >= MOST_READ).any():
            raise ValueError("its places are not those of the passages")
        return found
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise SondeError(f"{path} is damaged ({error}): {advice}", code="damaged") from None


def write_order(path: Path, order: np.ndarray) -> None:
    """Write int64 [rows], ascending, with the digest."""
    out = io.BytesIO()
    np.save(out, order.astype(np.int64, copy=False))
    content = out.getvalue()
    write_durably(path, lambda stream: stream.write(content + sha256(content).digest()))


def _array(content: bytes) -> tuple[np.ndarray, bytes]:
    """Return the array in a file, and what follows it."""
    stream = io.BytesIO(content)
    with reading_array():
        found = np.load(stream, allow_pickle=False)
    return found, stream.read()

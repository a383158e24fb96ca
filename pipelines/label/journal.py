"""What a judge has said so far, kept in the collection's folder until the run is stored: a kill costs one batch."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO

import numpy as np
from filelock import FileLock, Timeout

from ...indexer.errors import SondeError

FOLDER = "labelling"


class Journal:
    """Margins by the digest of a text's content; every batch is one line, flushed to the disk.

    A line that a kill left unfinished is cut off. What another model, other labels or other settings said is not used.
    """

    def __init__(self, stream: IO[bytes] | None, known: dict[str, np.ndarray]) -> None:
        self._stream = stream
        self.known = known

    @classmethod
    def nowhere(cls) -> "Journal":
        """Return one that is kept in memory only."""
        return cls(None, {})

    def add(self, keys: Sequence[str], margins: np.ndarray) -> None:
        """Keep float32 [n, labels] margins."""
        self.known |= dict(zip(keys, margins, strict=True))
        if self._stream is None:
            return
        values = [[None if np.isnan(value) else value for value in row] for row in margins.astype(float).tolist()]
        self._stream.write(json.dumps([list(keys), values]).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())


@contextmanager
def open_journal(collection: Path, name: str, settings: str) -> Iterator[Journal]:
    """Open the journal of a run, gone on with if it was made under the same settings; removed when the block ends well.

    Raises:
        SondeError: Another process is making the same run, or the folder cannot be written.
    """
    folder = collection / FOLDER
    path = folder / f"{sha256(name.encode()).hexdigest()[:16]}.jsonl"
    try:
        folder.mkdir(exist_ok=True)
        lock = FileLock(path.with_suffix(".lock"), timeout=0)
        with lock, path.open("a+b") as stream:
            yield Journal(stream, _read(stream, sha256(settings.encode()).hexdigest()))
            path.unlink()
            path.with_suffix(".lock").unlink(missing_ok=True)
    except Timeout:
        raise SondeError(f"another process is making the label run {name!r}: wait for it, or give --name") from None
    except PermissionError as error:
        raise SondeError(f"{folder} cannot be written ({error.strerror})") from None
    if not any(folder.iterdir()):
        folder.rmdir()


def _read(stream: IO[bytes], settings: str) -> dict[str, np.ndarray]:
    stream.seek(0)
    known: dict[str, np.ndarray] = {}
    whole = 0
    for number, line in enumerate(stream):
        if not line.endswith(b"\n") or (number == 0 and line.decode(errors="replace").strip() != settings):
            break
        if number:
            keys, values = json.loads(line)
            margins = np.array([[np.nan if value is None else value for value in row] for row in values], np.float32)
            known |= dict(zip(keys, margins, strict=True))
        whole += len(line)
    stream.seek(whole)
    stream.truncate()
    if not whole:
        stream.write(settings.encode() + b"\n")
        stream.flush()
    return known

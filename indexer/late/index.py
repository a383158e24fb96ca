"""A late index on disk: its files, and the pooled tokens of passages by row, checked one by one.

`info.json` names all other files with their digests; what it does not name does not exist.

- `codec.npy`: float32 [1 + kept, d], the mean and the components. `rarity.npy`: float64 [n, 2], token ids and values;
  the first row is (-1, the value of unseen ids).
- `000001.table.npy`: int64 [4, m], for each passage of a segment its row, its key, where its pooled tokens end, and
  their CRC-32. Rows ascend. `000001.codes.npy`: uint8 [tokens, width], the pooled tokens.
"""

import json
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..errors import SondeError
from ..files import sha256, write_durably
from ..progress import tell
from ..small_files import read_json, reading_array
from .codec import Codec, Rarity

VERSION = 1
INFO, CODEC, RARITY = "info.json", "codec.npy", "rarity.npy"
LARGEST = 2**31
ATTEMPTS = 3
"""How often a reader starts over when a writer merges segments between its look at `info.json` and their opening."""
REPAIR = "run `sonde repair`"
LINE = 32
"""Bytes of a line of the table."""


@dataclass(frozen=True, slots=True)
class LateSegment:
    """A file of pooled tokens and its table: `count` passages with `tokens` pooled tokens, and both files' SHA-256."""

    number: int
    count: int
    tokens: int
    table: str
    codes: str

    def table_path(self, folder: Path) -> Path:
        """Return the table's file."""
        return folder / f"{self.number:06d}.table.npy"

    def codes_path(self, folder: Path) -> Path:
        """Return the file of the pooled tokens."""
        return folder / f"{self.number:06d}.codes.npy"

    def problem(self, folder: Path) -> str | None:
        """Return what is wrong with the bytes of the files; None where nothing is."""
        for path, digest in ((self.table_path(folder), self.table), (self.codes_path(folder), self.codes)):
            if not path.is_file():
                return f"{path.name} is missing"
            if sha256(path) != digest:
                return f"{path.name} does not match its digest"
        return None


@dataclass(frozen=True, slots=True)
class LateInfo:
    """What a late index holds.

    Attributes:
        model: Fingerprint of the model whose tokens these are.
        learned: How many tokens the codec was learned from.
        codec: SHA-256 of `codec.npy`.
        rarity: SHA-256 of `rarity.npy`.
        segments: In the order in which they were written; a later one holds if two have the same row.
    """

    model: str
    learned: int
    codec: str
    rarity: str
    segments: tuple[LateSegment, ...] = ()
    version: int = VERSION

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Read what `asdict` gave.

        Raises:
            SondeError: A value is missing, unknown or of another type; or the version is another.
        """
        types = {"model": str, "learned": int, "codec": str, "rarity": str, "segments": list, "version": int}
        _check(values, types, INFO)
        if values["version"] != VERSION:
            raise SondeError(f"it has version {values['version']}, not {VERSION}")
        for each in values["segments"]:
            _check(each, {"number": int, "count": int, "tokens": int, "table": str, "codes": str}, INFO)
            if not all(0 < each[name] < LARGEST for name in ("number", "count", "tokens")):
                raise SondeError(f"{INFO} has a number that is not possible")
        return cls(**{**values, "segments": tuple(LateSegment(**each) for each in values["segments"])})


def _check(values: Any, types: dict[str, type], what: str) -> None:
    if not isinstance(values, dict) or set(values) != set(types):
        raise SondeError(f"{what} does not have the expected entries")
    if not all(type(values[name]) is kind for name, kind in types.items()):
        raise SondeError(f"{what} has an entry of the wrong type")


def read_info(folder: Path) -> LateInfo:
    """Read the description of an index.

    Raises:
        FileNotFoundError: There is none.
        SondeError: It is damaged.
    """
    try:
        return LateInfo.from_dict(read_json(folder / INFO))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise SondeError(f"{INFO} cannot be read ({error})") from None


def write_info(folder: Path, info: LateInfo) -> None:
    """Write the description, which makes what it names part of the index."""
    data = json.dumps(asdict(info), indent=1).encode()
    write_durably(folder / INFO, lambda stream: stream.write(data))


def write_array(path: Path, array: np.ndarray) -> str:
    """Write an array as a .npy file; return its SHA-256."""
    write_durably(path, lambda stream: np.lib.format.write_array(stream, array, (1, 0), allow_pickle=False))
    return sha256(path)


def open_array(path: Path, kind: str, columns: int) -> np.ndarray:
    """Return an array of two dimensions, mapped and not copied.

    Args:
        path: The .npy file.
        kind: Its type, such as "<i8".
        columns: Its second dimension; 0 for any.

    Raises:
        SondeError: It is missing or damaged, or has another type or form.
    """
    try:
        with reading_array():
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise SondeError(f"{path.name} is missing") from None
    except (OSError, ValueError) as error:
        raise SondeError(f"{path.name} cannot be read ({error})") from None
    fits = found.dtype.str == kind and found.ndim == 2 and columns in (0, found.shape[-1])
    if not fits or not found.flags.c_contiguous:
        raise SondeError(f"{path.name} holds {found.dtype} {found.shape}")
    return found


def write_codec(folder: Path, codec: Codec) -> tuple[str, str]:
    """Write a codec's files; return their digests."""
    rarity = np.column_stack([[-1, *codec.rarity.ids], [codec.rarity.unseen, *codec.rarity.values]]).astype("<f8")
    basis = np.concatenate([codec.mean[None], codec.components]).astype("<f4")
    return write_array(folder / CODEC, basis), write_array(folder / RARITY, rarity)


def read_codec(folder: Path, info: LateInfo) -> Codec:
    """Read the codec of an index.

    Raises:
        SondeError: A file is missing, damaged or cut off.
    """
    for name, digest in ((CODEC, info.codec), (RARITY, info.rarity)):
        if not (folder / name).is_file():
            raise SondeError(f"{name} is missing")
        if sha256(folder / name) != digest:
            raise SondeError(f"{name} does not match its digest")
    basis = np.array(open_array(folder / CODEC, "<f4", 0))
    values = np.array(open_array(folder / RARITY, "<f8", 2))
    if not len(values) or not 1 < len(basis) <= basis.shape[1] + 1 or not np.isfinite(basis).all():
        raise SondeError(f"{CODEC} or {RARITY} holds what no version of Sonde writes")
    rarity = Rarity(values[1:, 0].astype(np.int64), values[1:, 1].astype(np.float32), float(values[0, 1]))
    return Codec(basis[0], basis[1:], rarity, info.learned)


_limiting = threading.Lock()
_inside = 0
_limits: Any = None


class LateIndex:
    """The late index as of one `info.json`. Files that a writer removes later stay readable.

    A row that is numbered again, or whose text changed, has another key, and is not found.
    """

    def __init__(self, folder: Path, info: LateInfo, codec: Codec, segments: list["Opened"]) -> None:
        """Take the parts; `open` reads them."""
        self.folder = folder
        self.info = info
        self.codec = codec
        self._segments = segments

    @classmethod
    def open(cls, folder: Path, model: str) -> Self:
        """Open the index of a folder, for a model of this fingerprint.

        Raises:
            FileNotFoundError: There is none.
            SondeError: It is damaged, or belongs to another model.
        """
        info = read_info(folder)
        for attempt in range(ATTEMPTS):
            try:
                return cls._opened(folder, info, model)
            except SondeError:
                newer = read_info(folder)
                if newer == info or attempt == ATTEMPTS - 1:
                    raise
                info = newer
        raise AssertionError

    @classmethod
    def _opened(cls, folder: Path, info: LateInfo, model: str) -> Self:
        if info.model != model:
            raise SondeError("it was made with another model")
        codec = read_codec(folder, info)
        return cls(folder, info, codec, [Opened(folder, segment, codec.width) for segment in info.segments])

    def read(self, rows: np.ndarray, keys: np.ndarray) -> list[np.ndarray | None]:
        """Return the pooled tokens of passages, uint8 [tokens, width] for each; None where there are none to be used.

        Bytes that have changed since they were written are not used; one message says so.

        Args:
            rows: int64 [n].
            keys: int64 [n], what `key` makes of the passages' digests.
        """
        found: list[np.ndarray | None] = [None] * len(rows)
        left = np.arange(len(rows))
        for segment in reversed(self._segments):
            places, known = segment.find(rows[left], keys[left])
            for number, place in zip(left[known].tolist(), places[known].tolist(), strict=True):
                found[number] = segment.passage(place)
                if found[number] is None:
                    tell(f"the late index in {self.folder} is damaged: passages are embedded instead; {REPAIR}")
            left = left[~known]
        return found

    def covered(self, rows: int, keys: np.ndarray | None = None) -> np.ndarray:
        """Return bool [rows]: which rows of the collection have an entry; with keys, int64 [rows], one that fits."""
        found = np.zeros(rows, bool)
        for segment in self._segments:
            inside = segment.rows < rows
            mine = segment.rows[inside]
            found[mine] = True if keys is None else segment.keys[inside] == keys[mine]
        return found

    @property
    def bytes_per_passage(self) -> int:
        """Mean bytes of an entry, its line in the table included; 0 without entries."""
        segments = self.info.segments
        tokens, count = sum(each.tokens for each in segments), sum(each.count for each in segments)
        return round(LINE + tokens * self.codec.width / count) if count else 0


def key(digest: bytes) -> int:
    """Return a passage's key, the first 8 bytes of its digest: it tells whether an entry is of this text and model."""
    return int.from_bytes(digest[:8], "little", signed=True)


class Opened:
    """One segment, open."""

    def __init__(self, folder: Path, segment: LateSegment, width: int) -> None:
        """Open the files and check their form, and the table's digest.

        Raises:
            SondeError: One is missing, damaged or cut off.
        """
        path = segment.table_path(folder)
        table = open_array(path, "<i8", segment.count)
        codes = open_array(segment.codes_path(folder), "|u1", width)
        self.rows, self.keys, self.ends, self.sums = table if len(table) == 4 else np.empty((4, 0), np.int64)
        sound = len(codes) == segment.tokens and len(self.rows) == segment.count
        if not sound or sha256(path) != segment.table:
            raise SondeError(f"{path.name} does not match its digest, or the file of its tokens is cut off")
        self.codes = codes
        self._stream = segment.codes_path(folder).open("rb")

    def find(self, rows: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the place of each row in the table, int64 [n], and whether it is there with this key, bool [n]."""
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return places, (self.rows[places] == rows) & (self.keys[places] == keys)

    def passage(self, place: int) -> np.ndarray | None:
        """Return uint8 [tokens, width], the pooled tokens of the passage at a place of the table.

        None if they have changed since they were written.
        """
        start, end = int(self.ends[place - 1]) if place else 0, int(self.ends[place])
        data = self._read(start, end)
        if zlib.crc32(data) != self.sums[place]:
            return None
        return np.frombuffer(data, np.uint8).reshape(end - start, -1)

    def _read(self, start: int, end: int) -> bytes:
        width = self.codes.shape[1]
        if not hasattr(os, "pread"):
            return self.codes[start:end].tobytes()
        # Not through the mapping, so that what was read does not count as memory of the process.
        return os.pread(self._stream.fileno(), (end - start) * width, self.codes.offset + start * width)  # type: ignore[attr-defined]


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every thread multiply matrices by itself.

    Workers that each use all cores take twice the processor's time; and on a busy machine, the threads of one small
    product wait for each other longer than it takes.

    The limit holds for the whole process, until the last of those that are inside leaves.
    """
    global _inside, _limits
    with _limiting:
        if not _inside:
            _limits = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _limiting:
            _inside -= 1
            if not _inside:
                _limits.restore_original_limits()


@cache
def _controller() -> Any:
    """Return what limits the libraries; finding them takes milliseconds, so it is done once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

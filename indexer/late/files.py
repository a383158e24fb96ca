"""The files of a late index: `info.json` names all others with their digests; what it does not name does not exist.

- `codec.npy`: float32 [1 + kept, d], the mean and the components. `rarity.npy`: float64 [n, 2], token ids and values;
  the first row is (-1, the value of unseen ids).
- `000001.table.npy`: int64 [4, m], for each passage of a segment its row, its key, where its pooled tokens end, and
  their CRC-32. Rows ascend. `000001.codes.npy`: uint8 [tokens, width], the pooled tokens.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..errors import SondeError
from ..files import sha256, write_durably
from ..small_files import read_json, reading_array
from .codec import Codec, Rarity

VERSION = 1
INFO, CODEC, RARITY = "info.json", "codec.npy", "rarity.npy"
LARGEST = 2**31


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

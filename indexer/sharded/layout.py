"""What a sharded collection's own files say: `collection.json` and one file for each generation."""

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..document import TYPES
from ..encoder import ModelSpec
from ..errors import SondeError
from ..files import write_durably
from ..small_files import parsed, reading_array, sealed, unsealed
from ..store.schema import is_types
from . import COLLECTION
from .objects import LocalTruth, Truth

FORMAT = 2
FORMAT_WITH_MODEL = 3
"""Of a generation with another model than `collection.json`, so that an older Sonde does not read it."""
MOST_SHARDS = 1_000
MOST_READ = 2**52
"""Documents that can ever be read: their numbers, times the number of shards, stay below 2^63."""
RUNS = "runs"
"""The folder of the versions of the runs' catalog."""
DIGITS = len("000000")
"""The first characters of a version's name, which tell the generation; the others tell the run."""
VERSION = re.compile(r"\d{6}-[0-9a-z]{1,40}")
"""The name of a version of a shard, or of the runs' catalog."""
ORDER = "order.npy"
"""The file of the order in which a shard's passages were added; it ends with its own digest."""
_HEADER = 4096
"""Bytes that the header of a .npy file and the digest have at most."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """What never changes: `collection.json`.

    Attributes:
        shards: How many there are.
        seed: Part of the hash that sends a document to its shard.
        model: The model's settings and fingerprint, as `ModelSpec.to_dict` gives them. The file has the first model;
            a generation may have another one, see `with_model_of`.
        language: Language of documents that name none, or None.
        id_column: The column of the ids, which later runs use too; "" if hashes of the texts were chosen.
        types: The types that were given to metadata fields, by name, for later runs too.
        forms: How numbers and dates in other columns were written, see `KnownColumns`.
        encoding: The encoding that the user gave, for later files that are not UTF-8.
        origin: The path of the source that it was made from, as in the property `ORIGIN` of a collection.
    """

    shards: int
    seed: int
    model: dict[str, Any]
    language: str | None
    id_column: str | None = None
    types: dict[str, str] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    encoding: str | None = None
    origin: str | None = None

    @property
    def spec(self) -> ModelSpec:
        """The model."""
        return ModelSpec.from_dict(self.model)

    def with_model_of(self, generation: "ShardedGeneration | None") -> "Sharding":
        """Return this with the model that a generation has."""
        return replace(self, model=generation.model) if generation and generation.model else self

    def shard_of(self, key: str) -> int:
        """Return the number of the shard that a document with this key belongs to."""
        salt = self.seed.to_bytes(8, "little")
        hashed = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt).digest()
        return int.from_bytes(hashed, "little") % self.shards

    def number(self, place: int, shard: int) -> int:
        """Return the number of a document from its place among all that were ever read, 0 for the first.

        Numbers therefore have the order of one collection's. They tell the shard, too: see `Numbers`.
        """
        return (place + 1) * self.shards + shard

    def place(self, number: int) -> int:
        """Return the place of a document from its number."""
        return number // self.shards - 1

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return sealed({"format": FORMAT, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> "Sharding | None":
        """Return what a folder's file says, None if there is no such file.

        Raises:
            SondeError: It is damaged, or written by a newer Sonde.
        """
        content = LocalTruth(folder).read(COLLECTION)
        if content is None:
            return None
        names = ("shards", "seed", "model", "language", "id_column")
        defaults = {"types": {}, "forms": {}, "encoding": None, "origin": None}
        stored = _loaded(content, folder / COLLECTION, names, defaults=defaults)
        try:
            if not _is_whole(stored["shards"], 1, MOST_SHARDS) or not _is_whole(stored["seed"], 0, 2**64 - 1):
                raise ValueError(f"it has {stored['shards']} shards and the seed {stored['seed']}")
            texts = [stored[name] for name in ("language", "id_column", "encoding", "origin")]
            if not all(isinstance(text, str | None) for text in texts):
                raise TypeError("its language, id_column, encoding or origin is not a name")
            if not is_types(stored["types"]) or not is_types(stored["forms"]):
                raise TypeError("its types are no types of fields")
            ModelSpec.from_dict(stored["model"])
        except (TypeError, ValueError, KeyError, AttributeError, SondeError) as error:
            raise _damaged(folder / COLLECTION, error) from None
        return cls(**stored)


@dataclass(frozen=True, slots=True)
class Published:
    """A folder that never changes: a version of a shard, or of the runs' catalog.

    Attributes:
        version: Its name in `shards/NN` or `runs`.
        sha256: Of its `shard.json`, which has the digests of all its files.
    """

    version: str
    sha256: str

    def __post_init__(self) -> None:
        # The name becomes a path: one from a stranger must not lead out of the collection.
        if not VERSION.fullmatch(self.version) or not isinstance(self.sha256, str):
            raise ValueError(f"a version is named {self.version!r}")


@dataclass(frozen=True, slots=True)
class ShardState(Published):
    """One shard in one generation.

    Attributes:
        documents: How many it has.
        passages: Live ones.
        tombstones: Passages of deleted documents.
    """

    documents: int
    passages: int
    tombstones: int

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        counts = (self.documents, self.passages, self.tombstones)
        if not all(_is_whole(each, 0, MOST_READ) for each in counts):
            raise ValueError(f"a shard has {counts} documents, passages and tombstones")


@dataclass(frozen=True, slots=True)
class ShardedGeneration:
    """One commit for all shards: `generations/NNNNNN.json`.

    Attributes:
        number: 1 for the first.
        shards: The state of each shard by its number; None for one without documents.
        fields: Types of the metadata fields by name, in the order in which they were first seen.
        read: How many documents have been read in all index runs: the next run's documents are numbered from here.
        indexed: Number of the newest generation up to this one that changed documents, not only runs.
        runs: The catalog of runs and of search settings; None if there are none.
        model: The model of all embeddings, as in `Sharding`; None for that of `collection.json`.
    """

    number: int
    shards: tuple[ShardState | None, ...]
    fields: dict[str, str]
    read: int
    indexed: int
    runs: Published | None = None
    model: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"generations/{self.number:06d}.json"

    @property
    def folders(self) -> dict[str, Published]:
        """What it consists of, by the folder of its versions: "shards/03" and so on, and "runs"."""
        found: dict[str, Published] = {f"shards/{n:02d}": state for n, state in enumerate(self.shards) if state}
        return found | ({RUNS: self.runs} if self.runs else {})

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        content = {"format": FORMAT_WITH_MODEL if self.model else FORMAT, **asdict(self)}
        if self.model is None:
            del content["model"]
        return sealed(content)

    @classmethod
    def load(cls, truth: Truth, folder: Path, name: str) -> Self:
        """Read the generation in a file.

        Raises:
            SondeError: It is missing or damaged.
        """
        names = tuple(each for each in cls.__slots__ if each != "model")
        stored = _loaded(truth.read(name) or b"", folder / name, names, "model")
        try:
            shards = tuple(None if shard is None else ShardState(**shard) for shard in stored["shards"])
            runs = None if stored["runs"] is None else Published(**stored["runs"])
            if stored["model"] is not None:
                ModelSpec.from_dict(stored["model"])
            number, last = stored["number"], int(Path(name).stem)
            sound = number == last and _is_whole(stored["indexed"], 0, last) and _is_whole(stored["read"], 0, MOST_READ)
            if not sound or not set(stored["fields"].values()) <= set(TYPES):
                raise ValueError("a number or the type of a field is not valid")
        except (TypeError, ValueError, KeyError, AttributeError, SondeError) as error:
            raise _damaged(folder / name, error) from None
        return cls(**stored | {"shards": shards, "runs": runs})


def shard_folder(folder: Path, shard: int) -> Path:
    """Return the folder of a shard's versions."""
    return folder / "shards" / f"{shard:02d}"


def coming_note(folder: Path) -> Path:
    """Return where a run notes which versions it makes: beside them, for as long as no generation names them."""
    return folder / "shards" / "coming"


def work_folder(folder: Path) -> Path:
    """Return where a run keeps what it has not published."""
    return folder / "work"


def _loaded(
    content: bytes, path: Path, names: tuple[str, ...], added: str = "", defaults: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """Return the values of these names, and that of `added`, which only files of the newer format have.

    `defaults` are those of names that older files of the same format do not have.
    """
    try:
        stored = parsed(content)
        newer = bool(added) and stored["format"] == FORMAT_WITH_MODEL
        if stored["format"] != FORMAT and not newer:
            advice = "index the sources into a new folder" if stored["format"] == 1 else "update Sonde"
            said = f"{path} has format {stored['format']!r}, and this Sonde reads {FORMAT}: {advice}"
            raise SondeError(said)
        stored = unsealed(content)
        known = {name: stored[name] for name in names} | {name: stored.get(name, defaults[name]) for name in defaults}
        return known | {added: stored[added] if newer else None} if added else known
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, error) from None


def _is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _damaged(path: Path, error: Exception) -> SondeError:
    reason = f"{type(error).__name__}: {error}"
    return SondeError(f"{path} is damaged ({reason}): restore the collection from a backup", code="damaged")


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
        if rest and hashlib.sha256(content[: len(content) - len(rest)]).digest() != rest:  # an earlier Sonde wrote none
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
    write_durably(path, lambda stream: stream.write(content + hashlib.sha256(content).digest()))


def _array(content: bytes) -> tuple[np.ndarray, bytes]:
    """Return the array in a file, and what follows it."""
    stream = io.BytesIO(content)
    with reading_array():
        found = np.load(stream, allow_pickle=False)
    return found, stream.read()

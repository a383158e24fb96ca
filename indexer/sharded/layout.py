"""What a sharded collection's own files say: `collection.json` and one file for each generation."""

import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from ..encoder import ModelSpec
from ..errors import SondeError
from ..store.fields import TYPES
from . import COLLECTION
from .truth import LocalTruth, Truth

FORMAT = 2
FORMAT_WITH_MODEL = 3
"""Of a generation with another model than `collection.json`, so that an older Sonde does not read it."""
MOST_SHARDS = 1_000
KEPT = 2
"""Generations whose versions are kept: a reader may have opened the one before the newest."""
REMEMBERED = 100
"""Generations whose files are kept, so that a run that began long ago still finds its number taken."""
RUNS = "runs"
"""The folder of the versions of the runs' catalog."""
_VERSION = re.compile(r"\d{6}-[0-9a-z]{1,40}")
_GENERATION = re.compile(r"generations/(\d{6})\.json")


@dataclass(frozen=True, slots=True)
class Sharding:
    """What never changes: `collection.json`.

    Attributes:
        shards: How many there are.
        seed: Part of the hash that sends a document to its shard.
        model: The model's settings and fingerprint, as `ModelSpec.to_dict` gives them. The file has the first model;
            a generation may have another one, see `with_model_of`.
        language: Language of documents that name none, or None.
        id_column: The column of the ids, which later runs use too; None if it has the name of one.
    """

    shards: int
    seed: int
    model: dict[str, Any]
    language: str | None
    id_column: str | None = None

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

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode()

    @classmethod
    def read(cls, folder: Path) -> "Sharding | None":
        """Return what a folder's file says, None if there is no such file.

        Raises:
            SondeError: It is damaged, or written by a newer Sonde.
        """
        content = LocalTruth(folder).read(COLLECTION)
        if content is None:
            return None
        stored = _loaded(content, folder / COLLECTION, ("shards", "seed", "model", "language", "id_column"))
        try:
            if not 1 <= stored["shards"] <= MOST_SHARDS or not 0 <= stored["seed"] < 2**64:
                raise ValueError(f"it has {stored['shards']} shards and the seed {stored['seed']}")
            if not isinstance(stored["id_column"], str | None):
                raise TypeError("id_column is not a name")
            ModelSpec.from_dict(stored["model"])
        except (TypeError, ValueError, KeyError, AttributeError) as error:
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
        if not _VERSION.fullmatch(self.version):
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
        return json.dumps(content, indent=1).encode()

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
            numbers = (stored["number"], stored["read"], stored["indexed"])
            if not all(isinstance(each, int) for each in numbers) or not set(stored["fields"].values()) <= set(TYPES):
                raise ValueError("a number or the type of a field is not valid")
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise _damaged(folder / name, error) from None
        return cls(**stored | {"shards": shards, "runs": runs})


def current_sharding(folder: Path) -> Sharding | None:
    """Return what a folder's `collection.json` says, with the model of the newest generation; None if there is none.

    Raises:
        SondeError: A file is damaged, or written by a newer Sonde.
    """
    known = Sharding.read(folder)
    return known and known.with_model_of(newest_generation(LocalTruth(folder), folder))


def newest_generation(truth: Truth, folder: Path) -> ShardedGeneration | None:
    """Return the newest generation, None before the first.

    Raises:
        SondeError: Its file is damaged.
    """
    names = [name for name in truth.names("generations") if _GENERATION.fullmatch(name)]
    return ShardedGeneration.load(truth, folder, names[-1]) if names else None


def generation_number(folder: Path) -> int:
    """Return the number of the newest generation, 0 before the first."""
    found = [_GENERATION.fullmatch(name) for name in LocalTruth(folder).names("generations")]
    return max((int(match[1]) for match in found if match), default=0)


def remove_old_versions(folder: Path, *places: str) -> None:
    """Remove versions that none of the newest generations names, and files of generations long past.

    Args:
        folder: The collection.
        places: Patterns of folders of versions; those of all shards and of the runs if none is given.
    """
    truth = LocalTruth(folder)
    names = truth.names("generations")
    for name in names[:-REMEMBERED]:
        (folder / name).unlink(missing_ok=True)
    generations = [ShardedGeneration.load(truth, folder, name) for name in names[-KEPT:]]
    kept = {folder / name / state.version for each in generations for name, state in each.folders.items()}
    for place in places or ("shards/*", RUNS):
        for path in folder.glob(f"{place}/*"):
            if path not in kept and _VERSION.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)


def shard_folder(folder: Path, shard: int) -> Path:
    """Return the folder of a shard's versions."""
    return folder / "shards" / f"{shard:02d}"


def work_folder(folder: Path) -> Path:
    """Return where a run keeps what it has not published."""
    return folder / "work"


def _loaded(content: bytes, path: Path, names: tuple[str, ...], added: str = "") -> dict[str, Any]:
    """Return the values of these names, and that of `added`, which only files of the newer format have."""
    try:
        stored = json.loads(content)
        newer = bool(added) and stored["format"] == FORMAT_WITH_MODEL
        if stored["format"] != FORMAT and not newer:
            advice = "index the sources into a new folder" if stored["format"] == 1 else "update Sonde"
            said = f"{path} has format {stored['format']!r}, and this Sonde reads {FORMAT}: {advice}"
            raise SondeError(said)
        known = {name: stored[name] for name in names}
        return known | {added: stored[added] if newer else None} if added else known
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> SondeError:
    return SondeError(f"{path} is damaged ({type(error).__name__}: {error}): restore the collection from a backup")

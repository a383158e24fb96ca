"""The models of a collection: the current one, earlier ones, and others whose embeddings are kept.

The embeddings of another model are a collection of their own in `models/FINGERPRINT`, with the same documents, without
their metadata. They belong to the previous model, for `sonde model --undo`, or to one that was not switched to.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..encoder import ModelSpec
from ..errors import SondeError
from .catalog import Catalog
from .disk import MODELS, own_bytes
from .schema import FINGERPRINT

PREVIOUS = "previous_model"
"""Property of the catalog: the fingerprint of the model to which `--undo` goes back; none where there is none."""
HISTORY = "model_history"
"""Property of the catalog: which model the collection had from which generation on; none if it never had another."""


def models_folder(folder: Path) -> Path:
    """Return where the embeddings of other models lie."""
    return folder / MODELS


def model_folder(folder: Path, fingerprint: str) -> Path:
    """Return where the embeddings of the model of this fingerprint lie."""
    return models_folder(folder) / fingerprint


@dataclass(frozen=True, slots=True)
class Past:
    """A model that a collection had from a generation on."""

    since: int
    name: str
    fingerprint: str


class History:
    """Which model a collection had in each generation."""

    def __init__(self, catalog: Catalog) -> None:
        stored = catalog.get("model")
        self._now = ModelSpec.from_dict(stored) if stored else None
        self._past = [Past(**each) for each in catalog.get(HISTORY, [])]

    def at(self, generation: int) -> Past | None:
        """Return the model of a generation; None for a collection without a model."""
        earlier = [each for each in self._past if each.since <= generation]
        if earlier:
            return earlier[-1]
        return Past(0, self._now.name, self._now.fingerprint) if self._now else None

    @property
    def fingerprint(self) -> str:
        """That of the model that the collection has now; "" for none."""
        return self._now.fingerprint if self._now else ""

    def extended(self, spec: ModelSpec, generation: int) -> list[dict[str, Any]]:
        """Return the property after the collection got the model `spec` with this generation."""
        first = [] if self._past or self._now is None else [Past(0, self._now.name, self._now.fingerprint)]
        return [asdict(each) for each in (*self._past, *first, Past(generation, spec.name, spec.fingerprint))]


@dataclass(frozen=True, slots=True)
class OtherModel:
    """Embeddings of another model, kept in the folder of a collection.

    Attributes:
        folder: Where they lie: a collection of their own.
        spec: The model.
        documents: How many documents are embedded.
        passages: How many passages they have.
        bytes: On disk, texts included; what an earlier generation of a sharded collection has too is not counted.
        previous: Whether they belong to the previous model; otherwise the model was not switched to.
    """

    folder: Path
    spec: ModelSpec
    documents: int
    passages: int
    bytes: int
    previous: bool

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        return {
            "model": self.spec.name, "dimension": self.spec.dimension, "dtype": self.spec.dtype,
            "documents": self.documents, "passages": self.passages, "bytes": self.bytes, "previous": self.previous,
        }  # fmt: skip


def other_models(folder: Path, catalog: Catalog) -> list[OtherModel]:
    """Return the other models whose embeddings a collection keeps, by fingerprint."""
    previous, now = catalog.get(PREVIOUS), History(catalog).fingerprint
    return [
        other for path in _folders(folder) if path.name != now and (other := _read(path, folder, path.name == previous))
    ]


def _folders(folder: Path) -> Iterator[Path]:
    found = models_folder(folder)
    yield from (path for path in sorted(found.glob("*")) if path.is_dir() and FINGERPRINT.fullmatch(path.name))


def _read(path: Path, folder: Path, previous: bool) -> OtherModel | None:
    """Return what is kept in a folder: one collection, or one for each shard."""
    parts = [found for each in (path, *path.glob("shards/*/*")) if (found := _counted(each))]
    if not parts:
        return None
    documents, passages = sum(each[1] for each in parts), sum(each[2] for each in parts)
    return OtherModel(path, ModelSpec.from_dict(parts[0][0]), documents, passages, own_bytes(path, folder), previous)


def _counted(path: Path) -> tuple[dict[str, Any], int, int] | None:
    """Return the model, the documents and the passages of a collection; None before its first commit."""
    if not (path / "catalog.db").is_file():
        return None
    try:
        with closing(Catalog.open(path / "catalog.db")) as catalog:
            stored = catalog.get("model")
            return None if stored is None else (stored, *catalog.counts()[:2])
    except SondeError:  # killed before its first commit: the same command makes it again
        return None


def is_leftover(path: Path, catalog: Catalog) -> bool:
    """Return whether a folder of another model is left over: it has the model that the collection itself has."""
    return path.name == History(catalog).fingerprint

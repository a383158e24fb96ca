"""What a collection holds, measured and counted."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .collection import Collection


@dataclass(frozen=True, slots=True)
class Info:
    """A collection in numbers; sizes are bytes on disk.

    `ann` describes the FAISS index (kind, recall, latency_ms and so on), None where vectors are scanned exactly.
    `search_defaults` holds what `sonde tune` stored, None where Sonde's own settings hold.
    `newer` counts passages that the index does not hold yet: they are searched exactly.
    """

    path: str
    documents: int
    passages: int
    tombstones: int
    newer: int
    model: str
    model_settings: dict[str, Any]
    dimension: int
    language: str | None
    ann: dict[str, Any] | None
    lexical: int | None
    fields: dict[str, str]
    bytes: dict[str, int]
    generation: int
    search_defaults: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        return asdict(self)


def info(collection: Collection) -> Info:
    """Return what the collection holds."""
    with collection.view() as view:
        documents, passages, tombstones = view.catalog.counts()
        generation = view.generation
        spec = collection.spec
        return Info(
            path=str(collection.path),
            documents=documents,
            passages=passages,
            tombstones=tombstones,
            newer=len(generation.owners) - generation.ann.info.rows if generation.ann else 0,
            model=spec.name,
            model_settings=spec.to_dict(),
            dimension=spec.dimension,
            language=view.catalog.get("language"),
            ann=generation.ann.info.to_dict() if generation.ann else None,
            lexical=generation.lexical.rows if generation.lexical else None,
            fields={field.name: field.type for field in view.fields.values()},
            bytes=_sizes(collection.path),
            generation=generation.number,
            search_defaults=view.catalog.get("search_defaults"),
        )


def _sizes(folder: Path) -> dict[str, int]:
    parts = {"catalog": folder.glob("catalog.db*")}
    parts |= {name: (folder / name).rglob("*") for name in ("vectors", "ann", "lexical")}
    return {name: sum(path.stat().st_size for path in paths if path.is_file()) for name, paths in parts.items()}

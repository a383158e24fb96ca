"""What a collection's searches do where nothing else is asked for: settings that `sonde tune` found for it."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from ..indexer.catalog import Catalog
from ..indexer.collection import Collection
from ..indexer.lock import writer_lock

PROPERTY = "search_defaults"


@dataclass(frozen=True, slots=True)
class SearchDefaults:
    """Stored settings of a search; None where Sonde's own default holds.

    Attributes:
        weight: Share of the dense half in the convex fusion, 0 to 1.
        depth: Passages that the dense half hands to the fusion.
        breadth: efSearch or nprobe of the approximate index, while the index is of the kind it was tuned on.
        rerank_depth: Documents that the second stage reads.
        rerank_weight: Share of the second stage's score, 0 to 1.
        threshold: Cosine below which `sonde ask` has no answer.
        found: How they were found: queries, gains, date.
    """

    weight: float | None = None
    depth: int | None = None
    breadth: int | None = None
    rerank_depth: int | None = None
    rerank_weight: float | None = None
    threshold: float | None = None
    found: dict[str, Any] | None = None

    @classmethod
    def of(cls, stored: dict[str, Any] | None) -> Self:
        """Return what was stored; what a newer version stored beside it is passed over."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in (stored or {}).items() if name in names})

    @property
    def empty(self) -> bool:
        """Whether nothing differs from Sonde's own defaults."""
        return not self.chosen

    @property
    def chosen(self) -> dict[str, float]:
        """The settings that are stored, by name."""
        return {name: value for name, value in asdict(self).items() if name != "found" and value is not None}

    def __str__(self) -> str:
        """In words: "weight 0.3, depth 100"."""
        return ", ".join(f"{name} {value:g}" for name, value in self.chosen.items()) or "Sonde's own"


def stored_defaults(collection: Collection) -> SearchDefaults:
    """Return a collection's stored settings."""
    return SearchDefaults.of(collection.get(PROPERTY))


def store_defaults(collection: Collection, defaults: SearchDefaults) -> None:
    """Store settings; every search of the collection that begins later has them, whoever has it open.

    Raises:
        SondeError: Another process is writing the collection, or it cannot be written.
    """
    with writer_lock(collection.path):
        catalog = Catalog.open(collection.catalog_path, write=True)
        try:
            with catalog.transaction(write=True):
                if defaults.empty:
                    catalog.connection.execute("DELETE FROM properties WHERE name = ?", (PROPERTY,))
                else:
                    catalog.set(PROPERTY, asdict(defaults))
        finally:
            catalog.close()

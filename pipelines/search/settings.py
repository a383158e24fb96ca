"""How to search: settings of one search, and a collection's own defaults, which `sonde tune` stores."""

from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import Any, Literal, Self

from ...indexer.errors import UsageError, arg, is_finite, out_of_range
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.lock import writer_lock
from ...indexer.store.view import View
from .fusion import WEIGHT
from .rerank.models import check_reranker_name
from .rerank.stage import DEPTH as RERANK_DEPTH
from .rerank.stage import parse_budget
from .results import Mode

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


def stored_defaults(collection: StoredCollection) -> SearchDefaults:
    """Return a collection's stored settings."""
    return SearchDefaults.of(collection.get(PROPERTY))


def store_defaults(collection: StoredCollection, defaults: SearchDefaults) -> None:
    """Store settings; every search of the collection that begins later has them, whoever has it open.

    Raises:
        SondeError: Another process is writing the collection, or it cannot be written.
    """
    with writer_lock(collection.path):
        catalog = Catalog.open(collection.catalog_path, write=True)
        try:
            with catalog.transaction(write=True):
                if defaults.empty:
                    catalog.remove(PROPERTY)
                else:
                    catalog.set(PROPERTY, asdict(defaults))
        finally:
            catalog.close()


MODES: tuple[Mode, ...] = ("hybrid", "dense", "lexical")
Fusion = Literal["convex", "rrf"]
FUSIONS: tuple[Fusion, ...] = ("convex", "rrf")
DEPTH = 50
"""Passages that the dense half of a hybrid search hands to the fusion, at least."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How to search.

    Attributes:
        k: Documents to return, 1 or more.
        offset: Documents to leave out at the top, for paging.
        mode: "hybrid", "dense" or "lexical".
        where: A filter on metadata, as the condition of an SQL WHERE.
        threshold: Keep only hits at least this similar: the cosine for dense and hybrid, BM25 for lexical.
        fusion: How hybrid joins both lists: "convex" (a convex combination of both scores) or "rrf".
        weight: Share of the dense half in the fusion, 0 to 1. Here and below, None takes what `sonde tune` stored in
            the collection, and Sonde's own default where it stored nothing.
        depth: Passages that the dense half of hybrid hands to the fusion at first, then four times as many and so on
            until there are 4 for every hit; the lexical half hands twice as many.
        breadth: efSearch or nprobe of an approximate index; None takes what the index was tuned to.
        explain: Also say why each hit matched.
        rerank: Let a second stage read the best documents again and reorder them.
        rerank_model: "late" (the bi-encoder's own token vectors), or the folder or the hub's "org/name" of a
            cross-encoder or a multi-vector model; None takes the default, which needs no network.
        rerank_depth: Documents that the second stage reads, the best ones of the first stage.
        rerank_weight: Share of the second stage's score in the fusion with the first's, 0 to 1; None: the model's.
        rerank_budget: Time for the second stage, for each query: "300ms", "2s". It then reads as many as that allows.
    """

    k: int = 10
    offset: int = 0
    mode: Mode = "hybrid"
    where: str | None = None
    threshold: float | None = None
    fusion: Fusion = "convex"
    weight: float | None = None
    depth: int | None = None
    breadth: int | None = None
    explain: bool = False
    rerank: bool = False
    rerank_model: str | None = None
    rerank_depth: int | None = None
    rerank_weight: float | None = None
    rerank_budget: str | None = None

    def resolved(self, view: View) -> "SearchSettings":
        """Return the same settings, with what was left open as the collection has it, or as Sonde does."""
        own = SearchDefaults.of(view.catalog.get(PROPERTY))
        weight = own.weight if self.fusion == "convex" else None
        return replace(
            self,
            weight=_first(self.weight, weight, WEIGHT),
            depth=_first(self.depth, own.depth, DEPTH),
            breadth=_first(self.breadth, own.breadth),
            rerank_depth=_first(self.rerank_depth, own.rerank_depth, RERANK_DEPTH),
            rerank_weight=_first(self.rerank_weight, own.rerank_weight),
        )

    def check(self) -> None:
        """Raise UsageError, naming the value, where a setting cannot be."""
        if not isinstance(self.k, Integral) or self.k < 1:
            raise out_of_range("k", self.k, "ask for at least 1 hit")
        if self.threshold is not None and not is_finite(self.threshold):
            raise out_of_range("threshold", self.threshold, "give a number")
        if self.depth is not None and self.depth < 1:
            raise out_of_range("depth", self.depth, "hand at least 1 passage to the fusion")
        if self.offset < 0:
            raise out_of_range("offset", self.offset, "it counts hits to leave out, 0 or more")
        if self.mode not in MODES:
            said = f"there is no mode {self.mode!r}: use {', '.join(MODES)}"
            raise UsageError(said, code="unknown-option", field="mode", value=self.mode, alternatives=MODES)
        if self.fusion not in FUSIONS:
            said = f"there is no fusion {self.fusion!r}: use {' or '.join(FUSIONS)}"
            raise UsageError(said, code="unknown-option", field="fusion", value=self.fusion, alternatives=FUSIONS)
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise out_of_range("weight", self.weight, "it is a share, 0 to 1")
        if self.breadth is not None and self.breadth < 1:
            raise out_of_range("breadth", self.breadth, "efSearch and nprobe are at least 1")
        if self.rerank_weight is not None and not 0 <= self.rerank_weight <= 1:
            raise out_of_range("rerank_weight", self.rerank_weight, "it is a share, 0 to 1")
        if self.rerank_depth is not None and self.rerank_depth < 1:
            raise out_of_range("rerank_depth", self.rerank_depth, "let the second stage read at least 1 document")
        if self.rerank_budget is not None:
            parse_budget(self.rerank_budget)
        if self.rerank:
            check_reranker_name(self.rerank_model)
        elif self.rerank_model is not None or self.rerank_budget is not None:
            said = f"{arg('rerank_model')} and {arg('rerank_budget')} need {arg('rerank')}: set it to True"
            raise UsageError(said, code="conflict", field="rerank")


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)

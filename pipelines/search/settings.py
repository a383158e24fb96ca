"""Search settings: those of one search, and a collection's own defaults, which `sonde tune` stores."""

from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import Any, Self

from ...indexer.encoder import ModelSpec
from ...indexer.errors import SondeError, UsageError, arg, did_you_mean, is_finite, out_of_range
from ...indexer.store.collection import StoredCollection
from ...indexer.store.view import View
from .relevance import Calibration
from .rerank.models import check_reranker_name
from .rerank.stage import CHOICE, parse_budget
from .rerank.stage import DEPTH as RERANK_DEPTH
from .weighting import FUSIONS, MODES, Fusion, Mode

PROPERTY = "search_defaults"
MODEL_CHANGED = "nothing was stored: the collection's model was changed meanwhile; tune again"


@dataclass(frozen=True, slots=True)
class SearchDefaults:
    """Stored settings of a search; None if Sonde's own default applies.

    Attributes:
        weight: Share of the dense half in the convex fusion, 0 to 1.
        depth: Number of passages that the dense half passes to the fusion.
        breadth: efSearch or nprobe of the approximate index; it applies only to the kind of index that was tuned.
        rerank_depth: Number of documents that the second stage reads.
        rerank_weight: Share of the second stage's score, 0 to 1.
        threshold: Cosine below which `sonde ask` returns no answer, and a hit is weak.
        slope: How fast the log odds of an answer rise with the cosine, on the user's own questions.
        middle: The cosine at which the chance of an answer is one half, on the same questions.
        found: How the settings were found: queries, gains, date.
    """

    weight: float | None = None
    depth: int | None = None
    breadth: int | None = None
    rerank_depth: int | None = None
    rerank_weight: float | None = None
    threshold: float | None = None
    slope: float | None = None
    middle: float | None = None
    found: dict[str, Any] | None = None

    @classmethod
    def of(cls, stored: dict[str, Any] | None) -> Self:
        """Return the stored settings; unknown settings from a newer version are ignored."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in (stored or {}).items() if name in names})

    @classmethod
    def in_force(cls, view: View) -> Self:
        """Return the settings that a view's collection stores."""
        return cls.of(view.catalog.get(PROPERTY))

    @property
    def calibration(self) -> Calibration | None:
        """How similarities become chances here, if `sonde tune threshold` has stored it."""
        if self.threshold is None or self.slope is None or self.middle is None:
            return None
        return Calibration(self.slope, self.middle, self.threshold)

    @property
    def empty(self) -> bool:
        """Whether all settings are Sonde's own defaults."""
        return not self.chosen

    @property
    def chosen(self) -> dict[str, float]:
        """The stored settings by name."""
        return {name: value for name, value in asdict(self).items() if name != "found" and value is not None}

    def __str__(self) -> str:
        """The settings as text, such as "weight 0.3, depth 100"."""
        return ", ".join(f"{name} {value:g}" for name, value in self.chosen.items()) or "Sonde's own"


def stored_defaults(collection: StoredCollection) -> SearchDefaults:
    """Return a collection's stored settings."""
    return SearchDefaults.of(collection.get(PROPERTY))


def store_defaults(collection: StoredCollection, defaults: SearchDefaults, found_with: ModelSpec | None = None) -> None:
    """Store settings; they apply to every later search of the collection, in every process.

    Args:
        collection: The collection.
        defaults: The settings.
        found_with: The model with which they were found; None if they apply to every model.

    Raises:
        SondeError: Another process is writing to the collection, it cannot be written, or it now has another model.
    """
    with collection.writing() as catalog:
        if found_with is not None and catalog.get("model") != found_with.to_dict():
            raise SondeError(MODEL_CHANGED)
        if defaults.empty:
            catalog.remove(PROPERTY)
        else:
            catalog.set(PROPERTY, asdict(defaults))


DEPTH = 50
"""Minimum number of passages that the dense half of a hybrid search passes to the fusion."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of a search.

    Attributes:
        k: Number of documents to return, 1 or more.
        offset: Number of top documents to skip, for paging.
        mode: "hybrid", "dense" or "lexical".
        where: A filter on metadata, like the condition of an SQL WHERE.
        threshold: Keep only hits at least this similar: the cosine for dense and hybrid, BM25 for lexical.
        fusion: How hybrid joins both lists: "convex" (a convex combination of both scores) or "rrf".
        weight: Share of the dense half in the fusion, 0 to 1. Here and below, None uses the value that `sonde tune`
            stored in the collection, or Sonde's own default if none is stored. The default weight is chosen for each
            query.
        depth: Number of passages that the dense half of hybrid passes to the fusion at first. The number grows
            fourfold until there are 4 for each hit. The lexical half passes twice as many.
        breadth: efSearch or nprobe of an approximate index; None uses the value to which the index was tuned.
        explain: Whether to explain why each hit matched.
        collapse: Whether documents with the same or nearly the same text become one hit: the best of them.
        rerank: Rerank the best documents with a second stage.
        rerank_model: "late" (the bi-encoder's own token vectors), or the folder or hub name "org/name" of a
            cross-encoder or a multi-vector model; None uses the default, which needs no network.
        rerank_depth: Number of documents that the second stage reads; of the best 200 or more of the first stage.
        rerank_weight: Share of the second stage's score in the fusion with the first stage's, 0 to 1; None uses the
            model's own value.
        rerank_budget: Time limit of the second stage for each query: "300ms", "2s". It reads as many documents as the
            limit allows.
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
    collapse: bool = True
    rerank: bool = False
    rerank_model: str | None = None
    rerank_depth: int | None = None
    rerank_weight: float | None = None
    rerank_budget: str | None = None

    def resolved(self, own: SearchDefaults) -> "SearchSettings":
        """Return the settings with every None replaced by the collection's stored value or Sonde's default."""
        weight = own.weight if self.fusion == "convex" else None
        return replace(
            self,
            weight=_first(self.weight, weight),
            depth=_first(self.depth, own.depth, DEPTH),
            breadth=_first(self.breadth, own.breadth),
            rerank_depth=_first(self.rerank_depth, own.rerank_depth, RERANK_DEPTH),
            rerank_weight=_first(self.rerank_weight, own.rerank_weight),
        )

    @property
    def reranked(self) -> int:
        """How many documents the second stage reads."""
        return RERANK_DEPTH if self.rerank_depth is None else self.rerank_depth

    @property
    def considered(self) -> int:
        """How many documents of the first stage the second stage chooses from."""
        return max(self.reranked, CHOICE)

    def tuned(self, own: SearchDefaults) -> dict[str, float]:
        """Return the settings that `sonde tune` stored in the collection and that this search uses, by name."""
        stages = ["breadth"] if self.mode != "lexical" else []
        stages += ["depth"] if self.mode == "hybrid" else []
        stages += ["weight"] if self.mode == "hybrid" and self.fusion == "convex" else []
        stages += ["rerank_depth", "rerank_weight"] if self.rerank else []
        used = {name for name in stages if getattr(self, name) is None} | {"threshold"}
        return {name: value for name, value in own.chosen.items() if name in used}

    def check(self) -> None:
        """Raise UsageError with the value if a setting is not valid."""
        if not isinstance(self.k, Integral) or self.k < 1:
            raise out_of_range("k", self.k, "ask for at least 1 hit")
        if self.threshold is not None and not is_finite(self.threshold):
            raise out_of_range("threshold", self.threshold, "give a number")
        if self.depth is not None and self.depth < 1:
            raise out_of_range("depth", self.depth, "hand at least 1 passage to the fusion")
        if self.offset < 0:
            raise out_of_range("offset", self.offset, "it counts hits to leave out, 0 or more")
        if self.mode not in MODES:
            said = f"there is no mode {self.mode!r}{did_you_mean(self.mode, MODES)}: use {', '.join(MODES)}"
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
            said = f"{arg('rerank_model')} and {arg('rerank_budget')} need {arg('rerank')}: use it too"
            raise UsageError(said, code="conflict", field="rerank")


def check_page(k: int, offset: int) -> None:
    """Raise UsageError unless k is 1 or more and the offset 0 or more."""
    if k < 1 or offset < 0:
        said = f"{arg('k')} is {k} and {arg('offset')} {offset}: give 1 or more hits, and skip 0 or more"
        raise UsageError(said, code="out-of-range", field="k" if k < 1 else "offset", value=k if k < 1 else offset)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)

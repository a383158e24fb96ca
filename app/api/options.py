"""The options of methods, so that editors complete them and type checkers check them.

Each dictionary has the fields of the settings class of the same name, without the arguments that a method names itself.
The settings classes describe the fields; a test compares both.
"""

from collections.abc import Sequence
from typing import Literal, TypedDict

from ...indexer.ann.settings import AnnSettings
from ...pipelines.search.weighting import Fusion, Mode


class BuildOptions(TypedDict, total=False):
    """Options of `sonde.index` and `sonde.estimate`: see `sonde.BuildSettings`."""

    model: str | None
    device: str
    dtype: str | None
    truncate_dim: int | None
    query_prompt: str | None
    document_prompt: str | None
    normalize: bool | None
    max_tokens: int | None
    language: str | None
    sync: bool
    delete_most: bool
    batch: int | None
    ann: AnnSettings
    late: bool
    wait: float
    keep: str | None
    rebuild: bool


class SearchOptions(TypedDict, total=False):
    """Options of searches: see `sonde.SearchSettings`."""

    offset: int
    mode: Mode
    where: str | None
    threshold: float | None
    fusion: Fusion
    weight: float | None
    depth: int | None
    breadth: int | None
    explain: bool
    collapse: bool
    rerank: bool
    rerank_model: str | None
    rerank_depth: int | None
    rerank_weight: float | None
    rerank_budget: str | None


class EvaluateOptions(SearchOptions, total=False):
    """Options of `Collection.evaluate_search`: those of a search and its number of hits."""

    k: int


class AskOptions(TypedDict, total=False):
    """Options of `Collection.ask`: see `sonde.AskSettings`."""

    field: str | None
    mode: str


class ClusterOptions(TypedDict, total=False):
    """Options of `Collection.cluster`: see `sonde.ClusterSettings`."""

    method: Literal["kmeans", "density"]
    k: int | Literal["auto"]
    seed: int
    restarts: int
    min_size: int | None
    outliers: Literal["keep", "nearest", "recluster"]
    neighbours: int
    dimensions: int
    sample: int
    refits: int | None
    where: str | None
    names: Literal["auto", "terms", "model"]
    labels: Sequence[str]
    engine: str
    namer: str | None
    namer_model: str | None
    namer_show: bool


class TopicOptions(TypedDict, total=False):
    """Options of `Collection.topics`: see `sonde.TopicSettings`."""

    seed: int
    min_size: int | None
    reduce_to: int | None
    seed_words: Sequence[str | Sequence[str]]
    outliers: Literal["keep", "nearest"]
    neighbours: int
    dimensions: int
    sample: int
    names: Literal["auto", "terms", "model"]
    labels: Sequence[str]
    engine: str
    method: Literal["auto", "levels", "dense"]
    level: Literal["suggested", "coarse", "middle", "fine"]
    namer: str | None
    namer_model: str | None
    namer_show: bool
    about: int | None


class MapOptions(TypedDict, total=False):
    """Options of `Collection.map`: see `sonde.MapSettings`."""

    seed: int
    neighbours: int
    spread_out: float
    sample: int


class DuplicateOptions(TypedDict, total=False):
    """Options of `Collection.duplicates`: see `sonde.DuplicateSettings`."""

    kinds: Sequence[Literal["exact", "near", "meaning"]]
    near: float
    meaning: float
    keep: Literal["first", "longest", "newest"]
    date: str | None
    pairs: int
    same: str | None


class CheckOptions(TypedDict, total=False):
    """Options of `Collection.check`: see `sonde.CheckSettings`."""

    label: str | None
    split: str | None
    kinds: Sequence[
        Literal[
            "label",
            "leak",
            "duplicate",
            "outlier",
            "language",
            "boilerplate",
            "short",
            "cut",
            "personal data",
            "non-answer",
        ]
    ]
    near: float
    meaning: float
    region: str | None
    seed: int


class WatchOptions(TypedDict, total=False):
    """Options of `Collection.watch`: see `sonde.WatchSettings`."""

    date: str | None
    run: str | None
    alarms: float
    seed: int


class EditOptions(TypedDict, total=False):
    """Options of `Collection.edit_taxonomy`: see `sonde.EditSettings`."""

    groups: Sequence[int | str]
    name: str | None
    description: str | None
    to: int | str | None
    level: int | None
    ids: Sequence[str]
    where: str | None
    k: int | None
    run: str | None
    examples: Sequence[str]
    near: float
    lock: bool


class LabelOptions(TypedDict, total=False):
    """Options of labelling: see `sonde.LabelSettings`."""

    engine: str | None
    model: str | None
    multi_label: bool
    threshold: float | None
    template: str | None
    shortlist: int
    budget: str | int | None
    where: str | None
    name: str
    replace: bool
    device: str
    dtype: str
    seed: int
    corrections: bool
    none: bool
    promise: float | None
    corrections_of: str | None


class TuneOptions(TypedDict, total=False):
    """Options of `Collection.tune_search`: see `TuneSettings`."""

    rerank: bool
    rerank_model: str | None
    seed: int
    keep: bool


class CompareParts(TypedDict, total=False):
    """What `Collection.compare` compares: one of `clusters`, `where`, `queries` and `runs`."""

    clusters: Sequence[int]
    where: Sequence[str]
    queries: Sequence[str]
    runs: Sequence[str]
    run: str | None
    k: int

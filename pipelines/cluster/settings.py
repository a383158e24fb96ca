"""What a clustering is asked to do."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from ...indexer.errors import UsageError, arg, out_of_range, unknown_option
from ..analysis.naming.namer import Namer
from ..analysis.umap import FITTED_ON
from .labelled import check_labels

Method = Literal["kmeans", "density"]
MOST_FITS = 1_000
"""Restarts and refits at most: more would take days without better clusters."""
METHODS: tuple[Method, ...] = get_args(Method)
Outliers = Literal["keep", "nearest", "recluster"]
OUTLIERS: tuple[Outliers, ...] = get_args(Outliers)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of one clustering.

    Attributes:
        method: "kmeans" (every document belongs to a cluster) or "density" (UMAP and HDBSCAN, which leave outliers).
        k: Clusters of KMeans, or "auto".
        seed: Of everything that chance decides.
        restarts: KMeans runs, of which the best is kept.
        min_size: Density: fewest distinct texts of a cluster; None takes it from the number of texts.
        outliers: Density: "keep" them, put each in the "nearest" cluster, or "recluster" them among themselves.
        neighbours: Density: neighbours of a text in UMAP's graph.
        dimensions: Density: to which UMAP reduces.
        sample: Density: documents that it is fitted on, at most.
        refits: Fits with other seeds, and as many on 90 % of the documents, that stability is measured by; None takes 3
            for KMeans and 1 for density, and 0 measures none.
        where: A filter on metadata and runs; only what passes is clustered.
        names: What clusters are named with beside their words: "terms" alone, the collection's "model", or "auto", the
            model if it is available.
        labels: Candidate names, "name" or "name: description": a cluster is named by the one that most of its typical
            documents get. Without candidates, clusters are named by their terms.
        engine: What chooses among the labels: "similarity" or "nli".
        namer: The address of an OpenAI-compatible endpoint that is asked for names; None asks none.
        namer_model: Its model.
        namer_show: Whether to show what the namer would get, and send nothing.
    """

    method: Method = "kmeans"
    k: int | Literal["auto"] = "auto"
    seed: int = 0
    restarts: int = 5
    min_size: int | None = None
    outliers: Outliers = "keep"
    neighbours: int = 15
    dimensions: int = 5
    sample: int = FITTED_ON
    refits: int | None = None
    where: str | None = None
    names: Literal["auto", "terms", "model"] = "auto"
    labels: tuple[str, ...] = ()
    engine: str = "similarity"
    namer: str | None = None
    namer_model: str | None = None
    namer_show: bool = False

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting is not valid; the message names the alternatives.
        """
        _one_of("method", self.method, METHODS)
        _one_of("outliers", self.outliers, OUTLIERS)
        _one_of("names", self.names, ("auto", "terms", "model"))
        check_labels(self.labels, self.engine)
        Namer.of(self.namer, self.namer_model, self.namer_show)
        if isinstance(self.k, bool) or not (self.k == "auto" or (isinstance(self.k, int) and self.k >= 1)):
            raise out_of_range("k", self.k, "give a whole number from 1, or auto")
        if self.method == "density" and self.k != "auto":
            instead = f"leave out {arg('k')}, or use {arg('method')} kmeans"
            said = f"density finds the number of clusters itself: {instead}"
            raise UsageError(said, code="conflict", field="k", value=self.k)
        if self.method == "kmeans" and (self.min_size is not None or self.outliers != "keep"):
            said = f"kmeans leaves no outliers and has no minimum size: use {arg('method')} density"
            raise UsageError(said, code="conflict", field="method", value=self.method, alternatives=("density",))
        least = {"seed": 0, "restarts": 1, "neighbours": 2, "dimensions": 2, "sample": 100}
        least |= {"min_size": 2} if self.min_size is not None else {}
        least |= {"refits": 0} if self.refits is not None else {}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise out_of_range(name, getattr(self, name), f"give a whole number from {low}")
        for name in ("restarts", "refits"):
            if (getattr(self, name) or 0) > MOST_FITS:
                raise out_of_range(name, getattr(self, name), f"give a whole number up to {MOST_FITS:,}")
        if self.seed >= 2**31:
            raise out_of_range("seed", self.seed, f"give a whole number below {2**31}")

    @property
    def stability_refits(self) -> int:
        """How many refits of each kind measure stability."""
        return self.refits if self.refits is not None else (3 if self.method == "kmeans" else 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that the method uses, as JSON values."""
        unused = {
            "kmeans": ("min_size", "outliers", "neighbours", "dimensions", "sample"),
            "density": ("k", "restarts"),
        }
        left_out = [*unused[self.method], "namer_show"]
        left_out += [] if self.labels else ["labels", "engine"]
        left_out += [] if self.namer else ["namer", "namer_model"]
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def _one_of(field: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise unknown_option(field, value, known)

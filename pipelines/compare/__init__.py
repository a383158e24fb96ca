"""What tells two parts of a collection, or two runs, apart."""

from collections.abc import Sequence

from ...indexer.collection import Collection
from ...indexer.errors import UsageError
from ..texts import Texts, as_texts
from .contrast import DEPTH, Contrast, Side, against_rest, compare_clusters, compare_filters, compare_queries
from .two_runs import Change, RunComparison, compare_runs

__all__ = [
    "Change",
    "Contrast",
    "RunComparison",
    "Side",
    "against_rest",
    "compare",
    "compare_clusters",
    "compare_filters",
    "compare_queries",
    "compare_runs",
]


def compare(
    collection: Collection,
    *,
    clusters: Sequence[int] = (),
    where: Texts = (),
    queries: Texts = (),
    runs: Texts = (),
    run: str | None = None,
    k: int = DEPTH,
) -> Contrast | RunComparison:
    """Compare two clusters (of `run`), two filters, two queries (by their k best documents) or two runs.

    Raises:
        UsageError: Not exactly two of one of these were given, or one of them holds no document.
        SondeError: There is no such run.
    """
    where, queries, runs = as_texts(where, "filter"), as_texts(queries, "query"), as_texts(runs, "run")
    given = {"clusters": as_texts(clusters, "cluster"), "filters": where, "queries": queries, "runs": runs}
    named = {name: values for name, values in given.items() if values}
    if len(named) != 1 or any(len(values) != 2 for values in named.values()):
        said = "; ".join(f"{name}: {', '.join(values)}" for name, values in named.items()) or "nothing"
        raise UsageError(f"give two clusters, two filters, two queries or two runs, and nothing else, not {said}")
    if run is not None and not clusters:
        raise UsageError("a run is named for its clusters: give two of them")
    if clusters:
        return compare_clusters(collection, clusters, run)
    if where:
        return compare_filters(collection, where)
    return compare_queries(collection, queries, k) if queries else compare_runs(collection, runs[0], runs[1])

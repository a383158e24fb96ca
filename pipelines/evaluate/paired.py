"""Two systems on the same examples: each query's measure, and the difference with its interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from ..results import Results

RESAMPLES = 2_000
Run = Mapping[str, Mapping[str, float]]
"""Query to document to score."""


@dataclass(frozen=True, slots=True)
class Gain:
    """A measure before and after, over the same examples; higher is better.

    Attributes:
        measure: Its name: "ndcg@10", "mrr@10", "spearman", "accuracy" …
        examples: How many.
        before: Of the first system.
        after: Of the second.
        low: Lower end of the 95 % interval of the difference (paired percentile bootstrap, 2,000 resamples).
        high: Upper end.
    """

    measure: str
    examples: int
    before: float
    after: float
    low: float
    high: float

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def sure(self) -> bool:
        """Whether the interval of the difference lies above 0."""
        return self.low > 0

    def __str__(self) -> str:
        """In words: "ndcg@10 0.512 to 0.634, +0.122 (95 % interval +0.101 to +0.143)"."""
        interval = f"95 % interval {self.low:+.3f} to {self.high:+.3f}"
        return f"{self.measure} {self.before:.3f} to {self.after:.3f}, {self.difference:+.3f} ({interval})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**asdict(self), "difference": self.difference, "sure": self.sure}


def gain(
    measure: str, before: np.ndarray, after: np.ndarray, *,
    statistic: Callable[[np.ndarray], float] | None = None, seed: int = 0,
) -> Gain:  # fmt: skip
    """Compare two systems by what each made of every example.

    Args:
        measure: Its name.
        before: float [n] or [n, c]: what the first system made of each example.
        after: The same of the second.
        statistic: From such an array to the measure; the mean where None.
        seed: Of the resamples.
    """
    of = statistic or (lambda values: float(values.mean()))
    chance = np.random.default_rng(seed)
    count = len(before)
    draws = chance.integers(count, size=(RESAMPLES, count))
    differences = np.array([of(after[draw]) - of(before[draw]) for draw in draws])
    low, high = np.nanquantile(differences, (0.025, 0.975))
    return Gain(measure, count, of(before), of(after), float(low), float(high))


def per_query(run: Run, truth: Run, measures: Sequence[str] = ("nDCG@10", "RR@10")) -> dict[str, np.ndarray]:
    """Return float64 [queries] for each measure, in the order of `truth`; 0 for a query without hits.

    Args:
        run: What was found.
        truth: What should have been, with grades.
        measures: In ir-measures' names; the result has "ndcg@10", "mrr@10" and so on.

    Raises:
        MissingExtraError: ir-measures is not installed.
    """
    try:
        import ir_measures
    except ImportError:
        raise MissingExtraError("ir-measures", "eval", "measuring search") from None
    places = {query: place for place, query in enumerate(truth)}
    found = {_name(measure): np.zeros(len(places)) for measure in measures}
    judged = {query: {key: int(grade) for key, grade in grades.items()} for query, grades in truth.items()}
    listed = {query: dict(scores) for query, scores in run.items()}
    for value in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in measures], judged, listed):
        found[_name(str(value.measure))][places[value.query_id]] = value.value
    return found


def run_of(found: Sequence[tuple[str, Results]]) -> dict[str, dict[str, float]]:
    """Return the hits of many queries as a run."""
    return {key: {hit.id: hit.score for hit in results} for key, results in found}


def _name(measure: str) -> str:
    name, _, cut = measure.partition("@")
    return {"RR": "mrr", "AP": "map", "R": "recall"}.get(name, name.lower()) + (f"@{cut}" if cut else "")

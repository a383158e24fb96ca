"""How good search is on judged queries: nDCG, recall, MRR and MAP, paired tests between systems, and files of them."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.errors import SondeError, UsageError, did_you_mean, need
from ...indexer.files import check_target, write_output
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.tabular import Formulas
from ...indexer.wording import counted, listed
from ..search.results import Mode, Results
from ..search.settings import MODES, SearchSettings
from .trec import Qrels, Query, note_unknown_queries, own_ids, relevant, run_queries, with_text_ids

RESAMPLES = 10_000
COSTLY_RESAMPLES = 2_000
"""For a statistic that is not a mean, which takes much longer."""
_BLOCK = 4_000_000
"""Numbers that are drawn at once, so that many queries need no more memory than few."""
FEWEST = 5
"""With fewer queries there is no interval and no test, because resampling so few says nothing about others."""
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
        low: Lower end of the 95 % interval of the difference (paired percentile bootstrap).
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
    count = len(before)
    if statistic is None:
        low, high = bootstrap(after - before, seed)
        return Gain(measure, count, float(before.mean()), float(after.mean()), low, high)
    draws = np.random.default_rng(seed).integers(count, size=(COSTLY_RESAMPLES, count))
    differences = np.array([statistic(after[draw]) - statistic(before[draw]) for draw in draws])
    low, high = np.nanquantile(differences, (0.025, 0.975))
    return Gain(measure, count, statistic(before), statistic(after), float(low), float(high))


def check_measures() -> None:
    """Check that searches can be measured here.

    Raises:
        MissingExtraError: ir-measures is not installed.
    """
    need("ir_measures", "ir-measures", "eval", "evaluating search")


def per_query(run: Run, truth: Run, measures: Sequence[str] = ("nDCG@10", "RR@10")) -> dict[str, np.ndarray]:
    """Return float64 [queries] for each measure, in the order of `truth`; 0 for a query without hits.

    Args:
        run: What was found.
        truth: What should have been, with grades.
        measures: In ir-measures' names; the result has "ndcg@10", "mrr@10" and so on.

    Raises:
        MissingExtraError: ir-measures is not installed.
    """
    check_measures()
    import ir_measures

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


DEPTH = 100
RERANK = "rerank"

MEASURES = ("nDCG@10", "R@100", "RR@10", "AP@100")
"""In ir-measures' names; reported as ndcg@10, recall@100, mrr@10 and map@100."""
JUDGED = "judged@10"
"""The share of the first ten hits that have a judgement; 1 for a query without hits, none of which lacks one.

What has none counts as not relevant, so a mode whose hits nobody judged looks worse than it is (Buckley and Voorhees,
SIGIR 2004).
"""
FIRST = 10


@dataclass(frozen=True, slots=True)
class QueryScores:
    """The measures of one query, by name, 0 to 1, higher is better."""

    query: str
    text: str
    measures: dict[str, float]


@dataclass(frozen=True, slots=True)
class SearchQuality:
    """The quality of one mode: means over the judged queries, 0 to 1, higher is better.

    `interval` is the 95 % bootstrap interval of nDCG@10. `difference` is this mode's nDCG@10 minus the first mode's,
    and `p` the two-sided p-value of a paired randomisation test of it (Smucker, Allan and Carterette, CIKM 2007); both
    are None for the first mode. With fewer than five queries, `interval` and `p` are None. `second_stage` says which
    one ran, if one did. `per_query` has the measures of each query.
    """

    mode: str
    queries: int
    measures: dict[str, float]
    interval: tuple[float, float] | None
    difference: float | None
    p: float | None
    second_stage: str | None = None
    per_query: tuple[QueryScores, ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: the measures by name beside the rest."""
        return {
            "mode": self.mode,
            "queries": self.queries,
            **self.measures,
            "interval": list(self.interval) if self.interval else None,
            "difference": self.difference,
            "p": self.p,
            **({"second_stage": self.second_stage} if self.second_stage else {}),
        }


def evaluate_search(
    collection: StoredCollection, queries: Sequence[Query], qrels: Qrels,
    variants: Sequence[tuple[str, SearchSettings]], notify: Notify = silent,
) -> list[SearchQuality]:  # fmt: skip
    """Return the quality of each variant, a name with its settings, over the queries that have a relevant document.

    Args:
        collection: The collection.
        queries: Ids and texts.
        qrels: Grades by query id and document id.
        variants: What to compare with the first.
        notify: Receives notes on queries that are left out, and on documents that the collection does not have.

    Raises:
        SondeError: No query has a relevant document, or no judged document is in the collection.
        MissingExtraError: ir-measures is not installed.
    """
    judged, truth = _answered(collection, queries, qrels, notify)
    found, first = [], None
    for name, settings in variants:
        scores, second_stage = _scores(collection, judged, truth, settings)
        each = tuple(QueryScores(key, text, {name: scores[name][key] for name in scores}) for key, text in judged)
        found.append(replace(_quality(name, scores, first), second_stage=second_stage, per_query=each))
        first = first or scores["ndcg@10"]
    return found


def _answered(
    collection: StoredCollection, queries: Sequence[Query], qrels: Qrels, notify: Notify
) -> tuple[list[Query], Qrels]:
    """Return the queries with a relevant document, and their judgements under the collection's own ids."""
    queries, qrels = with_text_ids(queries, qrels)
    judged = [(key, text) for key, text in queries if key in qrels]
    if not judged:
        raise SondeError("no query has a judgement: do the ids of queries and judgements match?")
    check_measures()
    note_unknown_queries(queries, qrels, notify)
    named = sorted({id for key, _ in judged for id in qrels[key]})
    own = own_ids(collection, named, notify)
    if not own:
        said = f"{collection.named} has none of the judged documents, {listed(named)}"
        raise SondeError(f"{said}: do the judgements belong to this collection?", code="not-found", field="qrels")
    answered = [(key, text) for key, text in judged if relevant(qrels[key])]
    if not answered:
        raise SondeError("no judged query has a relevant document: such queries cannot tell a good ranking from a bad")
    if without := len(judged) - len(answered):
        notify(f"note: {counted(without, 'query', 'queries')} without a relevant document left out")
    return answered, {key: {own.get(id, id): grade for id, grade in qrels[key].items()} for key, _ in answered}


def modes(names: Sequence[Mode | str], settings: SearchSettings = SearchSettings()) -> list[tuple[str, SearchSettings]]:
    """Return one variant for each mode; "rerank" is hybrid with a second stage, the other modes go without one.

    Raises:
        UsageError: There is no such mode.
    """
    for name in names:
        if name not in (*MODES, RERANK):
            said = (
                f"there is no mode {name!r}{did_you_mean(name, [*MODES, RERANK])}: use {', '.join(MODES)} or {RERANK}"
            )
            raise UsageError(said, code="unknown-option", field="modes", value=name, alternatives=(*MODES, RERANK))
    plain = replace(settings, rerank=False, rerank_model=None, rerank_budget=None)
    return [
        (name, replace(settings, mode="hybrid", rerank=True) if name == RERANK else replace(plain, mode=name))  # type: ignore[arg-type]
        for name in names
    ]


def _scores(
    collection: StoredCollection, queries: Sequence[Query], truth: Qrels, settings: SearchSettings
) -> tuple[dict[str, dict[str, float]], str | None]:
    """Return for every measure the score of every query, and the second stage that ran, in words."""
    deep = replace(settings, k=max(DEPTH, settings.k), collapse=False)
    found = run_queries(collection, queries, deep, excerpts=False)
    measured = per_query(run_of(found), truth, MEASURES)
    scores = {name: dict(zip(truth, values.tolist(), strict=True)) for name, values in measured.items()}
    scores[JUDGED] = {key: _judged(results, truth[key]) for key, results in found}
    stages = [results.reranking for _, results in found if results.reranking]
    return scores, str(max(stages, key=lambda stage: stage.depth)) if stages else None


def _judged(results: Results, grades: dict[str, int]) -> float:
    first = [hit.id in grades for hit in results[:FIRST]]
    return sum(first) / len(first) if first else 1.0


def _quality(name: str, scores: dict[str, dict[str, float]], first: dict[str, float] | None) -> SearchQuality:
    ndcg = scores["ndcg@10"]
    means = {measure: sum(values.values()) / len(values) for measure, values in scores.items()}
    gains = [ndcg[key] - first[key] for key in ndcg] if first else None
    enough = len(ndcg) >= FEWEST
    return SearchQuality(
        mode=name,
        queries=len(ndcg),
        measures=means,
        interval=bootstrap(list(ndcg.values())) if enough else None,
        difference=sum(gains) / len(gains) if gains else None,
        p=randomisation(gains) if gains and enough else None,
    )


def bootstrap(values: Sequence[float] | np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean (Efron 1979), from 10,000 seeded resamples."""
    chance, given = np.random.default_rng(seed), np.asarray(values, np.float64)
    means = [given[chance.integers(len(given), size=(rows, len(given)))].mean(1) for rows in _blocks(len(given))]
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return float(low), float(high)


def randomisation(gains: Sequence[float] | np.ndarray) -> float:
    """Return the two-sided p-value of a paired randomisation test: how often random signs give as large a mean."""
    chance, given = np.random.default_rng(0), np.asarray(gains, np.float64)
    least = abs(given.sum()) - 1e-12
    signs = (chance.integers(2, size=(rows, len(given))) * 2 - 1 for rows in _blocks(len(given)))
    larger = sum(int((np.abs(some @ given) >= least).sum()) for some in signs)
    return (larger + 1) / (RESAMPLES + 1)


def _blocks(count: int) -> list[int]:
    """Return the numbers of resamples of `count` values to draw at once."""
    rows = max(1, _BLOCK // count)
    return [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]


SUFFIXES = (".csv", ".jsonl")


def check_per_query(path: Path) -> None:
    """Check before the work that the measures of each query can be written to a file.

    Raises:
        UsageError: The suffix is not valid, or `path` is a folder.
        SondeError: The folder does not exist.
    """
    check_target(path, SUFFIXES, "write measures to")


def write_per_query(found: Sequence[SearchQuality], path: Path, notify: Notify = silent) -> None:
    """Write one row for each mode and query: the query's id and text, and its measures.

    A CSV cell that a spreadsheet would run as a formula gets an apostrophe in front, and `notify` a sentence.

    Raises:
        UsageError: The suffix is not valid, or `path` is a folder.
        SondeError: The folder does not exist, or the file cannot be written.
    """
    check_per_query(path)
    rows = [
        {"mode": quality.mode, "query": one.query, "text": one.text, **one.measures}
        for quality in found
        for one in quality.per_query
    ]
    formulas, stream = Formulas(), io.StringIO()
    if path.suffix.lower() == ".jsonl":
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows({name: formulas.cell(value) for name, value in row.items()} for row in rows)
    write_output(path, lambda file: file.write(stream.getvalue().encode()))
    if formulas.quoted:
        notify(formulas.note(".jsonl"))

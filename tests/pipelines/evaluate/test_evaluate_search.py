"""Rankings against judgements: runs in TREC's form, measures, intervals and p-values."""
# ruff: noqa: F811  (fixtures that are imported)

import csv
import json
import random
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from searched import QUERIES, collection  # noqa: F401  (fixture)

import sonde as sonde_package
from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.wording import shown_p
from sonde.pipelines.evaluate.search import bootstrap, evaluate_search, gain, modes, randomisation
from sonde.pipelines.evaluate.trec import Qrels, read_qrels, read_queries, run_queries
from sonde.pipelines.search.settings import SearchSettings


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Path]:
    queries = tmp_path / "q.jsonl"
    queries.write_text("".join(f'{{"_id": "q{n}", "text": "{query}"}}\n' for n, query in enumerate(QUERIES)))
    chance = random.Random(3)
    lines = [f"q{n}\t{chance.randrange(400)}\t{chance.choice((1, 1, 2))}\n" for n in range(4) for _ in range(120)]
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return queries, qrels


def test_a_trec_run_is_read_back(collection: Collection, judged: tuple[Path, Path], tmp_path: Path) -> None:
    queries = read_queries(judged[0])
    assert queries == [(f"q{n}", query) for n, query in enumerate(QUERIES)]
    found = run_queries(collection.stored, queries, SearchSettings(k=25, mode="dense"), tmp_path / "run.trec")
    read = list(ir_measures.read_trec_run(str(tmp_path / "run.trec")))
    assert [(line.query_id, line.doc_id) for line in read] == [(key, hit.id) for key, hits in found for hit in hits]
    assert [line.score for line in read] == pytest.approx([hit.score for _, hits in found for hit in hits], abs=1e-6)


def test_an_empty_query_is_named_with_its_file_line_and_id(collection: Collection, tmp_path: Path) -> None:
    """It said "query 3 is empty"."""
    (tmp_path / "q.jsonl").write_text('{"_id": "a", "text": "lamp"}\n\n{"_id": "b7", "text": "  "}\n')
    with pytest.raises(UsageError, match=r"^line 3 of .*q.jsonl: the query 'b7' is empty: say what to look for$"):
        collection.search_queries(tmp_path / "q.jsonl")
    with pytest.raises(UsageError, match=r"^the query 'b7' is empty: say what to look for$"):
        collection.search_queries([("a", "lamp"), ("b7", "")])


def test_reranking_is_a_mode(collection: Collection, judged: tuple[Path, Path]) -> None:
    """It was left out without a word."""
    with pytest.raises(UsageError, match="leave out rerank, and add 'rerank' to modes"):
        collection.evaluate_search(*judged, modes=("hybrid",), rerank=True)


def test_the_mode_rerank_takes_a_model_and_the_others_none(
    collection: Collection, judged: tuple[Path, Path], sonde: Command
) -> None:
    """It said that rerank must be set to True, also on the command line, which has no such option."""
    (found,) = collection.evaluate_search(*judged, modes=("rerank",), rerank_model="late")
    assert found.second_stage == "late interaction over the best 50"
    for name, value in (("rerank_model", "late"), ("rerank_budget", "1s")):
        with pytest.raises(UsageError, match=f"^{name} is for the mode 'rerank': add 'rerank' to modes"):
            collection.evaluate_search(*judged, **{name: value})  # type: ignore[arg-type]
    words = ("evaluate", "search", collection.path, "--queries", judged[0], "--qrels", judged[1])
    ran = sonde(*words, "--rerank-model", "late")
    ran.refused("--rerank-model is for the mode 'rerank': add 'rerank' to --modes, or leave it out", code=2)


def test_reranking_without_a_late_index_says_how_to_build_one(
    collection: Collection, judged: tuple[Path, Path], sonde: Command
) -> None:
    words = ("evaluate", "search", collection.path, "--queries", judged[0], "--qrels", judged[1], "--modes")
    note = (
        "note: there is no late index, so reranking embeds passages for every query; "
        f"`sonde late {collection.path}` builds one, and `sonde index --late` while it indexes"
    )
    assert note in sonde(*words, "hybrid,rerank", "--rerank-model", "late").said
    assert note in sonde(*words, "rerank", "--json").said
    assert "late index" not in sonde(*words, "hybrid").err
    collection.late()
    assert "late index" not in sonde(*words, "rerank").err
    collection.late(remove=True)


def test_evaluation_agrees_with_ir_measures(collection: Collection, judged: tuple[Path, Path], tmp_path: Path) -> None:
    queries, qrels = read_queries(judged[0]), read_qrels(judged[1])
    few = evaluate_search(collection.stored, queries, qrels, modes(("dense", "lexical")))
    assert [(q.queries, q.interval, q.p) for q in few] == [(4, None, None)] * 2, "too few for an interval"
    queries, qrels = [*queries, ("again", queries[0][1])], qrels | {"again": qrels[queries[0][0]]}
    found = evaluate_search(collection.stored, queries, qrels, modes(("dense", "lexical", "hybrid")))
    again = evaluate_search(collection.stored, queries, qrels, modes(("dense", "lexical", "hybrid")))
    assert [(q.mode, q.queries) for q in found] == [("dense", 5), ("lexical", 5), ("hybrid", 5)]
    assert [q.to_dict() for q in found] == [q.to_dict() for q in again]
    assert found[0].p is None and found[0].difference is None
    for quality in found:
        run_file = tmp_path / f"{quality.mode}.trec"
        settings = SearchSettings(k=100, mode=quality.mode)  # type: ignore[arg-type]
        run_queries(collection.stored, queries, settings, run_file)
        names = {"ndcg@10": "nDCG@10", "recall@100": "R@100", "mrr@10": "RR@10", "map@100": "AP@100"}
        measures = [ir_measures.parse_measure(name) for name in names.values()]
        expected = ir_measures.calc_aggregate(measures, qrels, list(ir_measures.read_trec_run(str(run_file))))
        for name, measure in zip(names, measures, strict=True):
            assert quality.measures[name] == pytest.approx(expected[measure], abs=1e-6)
        assert quality.interval is not None
        low, high = quality.interval
        assert low <= quality.measures["ndcg@10"] <= high
        if quality.difference is not None:
            assert quality.difference == pytest.approx(quality.measures["ndcg@10"] - found[0].measures["ndcg@10"])


@pytest.mark.long
def test_intervals_and_p_values() -> None:
    chance = random.Random(5)
    values = [chance.random() for _ in range(100)]
    low, high = bootstrap(values)
    error = 1.96 * np.std(values) / 10
    assert (low, high) == (
        pytest.approx(np.mean(values) - error, abs=0.01),
        pytest.approx(np.mean(values) + error, abs=0.01),
    )
    assert bootstrap(values) == (low, high) != bootstrap(values, seed=1)
    assert randomisation([0.1] * 20) == pytest.approx(1 / 10_001, abs=3e-4)
    assert bootstrap([0.5] * 3) == (0.5, 0.5)
    many = np.linspace(-0.1, 0.3, 25_000)
    found = bootstrap(many)
    assert found == (pytest.approx(0.0986, abs=1e-3), pytest.approx(0.1014, abs=1e-3))
    assert gain("mean", many * 0, many).low == found[0]
    assert randomisation([0.0] * 20) == 1.0
    assert randomisation([0.1, -0.1] * 10) > 0.9
    assert randomisation([0.2, 0.1, -0.05, 0.1]) == randomisation([0.2, 0.1, -0.05, 0.1])


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("1 0 28 1.0\n1 0 29 1\n", {"1": {"28": 1, "29": 1}}),
        ("1 0 28 2.00\n1 0 29 0.\n", {"1": {"28": 2, "29": 0}}),
        ("query-id\tcorpus-id\tscore\n1\t28\t-1\n", {"1": {"28": -1}}),
        ("query iter document relevance\n1 0 28 1\n", {"1": {"28": 1}}),
    ],
)
def test_the_first_line_is_a_header_only_without_a_number(tmp_path: Path, content: str, found: Qrels) -> None:
    """A first line with the grade 1.0 was passed over as a header."""
    (tmp_path / "q.txt").write_text(content)
    assert read_qrels(tmp_path / "q.txt") == found


@pytest.mark.parametrize("number", [1, 2])
def test_a_grade_that_is_not_whole_is_refused_on_every_line(tmp_path: Path, number: int) -> None:
    (tmp_path / "q.txt").write_text("1 0 27 1\n" * (number - 1) + "1 0 28 0.5\n1 0 29 1\n")
    with pytest.raises(SondeError, match=f"line {number} of .* is not a judgement: .* a whole number"):
        read_qrels(tmp_path / "q.txt")


def test_lines_that_contradict_each_other_are_counted(tmp_path: Path) -> None:
    told: list[object] = []
    (tmp_path / "q.txt").write_text("1 0 a 1\n1 0 a 1\n1 0 b 1\n1 0 b 0\n")
    assert read_qrels(tmp_path / "q.txt", told.append) == {"1": {"a": 1, "b": 0}}
    said = "1 line with another grade than an earlier line (query 1, document b): the last one counts"
    assert told == [f"note: q.txt has {said}"]


def test_the_measures_of_each_query_are_written(
    collection: Collection, judged: tuple[Path, Path], tmp_path: Path, sonde: Command
) -> None:
    words = ("evaluate", "search", collection.path, "--queries", judged[0], "--qrels", judged[1], "--json")
    ran = sonde(*words, "--per-query", tmp_path / "each.jsonl")
    totals = [json.loads(line) for line in ran.out.splitlines()]
    rows = [json.loads(line) for line in (tmp_path / "each.jsonl").read_text().splitlines()]
    assert [(row["mode"], row["query"]) for row in rows] == [
        (mode, f"q{n}") for mode in ("dense", "lexical", "hybrid") for n in range(4)
    ]
    assert rows[1]["text"] == QUERIES[1]
    for total in totals:
        own = [row for row in rows if row["mode"] == total["mode"]]
        for name in ("ndcg@10", "recall@100", "mrr@10", "map@100", "judged@10"):
            assert total[name] == pytest.approx(np.mean([row[name] for row in own]))
    assert sonde(*words, "--per-query", tmp_path / "each.csv").code == 0
    with (tmp_path / "each.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["ndcg@10"]) for row in table] == [row["ndcg@10"] for row in rows]
    sonde(*words, "--per-query", tmp_path / "each.txt").refused("must end in .csv or .jsonl", code=2)


def test_queries_without_a_relevant_document_are_left_out(collection: Collection) -> None:
    """They counted as 0 in every measure, although the manual says that they are left out."""
    queries = [(f"q{n}", query) for n, query in enumerate(QUERIES)]
    qrels: Qrels = {"q0": {"1": 1, "none": 1}, "q1": {"2": 0}, "q2": {"3": -1}, "typo": {"1": 1}}
    told: list[object] = []
    [found] = collection.evaluate_search(queries, qrels, modes=["dense"], progress=told.append)
    [alone] = collection.evaluate_search(queries[:1], {"q0": qrels["q0"]}, modes=["dense"])
    assert found == alone and found.queries == 1
    assert told == [
        "note: left out 1 judged query without a text: typo",
        "note: 1 judged document not in the collection, which no search can find: none",
        "note: 2 queries without a relevant document left out",
    ]
    with pytest.raises(SondeError, match="no judged query has a relevant document"):
        collection.evaluate_search(queries, {"q1": {"2": 0}})


def test_ids_with_spaces_are_the_same_in_runs_and_qrels(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    rows = [{"id": id, "text": f"a {word} broke"} for id, word in (("doc a", "lamp"), ("b", "screen"))]
    made = sonde_package.index(rows, tmp_path / "c.sonde", id="id", encoder=encoder)
    made.judge("broken lamp", ["doc a"])
    made.judgements().write(tmp_path / "qrels.tsv", tmp_path / "q.jsonl")
    made.search_queries(tmp_path / "q.jsonl", run=tmp_path / "run.trec")
    run = list(ir_measures.read_trec_run(str(tmp_path / "run.trec")))
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.tsv")))
    assert [(each.query_id, each.doc_id) for each in qrels] == [("q1", "doc_a")] == [(run[0].query_id, run[0].doc_id)]
    told: list[object] = []
    [kept] = made.evaluate_search([("q1", "broken lamp")], made.judgements().qrels, modes=["lexical"])
    [read] = made.evaluate_search(tmp_path / "q.jsonl", tmp_path / "qrels.tsv", modes=["lexical"], progress=told.append)
    assert (read, told) == (kept, [])


def test_ids_that_a_run_would_merge_are_refused(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    rows = [{"id": id, "text": f"a {word} broke"} for id, word in (("doc a", "lamp"), ("doc_a", "screen"))]
    made = sonde_package.index(rows, tmp_path / "c.sonde", id="id", encoder=encoder)
    said = "the document ids 'doc a' and 'doc_a' would both be written as 'doc_a', because TREC files have no spaces"
    with pytest.raises(SondeError, match=said):
        made.search_queries([("1", "a lamp broke")], run=tmp_path / "run.trec")
    made.judge("broke", ["doc a", "doc_a"])
    with pytest.raises(SondeError, match=said):
        made.judgements().write(tmp_path / "qrels.tsv")
    with pytest.raises(SondeError, match="the query ids 'q 1' and 'q_1' would both be written as 'q_1'"):
        made.search_queries([("q 1", "lamp"), ("q_1", "screen")], run=tmp_path / "run.trec")
    assert not (tmp_path / "run.trec").exists() and not (tmp_path / "qrels.tsv").exists()


def test_a_p_value_is_never_shown_as_zero() -> None:
    assert [shown_p(p) for p in (1 / 10_001, 0.00099, 0.001, 0.0305, 1.0)] == [
        "<0.001", "<0.001", "0.001", "0.030", "1.000",
    ]  # fmt: skip


def test_judgements_that_cannot_be_read(tmp_path: Path, collection: Collection) -> None:
    trec = tmp_path / "trec.txt"
    trec.write_text("q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n")
    assert read_qrels(trec) == {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}
    for content, message in (("", "has no judgements"), ("q1 0 d1 1\nq1 d1\n", "line 2 .* is not a judgement")):
        trec.write_text(content)
        with pytest.raises(SondeError, match=message):
            read_qrels(trec)
    with pytest.raises(SondeError, match="cannot read the judgements"):
        read_qrels(tmp_path / "none.txt")
    with pytest.raises(SondeError, match="no query has a judgement"):
        evaluate_search(collection.stored, [("a", "apple")], {"b": {"1": 1}}, modes(("dense",)))
    said = "has none of the judged documents, x, y: do the judgements belong to this collection"
    with pytest.raises(SondeError, match=said):  # a table of zeros
        evaluate_search(collection.stored, [("a", "apple")], {"a": {"x": 1, "y": 0}}, modes(("dense",)))

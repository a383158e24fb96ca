"""Judgements of hits: kept, taken back, exported, measured; nothing but the line in hand is lost to a kill."""

import json
import multiprocessing
from pathlib import Path

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.progress import Progress
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.upkeep.verify import verify
from sonde.pipelines.evaluate.judgements import FILE, judge, judgements
from sonde.pipelines.evaluate.search import evaluate_search, modes
from sonde.pipelines.evaluate.trec import Qrels, read_qrels, read_queries

ROWS = [
    {"id": "1", "text": "The battery died after a week."},
    {"id": "2", "text": "Great phone, lasts for days."},
    {"id": "3", "text": "The screen broke on the first day."},
]


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    return index(ROWS, tmp_path / "c.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]


def test_the_last_word_counts(collection: Collection) -> None:
    assert collection.judge("battery  died ", ["1", "2"]) == 2
    assert collection.judge("battery died", ["2"], 0) == 1
    assert collection.judge("screen", ["3"], 3) == 1
    found = collection.judgements()
    assert [(each.query, each.id, each.grade) for each in found.kept] == [
        ("battery died", "1", 1),
        ("battery died", "2", 0),
        ("screen", "3", 3),
    ]
    assert found.queries == [("q1", "battery died"), ("q2", "screen")]
    assert found.qrels == {"q1": {"1": 1, "2": 0}, "q2": {"3": 3}}
    assert found.of(" battery died") == {"1": 1, "2": 0}
    assert collection.judge("battery died", ["1", "2", "3"], None) == 2
    assert collection.judge("battery died", ["1"], None) == 0
    assert collection.judgements().qrels == {"q1": {"3": 3}}


def test_an_answered_query_has_a_relevant_document(collection: Collection) -> None:
    collection.judge("nothing", ["1"], 0)
    collection.judge("screen", ["3"])
    assert collection.judgements().answered == [("q2", "screen")]


def test_deleted_and_changed_documents_do_not_count(collection: Collection) -> None:
    collection.judge("day", ["1", "2", "3"])
    collection.delete(["1"])
    changed = [{"id": "2", "text": "Another text."}, ROWS[2]]
    again = index(changed, collection.path, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    found = again.judgements()
    assert (found.qrels, found.stale) == ({"q1": {"3": 1}}, 2)
    back = index(ROWS, collection.path, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert (back.judgements().qrels, back.judgements().stale) == ({"q1": {"1": 1, "2": 1, "3": 1}}, 0)


def test_they_survive_compaction_and_a_sweep(collection: Collection) -> None:
    collection.judge("day", ["3"])
    collection.delete(["1"])
    collection.compact()
    assert verify(collection.stored) == []
    assert collection.judgements().qrels == {"q1": {"3": 1}}


def test_a_hit_is_judged_while_the_collection_is_written(collection: Collection) -> None:
    with writer_lock(collection.path):
        collection.judge("day", ["3"])
    assert len(collection.judgements()) == 1


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return index(ROWS, tmp_path_factory.mktemp("torn") / "c.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]


@settings(max_examples=40)
@given(cut=st.integers(0, 200), junk=st.binary(max_size=20))
def test_a_torn_line_costs_itself_alone(shared: Collection, cut: int, junk: bytes) -> None:
    file = shared.path / FILE
    file.unlink(missing_ok=True)
    judge(shared.stored, "one", ["1"], 1)
    before = file.read_bytes()
    judge(shared.stored, "two", ["2"], 1)
    second = file.read_bytes()[len(before) :]
    file.write_bytes(before + second[: min(cut, len(second) - 1)] + junk.replace(b"\n", b""))
    assert [each.query for each in judgements(shared.stored).kept] == ["one"]
    judge(shared.stored, "three", ["3"], 1)
    assert [each.query for each in judgements(shared.stored).kept] == ["one", "three"]


@pytest.mark.parametrize("line", [b"\xff\xfe", b"[]", b"{}", b"null", b'{"query": 1}', b"[" * 100_000])
def test_a_damaged_line_is_passed_over(collection: Collection, line: bytes) -> None:
    collection.judge("one", ["1"])
    with (collection.path / FILE).open("ab") as stream:
        stream.write(line + b"\n")
    collection.judge("two", ["2"])
    assert [each.query for each in collection.judgements().kept] == ["one", "two"]


def _judge_many(path: Path, query: str) -> None:
    opened = Collection.open(path, encoder=FakeEncoder())  # type: ignore[arg-type]
    for _ in range(20):
        judge(opened.stored, query, ["1", "2", "3"], 1)


@pytest.mark.long
def test_several_may_judge_at_once(collection: Collection) -> None:
    context = multiprocessing.get_context("spawn")
    judges = [context.Process(target=_judge_many, args=(collection.path, f"query {n}")) for n in range(2)]
    for process in judges:
        process.start()
    for process in judges:
        process.join()
    lines = (collection.path / FILE).read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 120
    assert len(collection.judgements()) == 6


def test_exported_and_measured(collection: Collection, tmp_path: Path) -> None:
    collection.judge("battery died", ["1"])
    collection.judge("screen broke", ["3"], 2)
    found = collection.judgements()
    found.write(tmp_path / "qrels.tsv", tmp_path / "queries.jsonl")
    assert (tmp_path / "qrels.tsv").read_text() == "q1\t0\t1\t1\nq2\t0\t3\t2\n"
    assert read_qrels(tmp_path / "qrels.tsv") == found.qrels
    assert read_queries(tmp_path / "queries.jsonl") == found.queries
    [dense, lexical] = evaluate_search(collection.stored, found.answered, found.qrels, modes(("dense", "lexical")))
    assert dense.measures["judged@10"] == pytest.approx(1 / 3)  # three hits, one of them judged
    assert lexical.measures["ndcg@10"] == 1.0
    assert lexical.measures["judged@10"] == 1.0  # words of one query find one text each


def test_a_query_without_hits_has_none_unjudged(collection: Collection) -> None:
    queries, qrels = [("a", "xyzzy"), ("b", "battery")], {"a": {"1": 1}, "b": {"2": 1}}
    [lexical] = evaluate_search(collection.stored, queries, qrels, modes(("lexical",)))
    assert (lexical.measures["judged@10"], lexical.measures["ndcg@10"]) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("query", "ids", "grade", "message"),
    [
        (" ", ["1"], 1, "the query is empty"),
        ("\ud800", ["1"], 1, "not valid Unicode"),
        ("x" * 20_001, ["1"], 1, "has 20,001 characters"),
        ("x", [], 1, "no documents given"),
        ("x", ["1"], 11, "11 is not a valid grade: 0 is not relevant, 1 to 10"),
        ("x", ["1"], -1, "-1 is not a valid grade"),
    ],
)
def test_what_cannot_be_judged(collection: Collection, query: str, ids: list[str], grade: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        collection.judge(query, ids, grade)
    assert not (collection.path / FILE).exists()


def test_an_unknown_document_keeps_nothing(collection: Collection) -> None:
    with pytest.raises(SondeError, match="no document with the id '9'"):
        collection.judge("day", ["1", "9"])
    assert len(collection.judgements()) == 0


def test_commands(sonde: Command, reviews: Path, tmp_path: Path) -> None:
    assert sonde("judge", reviews, "screen", "3").said == ["1 document relevant to 'screen'"]
    assert sonde("judge", reviews, "screen", "1", "--grade", "0").said == ["1 document not relevant to 'screen'"]
    assert sonde("judge", reviews, "other", "1", "--grade", "0").code == 0
    shown = sonde("judgements", reviews)
    assert shown.out.splitlines() == [" 1  3  screen", " 0  1  screen", " 0  1  other"]
    assert shown.said == ["3 judgements of 2 queries"]
    first = json.loads(sonde("judgements", reviews, "--json").out.splitlines()[0])
    assert {name: first[name] for name in ("query", "id", "grade")} == {"query": "screen", "id": "3", "grade": 1}
    assert sonde("judgements", reviews, "--to", tmp_path / "q.tsv").code == 0
    assert (tmp_path / "q.tsv").read_text() == "q1\t0\t3\t1\nq1\t0\t1\t0\nq2\t0\t1\t0\n"
    measured = sonde("evaluate", "search", reviews, "--modes", "lexical", "--json")
    assert measured.said == ["note: 1 query without a relevant document left out"]
    [quality] = [json.loads(line) for line in measured.out.splitlines()]
    assert (quality["queries"], quality["ndcg@10"], quality["judged@10"]) == (1, 1.0, 1.0)
    assert sonde("judge", reviews, "screen", "3", "2", "--forget").said == ["forgot 1 judgement for 'screen'"]
    for ids, what in ((["3"], "this document"), (["3", "2"], "these documents")):
        said = f"there is no judgement of {what} for 'screen'"
        assert sonde("judge", reviews, "screen", *ids, "--forget").said == [said]
    sonde("evaluate", "search", reviews).refused("no hit has been judged relevant here")


def test_mistakes(sonde: Command, reviews: Path, tmp_path: Path) -> None:
    sonde("judge", reviews, "x", "1", "--grade", "1", "--forget").refused("--grade and --forget", code=2)
    sonde("judgements", reviews, "--queries", tmp_path / "q.jsonl").refused("--queries needs --to", code=2)
    sonde("judgements", reviews, "--to", tmp_path / "q.tsv").refused("nothing has been judged")
    sonde("evaluate", "search", reviews, "--qrels", tmp_path / "q.tsv").refused(
        "give both --queries and --qrels", code=2
    )
    sonde("judge", reviews, "x", "1", "--grade", "12").refused("12 is not a valid grade", code=2)


def test_judgements_of_a_test_set_are_imported(collection: Collection) -> None:
    collection.judge("screen", ["3"], 1)
    told: list[Progress | str] = []
    queries = [("a", "battery  died"), ("b", "screen"), ("unjudged", "phone")]
    qrels = {"a": {"1": 2, "2": -1, "9": 1}, "b": {"3": 0}, "lost": {"1": 1}}
    assert collection.import_judgements(queries, qrels, told.append) == 3
    assert told == [
        "note: 1 judged document not in the collection, which no search can find: 9",
        "note: left out 1 judged query without a text: lost",
    ]
    found = collection.judgements()
    assert [(each.query, each.id, each.grade) for each in found.kept] == [
        ("screen", "3", 0),
        ("battery died", "1", 2),
        ("battery died", "2", 0),
    ]
    assert verify(collection.stored) == []


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ({"a": {"1": 1, "2": 11}}, "11 is not a valid grade: 0 is not relevant, 1 to 10"),
        ({"a": {"1": "1"}}, "'1' is not a valid grade"),
        ({"a": {"1": True}}, "True is not a valid grade"),
        ({"a": {"9": 1}}, "none of the judged documents is in .*: do the ids match"),
        ({"lost": {"1": 1}}, "no query has a judgement: do the ids match"),
        ({}, "no query has a judgement"),
        ({"a": {"1": 1}, "b": {"2": 1}}, "the query is empty"),
    ],
)
def test_what_cannot_be_imported_keeps_nothing(collection: Collection, qrels: Qrels, message: str) -> None:
    with pytest.raises(SondeError, match=message):
        collection.import_judgements([("a", "battery"), ("b", " ")], qrels)
    assert not (collection.path / FILE).exists()


def test_what_was_exported_is_imported_elsewhere(sonde: Command, reviews: Path, tmp_path: Path) -> None:
    sonde("judge", reviews, "screen", "3", "--grade", "2")
    files = ("--queries", tmp_path / "q.jsonl")
    assert sonde("judge", reviews, "--to", tmp_path / "q.tsv", *files).code == 0
    sonde("judge", reviews, "screen", "3", "--forget")
    assert sonde("judge", reviews, "--from", tmp_path / "q.tsv", *files).said == ["1 judgement stored"]
    assert sonde("judge", reviews).out == " 2  3  screen\n"
    sonde("judge", reviews, "--from", tmp_path / "q.tsv").refused("--from needs --queries", code=2)
    sonde("judge", reviews, "x", "--from", tmp_path / "q.tsv", *files).refused("leave out everything but", code=2)


def test_ids_from_python_may_be_numbers(collection: Collection) -> None:
    """They were compared with texts, and all judgements were lost without a word."""
    assert collection.import_judgements([(7, "battery died")], {7: {1: 2}}) == 1  # type: ignore[list-item, dict-item]
    assert collection.judgements().qrels == {"q1": {"1": 2}}
    [lexical] = collection.evaluate_search([(7, "battery died")], {7: {1: 2, 9: 1}}, modes=["lexical"])  # type: ignore[list-item, dict-item]
    assert lexical.measures["mrr@10"] == 1.0
    with pytest.raises(UsageError, match="None is not a valid query"):
        collection.import_judgements([("a", None)], {"a": {"1": 1}})  # type: ignore[list-item]

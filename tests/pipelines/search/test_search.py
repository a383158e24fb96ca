"""Search against naive computations: every mode, filters, paging, similar documents, long queries."""
# ruff: noqa: F811  (fixtures that are imported)

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from kill_corpus import COUNT, WORDS
from searched import QUERIES, collection  # noqa: F401  (fixture)

from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.pipelines.search.candidates import DenseSearch
from sonde.pipelines.search.rerank.late import LateInteraction, rarity
from sonde.pipelines.search.results import Mode
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import MODES, Fusion, SearchSettings

Naive = dict[str, tuple[float, float]]


def naive(collection: Collection, query: str) -> list[tuple[str, int, float, float]]:
    """Every passage's document, row, cosine and BM25, from all vectors and the index's score of each row."""
    vector = FakeEncoder().encode_texts([query], query=True)[0]
    with collection.stored.view() as view:
        rows = np.flatnonzero(view.generation.alive)
        cosine = view.generation.segments.read(rows) @ vector
        assert view.generation.lexical is not None
        bm25 = view.generation.lexical.score_rows(query, rows)
        keys = dict(view.catalog.connection.execute("SELECT row, key FROM passages JOIN documents USING (doc)"))
    return [(keys[row], row, float(c), float(b)) for row, c, b in zip(rows.tolist(), cosine, bm25, strict=True)]


def best(scored: list[tuple[str, int, float]]) -> list[tuple[str, float]]:
    """The best passage of every document, ordered as hits are: by score, then by row."""
    found: dict[str, float] = {}
    for key, _, score in sorted(scored, key=lambda item: (-round(item[2], 5), item[1])):
        found.setdefault(key, score)
    return list(found.items())


def same(hits: list[tuple[str, float]], expected: list[tuple[str, float]], k: int) -> None:
    """The scores are those of the k best, place by place, and every id has its own score: ties leave a choice."""
    assert [score for _, score in hits] == pytest.approx([score for _, score in expected[:k]], abs=2e-4)
    known = dict(expected)
    assert all(score == pytest.approx(known[key], abs=2e-4) for key, score in hits)


def run(collection: Collection, query: str, k: int, **given: Any) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in collection.search(query, k=k, **given)]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("k", [1, 10, 60])
def test_dense_and_lexical(collection: Collection, query: str, k: int) -> None:
    table = naive(collection, query)
    same(run(collection, query, k, mode="dense"), best([(key, row, cosine) for key, row, cosine, _ in table]), k)
    matching = [(key, row, bm25) for key, row, _, bm25 in table if bm25 > 0]
    same(run(collection, query, k, mode="lexical"), best(matching), k)


def fused(table: list[tuple[str, int, float, float]], fusion: Fusion, weight: float) -> list[tuple[str, float]]:
    """Both halves over all passages, by the formulas of the papers."""
    cosines = np.array([cosine for _, _, cosine, _ in table])
    bm25 = np.array([score for *_, score in table])
    if fusion == "convex":
        dense = (cosines - cosines.min()) / (cosines.max() - cosines.min())
        scores = weight * dense + (1 - weight) * bm25 / (bm25.max() or 1)
    else:
        dense_rank = {place: rank for rank, place in enumerate(np.argsort(-cosines, kind="stable"), 1)}
        lexical_rank = {place: rank for rank, place in enumerate(np.argsort(-bm25, kind="stable"), 1)}
        scores = np.array(
            [
                weight / (60 + dense_rank[place])
                + ((1 - weight) / (60 + lexical_rank[place]) if bm25[place] > 0 else 0)
                for place in range(len(table))
            ]
        )
    return best([(key, row, score) for (key, row, *_), score in zip(table, scores.tolist(), strict=True)])


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_convex_fusion(collection: Collection, query: str, weight: float) -> None:
    expected = fused(naive(collection, query), "convex", weight)
    same(run(collection, query, 20, weight=weight, depth=10_000), expected, 20)


@pytest.mark.parametrize("query", QUERIES)
def test_reciprocal_rank_fusion(collection: Collection, query: str) -> None:
    table = naive(collection, query)
    hits = run(collection, query, 20, fusion="rrf", depth=10_000)
    ties = len({round(cosine, 5) for _, _, cosine, _ in table}) < len(table)
    expected = fused(table, "rrf", 0.5)[:20]
    assert [score for _, score in hits] == pytest.approx([score for _, score in expected], abs=1e-3 if ties else 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_hits_carry_the_parts_of_their_scores(collection: Collection, mode: Mode) -> None:
    query = "number 17 winter letter"
    table = {row: (cosine, bm25) for _, row, cosine, bm25 in naive(collection, query)}
    for rank, hit in enumerate(collection.search(query, k=15, mode=mode), 1):
        assert hit.rank == rank
        with collection.stored.view() as view:
            doc = view.document_number(hit.id)
            assert doc is not None
            places = {(p.start, p.end): row for row, p in view.passages(view.rows_of(doc)).items()}
        cosine, bm25 = table[places[hit.passage.start, hit.passage.end]]
        assert hit.scores.dense == (None if mode == "lexical" else pytest.approx(cosine, abs=2e-4))
        assert hit.scores.lexical == (None if mode == "dense" else pytest.approx(bm25, abs=2e-3))
        assert hit.scores.rerank is None


Condition = tuple[str, Callable[[dict[str, object]], bool]]


def conditions() -> st.SearchStrategy[Condition]:
    """Conditions in SQL, and the same in Python."""

    def compare(operator: str, value: int) -> Condition:
        test = {"<": int.__lt__, ">=": int.__ge__, "=": int.__eq__, "!=": int.__ne__}[operator]
        return f"year {operator} {value}", lambda row: row["year"] is not None and test(row["year"], value)

    single = st.one_of(
        st.builds(compare, st.sampled_from(("<", ">=", "=", "!=")), st.integers(1999, 2021)),
        st.lists(st.integers(2000, 2020), min_size=1, max_size=3).map(
            lambda years: (f"year IN ({', '.join(map(str, years))})", lambda row: row["year"] in years)
        ),
        st.integers(0, 9).map(lambda n: (f"title LIKE '%{n}'", lambda row: str(row["title"]).endswith(str(n)))),
        st.integers(0, 700).map(lambda n: (f"length > {n}", lambda row: len(str(row["text"])) > n)),
        st.sampled_from(("5", "150", "no such id")).map(lambda n: (f"id = '{n}'", lambda row: row["id"] == n)),
    )

    def joined(parts: tuple[str, Condition, Condition]) -> Condition:
        word, (left, left_holds), (right, right_holds) = parts
        both = (
            (lambda row: left_holds(row) and right_holds(row))
            if word == "AND"
            else (lambda row: left_holds(row) or right_holds(row))
        )
        return f"({left}) {word} ({right})", both

    return st.one_of(single, st.tuples(st.sampled_from(("AND", "OR")), single, single).map(joined))


@settings(max_examples=25)
@given(condition=conditions(), query=st.sampled_from(QUERIES), k=st.sampled_from((1, 7, 500)))
def test_filters_never_under_return(collection: Collection, condition: Condition, query: str, k: int) -> None:
    where, holds = condition
    passing = {str(row["id"]) for row in collection.rows() if holds(row)}
    table = [entry for entry in naive(collection, query) if entry[0] in passing]
    dense = best([(key, row, cosine) for key, row, cosine, _ in table])
    matching = best([(key, row, bm25) for key, row, _, bm25 in table if bm25 > 0])
    same(run(collection, query, k, mode="dense", where=where), dense, k)
    same(run(collection, query, k, mode="lexical", where=where), matching, k)
    hybrid = run(collection, query, k, where=where)
    assert len(hybrid) == min(k, len(passing)) and {key for key, _ in hybrid} <= passing


@pytest.mark.parametrize("where", ["year >= 2010", pytest.param(None, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("mode", "fusion"), [("dense", "convex"), ("lexical", "convex"), ("hybrid", "convex"), ("hybrid", "rrf")]
)
def test_paging(collection: Collection, mode: Mode, fusion: Fusion, where: str | None) -> None:
    given = {"mode": mode, "fusion": fusion, "where": where}
    for query in QUERIES[:2]:
        whole = run(collection, query, 120, **given)
        for size in (10, 60):
            pages = [run(collection, query, size, **given, offset=offset) for offset in range(0, 120, size)]
            assert [key for page in pages for key, _ in page] == [key for key, _ in whole]
        scores = [score for _, score in whole]
        assert scores == sorted(scores, reverse=True)
    page = collection.search("apple", k=5, mode=mode, offset=5)
    assert [hit.rank for hit in page] == [6, 7, 8, 9, 10]
    beyond = collection.search("apple", k=5, mode=mode, offset=5_000)
    assert len(beyond) == 0 and "only " in beyond.notes[-1]


def test_threshold(collection: Collection) -> None:
    whole = collection.search("apple river cloud", k=COUNT, mode="dense")
    cut = whole[7].score
    assert [hit.id for hit in collection.search("apple river cloud", k=COUNT, mode="dense", threshold=cut)] == [
        hit.id for hit in whole if hit.score >= cut
    ]
    assert {hit.id for hit in collection.search("apple river cloud", k=COUNT, threshold=cut)} == {
        hit.id for hit in whole if hit.score >= cut
    }
    for mode in MODES:
        none = collection.search("apple river cloud", mode=mode, threshold=1_000)
        top = collection.search("apple river cloud", k=COUNT, mode=mode)
        highest = max((hit.scores.lexical if mode == "lexical" else hit.scores.dense) or 0 for hit in top)
        assert len(none) == 0
        assert none.notes == (f"nothing similar enough: the best score, {highest:.3f}, is below the threshold 1000",)


def test_nothing_found_is_said(collection: Collection) -> None:
    assert collection.search("xyzzy", mode="lexical").notes == ("no document has any of these words",)
    assert collection.search("apple", where="year = 1").notes == ("no document passes the filter",)
    assert collection.search("apple", mode="lexical", where="year = 1").notes == (
        "no document that passes the filter has these words",
    )


@pytest.mark.parametrize("shards", [None, 2])
def test_a_collection_without_documents_says_so_and_what_to_do(tmp_path: Path, shards: int | None) -> None:
    encoder: Any = FakeEncoder()
    made = index([{"id": "a", "text": "an apple"}], tmp_path / "c.sonde", encoder=encoder, shards=shards)
    made.delete("a")
    said = ("the collection holds no documents: add some with `sonde index FILE --to COLLECTION`",)
    for mode in MODES:
        assert made.search("apple", mode=mode).notes == said
        assert made.search("apple", mode=mode, where="length > 3").notes == said
    assert made.ask("apple").notes[0] == said[0]


def test_similar(collection: Collection) -> None:
    vectors = {row["id"]: row["vector"] for row in collection.rows(vectors=True)}
    for key in ("5", "10", "111", "199"):
        hits = collection.similar(key, k=12)
        assert key not in [hit.id for hit in hits]
        table = []
        with collection.stored.view() as view:
            rows = np.flatnonzero(view.generation.alive)
            owners = dict(view.catalog.connection.execute("SELECT row, key FROM passages JOIN documents USING (doc)"))
            cosines = view.generation.segments.read(rows) @ vectors[key]
            table = [(owners[row], row, float(c)) for row, c in zip(rows.tolist(), cosines, strict=True)]
        same([(hit.id, hit.score) for hit in hits], best([entry for entry in table if entry[0] != key]), 12)
    assert all(hit.metadata["year"] == 2003 for hit in collection.similar("5", k=50, where="year = 2003"))
    with pytest.raises(SondeError, match="no document with the id 'nope'"):
        collection.similar("nope")


def test_like(collection: Collection) -> None:
    row = next(row for row in collection.rows() if row["id"] == "4")
    hit = collection.like(f"{row['title']}\n{row['text']}", k=1)[0]
    assert (hit.id, hit.score) == ("4", pytest.approx(1.0, abs=1e-3))
    with pytest.raises(UsageError, match="example text is empty"):
        collection.like(" ")


def test_explain_points_at_the_words(collection: Collection) -> None:
    pointed = 0
    for mode in MODES:
        for hit in collection.search("winter letters", k=10, mode=mode, explain=True):
            assert hit.why is not None
            for start, end in hit.why.terms:
                assert hit.text[start:end].lower() in ("winter", "letter")
                assert hit.passage.start <= start < end <= hit.passage.end
                pointed += 1
            assert hit.why.title_terms == ()
            similarities = [sentence.similarity for sentence in hit.why.sentences]
            assert similarities == sorted(similarities, reverse=True) and bool(similarities) == (mode != "lexical")
            for sentence in hit.why.sentences:
                assert hit.text[sentence.start : sentence.end].strip() == sentence.text
                expected = (
                    FakeEncoder().encode_texts([sentence.text])[0]
                    @ FakeEncoder().encode_texts(["winter letters"], query=True)[0]
                )
                assert sentence.similarity == pytest.approx(float(expected), abs=1e-4)
    assert pointed > 10
    [hit] = collection.search("number 17", k=1, mode="lexical", explain=True)
    assert hit.why is not None and [hit.title[start:end] for start, end in hit.why.title_terms] == ["number", "17"]
    assert all(hit.why is None for hit in collection.search("winter"))


@pytest.mark.parametrize("mode", MODES)
def test_many_queries_are_as_single_ones(collection: Collection, mode: Mode) -> None:
    queries = [" ".join(random.Random(n).choices(WORDS, k=3)) for n in range(30)]
    for query, results in zip(queries, collection.search_many(queries, k=5, mode=mode), strict=True):
        single = collection.search(query, k=5, mode=mode)
        assert (results.query, results.mode) == (query, mode)
        assert [(hit.id, hit.passage) for hit in results] == [(hit.id, hit.passage) for hit in single]
        assert [hit.score for hit in results] == pytest.approx([hit.score for hit in single], abs=1e-6)


def test_a_long_query_is_cut_with_a_note(collection: Collection) -> None:
    results = collection.search("apple " * 100, k=1)
    assert results.notes == ("the query has 100 tokens; the model reads the first 64",)
    assert collection.search("apple " * 100, k=1, mode="lexical").notes == ()


def test_strategy_is_said(collection: Collection) -> None:
    info = collection.info()
    assert info.ann is not None
    said = collection.search("apple", k=1, mode="dense").strategy
    if info.ann["kind"] == "exact":
        assert said == f"exact scan of {info.passages:,} passages"
    assert collection.search("apple", mode="lexical").strategy == "lexical index"
    assert collection.search("apple", where="id = '5'").strategy.startswith("exact scan of 1 passage")
    assert "1 passages" not in collection.search("apple", where="id = '5'").strategy


def test_long_documents_do_not_crowd_out_others(tmp_path: Path) -> None:
    """Hundreds of passages of one document come before the passages of all others."""
    words = ". ".join("apple apple apple apple apple apple" for _ in range(3_000))
    corpus = [Document(words, key="long"), *(Document(f"apple {WORDS[n]}", key=str(n)) for n in range(12))]
    encoder = FakeEncoder()
    index_documents(corpus, tmp_path / "c.sonde", settings=BuildSettings(language="en"), encoder=encoder)  # type: ignore[arg-type]
    made = Collection.open(tmp_path / "c.sonde", encoder=encoder)  # type: ignore[arg-type]
    assert made.info().passages > 200
    for mode in MODES:
        assert len(made.search("apple", k=10, mode=mode)) == 10
        assert len(made.search("apple", k=50, mode=mode)) == 13


def test_settings_that_cannot_be(collection: Collection) -> None:
    for wrong, message in (
        ({"k": 0}, "k is 0"),
        ({"mode": "both"}, "'both'"),
        ({"fusion": "sum"}, "'sum'"),
        ({"offset": -1}, "offset is -1"),
        ({"depth": 0}, "depth is 0"),
        ({"weight": 2.0}, r"weight is 2\.0"),
        ({"where": "colour = 'red'"}, "colour"),
    ):
        with pytest.raises(UsageError, match=message):
            collection.search("apple", **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="query 2 is empty"):
        list(collection.search_many(["apple", " "]))
    assert search(collection.stored, "a\0pple apple", SearchSettings(k=3))[0].text


def test_loading_and_searching_are_two_figures(reviews: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*_: object, **__: object) -> FakeEncoder:
        time.sleep(1.1)
        return FakeEncoder()

    monkeypatch.setattr("sonde.indexer.store.collection.load_encoder_for", slowly)
    opened = Collection.open(reviews)
    first, second = (opened.search("battery") for _ in range(2))
    assert first.loading_seconds > 1.1 > first.seconds > 0
    assert (second.loading_seconds, second.hits) == (0.0, first.hits)
    liked = Collection.open(reviews).like("battery")
    assert liked.loading_seconds > 1.1 > liked.seconds > 0
    assert Collection.open(reviews).search("battery", mode="lexical").loading_seconds < 1.1
    ran = sonde("search", reviews, "battery")
    assert re.fullmatch(r"loading the model and the indexes took \d\.\d s", ran.said[0])
    asked = reviews.parent / "asked.jsonl"
    asked.write_text("".join(f'{{"_id": "{n}", "text": "battery"}}\n' for n in range(3)))
    assert [line[:7] for line in sonde("search", reviews, "--queries", asked).said].count("loading") == 1
    assert int(ran.said[-1].rsplit(" · ", 1)[1].removesuffix(" ms").replace(",", "")) < 1_100


def test_a_second_stage_is_loaded_beside_the_search(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sonde.pipelines.search.rerank import models

    def slowly(*_: object, **__: object) -> LateInteraction:
        time.sleep(1.1)
        with opened.stored.view() as view:
            return LateInteraction(opened.stored.encoder, rarity(view, opened.stored.encoder))

    opened = Collection.open(reviews, encoder=FakeEncoder())  # type: ignore[arg-type]
    monkeypatch.setattr(models, "load_reranker", slowly)
    first, second = (opened.search("battery", rerank=True, rerank_model="org/name") for _ in range(2))
    assert first.loading_seconds > 1.1 > first.seconds > 0
    assert (second.loading_seconds, second.hits[0].id) == (0.0, first.hits[0].id)
    late = [opened.search("battery", rerank=True) for _ in range(2)]
    assert late[1].loading_seconds == 0.0


@pytest.mark.parametrize(("newer", "said"), [(0, ""), (1, " and an exact scan of 1 newer passage"),
                                             (2, " and an exact scan of 2 newer passages")])  # fmt: skip
def test_the_strategy_counts_newer_passages(newer: int, said: str) -> None:
    info = SimpleNamespace(rows=5, kind="hnsw", breadth=0)
    ann = SimpleNamespace(info=info, scans=lambda *_: False, place=SimpleNamespace(name="cpu"))
    view: Any = SimpleNamespace(generation=SimpleNamespace(ann=ann, owners=np.zeros(5 + newer)))
    assert DenseSearch(view, None).strategy(10) == f"hnsw{said}"

"""The second stage: late interaction against the naive computation, fusion, budget, paging, explanations, bad input."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder, word_id, word_vector, words

import sonde
from sonde.indexer.encoder import load_encoder
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.evaluate.search import evaluate_search, modes
from sonde.pipelines.evaluate.trec import run_queries
from sonde.pipelines.search.first_stage import FirstStage
from sonde.pipelines.search.fusion import Ranked
from sonde.pipelines.search.rerank import SecondStage, parse_budget
from sonde.pipelines.search.rerank.late import Rarity, maxsim
from sonde.pipelines.search.rerank.stage import agree_with_neighbours, fuse, portions
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import SearchSettings

NOUNS = ("winter", "sun", "basil", "engine", "letter", "river", "garden", "music", "price", "battery")
VERBS = ("likes", "breaks", "sells", "writes", "finds", "loses")


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> sonde.Collection:
    """180 documents of a few words each, some of them twice."""
    made = [f"{a} {verb} the {b}" for a, verb, b in itertools.product(NOUNS, VERBS, NOUNS[::2]) if a != b][:170]
    rows = [{"id": str(n), "text": text, "year": 2000 + n % 7} for n, text in enumerate([*made, *made[:10]])]
    folder = tmp_path_factory.mktemp("rerank") / "garden.sonde"
    return sonde.index(rows, folder, encoder=FakeEncoder())  # type: ignore[arg-type]


def unit(text: str) -> np.ndarray:
    vectors = np.array([word_vector(word_id(word)) for word in words(text)])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def naive_late(query: str, passages: list[str], idf: dict[str, float], other: float) -> list[float]:
    """Token by token, with the way back at 0.3."""
    found = []
    for passage in passages:
        similar = unit(query) @ unit(passage).T
        ours = [idf.get(word, other) for word in words(query)]
        theirs = [idf.get(word, other) for word in words(passage)]
        forward = sum(w * max(row) for w, row in zip(ours, similar, strict=True)) / sum(ours)
        back = sum(w * max(column) for w, column in zip(theirs, similar.T, strict=True)) / sum(theirs)
        found.append((forward + 0.3 * back) / 1.3)
    return found


def naive_scaled(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]


def naive_average(values: list[float], texts: list[str], share: float) -> list[float]:
    """Each value averaged with those of the five texts most alike."""
    vectors = FakeEncoder().encode_texts(texts).astype(np.float16).astype(np.float32)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = []
    for place, value in enumerate(values):
        near = sorted(((round(float(vectors[place] @ v), 6), -n) for n, v in enumerate(vectors) if n != place))[-5:]
        near = [(max(cosine, 0.0), -n) for cosine, n in near]
        mean = sum(cosine * values[n] for cosine, n in near) / sum(cosine for cosine, _ in near)
        found.append((1 - share) * value + share * mean)
    return found


def naive_order(query: str, first: list[sonde.Hit], cover: float, depth: int) -> dict[str, float]:
    """Scores of the documents that the second stage reads, from the definition.

    Args:
        query: The query.
        first: All documents in the order of the first stage.
        cover: Share of the query's words that one document has; 0 if it is not known.
        depth: How many documents are read.
    """
    dense = sorted((float(hit.scores.dense or 0) for hit in first[:depth]), reverse=True)
    fall = (dense[0] - dense[4]) / (dense[0] - dense[-1])
    share = 0.4 * min(1.0, max(0.0, (0.45 - fall) / 0.3)) * min(1.0, max(0.0, (0.95 - cover) / 0.2))
    texts = [hit.text for hit in first]
    chosen = [(hit.score, hit) for hit in first[:depth]]
    if share:
        averaged = naive_average(naive_scaled([hit.score for hit in first]), texts, share)
        pairs = sorted(zip(averaged, first, strict=True), key=lambda pair: (-round(pair[0], 6), int(pair[1].id)))
        chosen = pairs[:depth]
    counts = {word: sum(word in words(text) for text in texts) for text in texts for word in words(text)}
    total = len(texts)
    idf = {word: float(np.log(1 + (total - n + 0.5) / (n + 0.5))) for word, n in counts.items()}
    read = [hit.text for _, hit in chosen]
    late = naive_scaled(naive_late(query, read, idf, float(np.log(1 + (total + 0.5) / 0.5))))
    standing = naive_scaled([score for score, _ in chosen])
    fused = naive_average([0.6 * a + 0.4 * b for a, b in zip(standing, late, strict=True)], read, share)
    return {hit.id: 0.5 + 0.5 * score for (_, hit), score in zip(chosen, fused, strict=True)}


def covered(collection: sonde.Collection, query: str, mode: str) -> float:
    """Return the share of the query's words that one document has; 0 if the mode does not know it."""
    settings = SearchSettings(k=1, mode=mode)  # type: ignore[arg-type]
    with collection.stored.view() as view:
        [found] = FirstStage.over(view, settings).run([query], FakeEncoder().encode_texts([query]))
    return found.weight.cover if found.weight else 0.0


@pytest.mark.parametrize(
    "query", ["winter breaks the engine", "music", "a battery in the garden loses price", "winter sun music engine"]
)
@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_late_interaction_is_what_its_definition_says(garden: sonde.Collection, query: str, mode: str) -> None:
    plain = garden.search(query, k=180, mode=mode, collapse=False)  # type: ignore
    found = garden.search(query, k=20, mode=mode, rerank=True, rerank_depth=20, collapse=False)  # type: ignore
    assert len(plain) == 180
    expected = naive_order(query, list(plain), covered(garden, query, mode), 20)
    assert {hit.id for hit in found} == set(expected)
    assert {hit.id: hit.score for hit in found} == {key: pytest.approx(s, abs=2e-4) for key, s in expected.items()}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert found.reranking is not None and (found.reranking.depth, found.reranking.model) == (20, "late")
    assert all(hit.reranker == found.reranking for hit in found)


def test_maxsim_is_the_mean_of_the_best_similarities() -> None:
    chance = np.random.default_rng(0)
    query, passages = chance.standard_normal((4, 8)), [chance.standard_normal((n, 8)) for n in (1, 5, 9)]
    expected = [np.mean([max(q @ p for p in passage) for q in query]) for passage in passages]
    assert maxsim(query, passages) == pytest.approx(np.array(expected), abs=1e-6)
    weights = np.array([0.0, 0.0, 2.0, 0.0])
    assert maxsim(query, passages, weights) == pytest.approx([max(p @ query[2]) for p in passages], abs=1e-6)
    assert maxsim(query, passages, np.zeros(4)) == pytest.approx(np.array(expected), abs=1e-6)
    assert maxsim(query, []).tolist() == []


def test_rarity_counts_passages_and_knows_what_it_has_not_seen() -> None:
    rarity = Rarity.of([np.array([1, 1, 2]), np.array([2, 3]), np.array([2])])
    expected = [np.log(1 + (3 - n + 0.5) / (n + 0.5)) for n in (1, 3, 1, 0)]
    assert rarity(np.array([1, 2, 3, 99])) == pytest.approx(expected)
    assert Rarity.of([])(np.array([5])).tolist() == [pytest.approx(np.log(2))]


def test_fusion_scales_both_scores_and_neighbours_share_theirs() -> None:
    assert fuse(np.array([3.0, 1.0]), np.array([-2.0, 6.0]), 0.4).tolist() == pytest.approx([0.6, 0.4])
    assert fuse(np.array([1.0, 1.0]), np.array([5.0, 5.0]), 0.4).tolist() == [0, 0]
    vectors = np.array([[1, 0], [1, 0], [0, 1.0]])
    assert agree_with_neighbours(np.array([1.0, 0.0, 0.5]), vectors, 0.4).tolist() == pytest.approx([0.6, 0.4, 0.5])
    assert agree_with_neighbours(np.array([1.0]), vectors[:1], 0.4).tolist() == [1.0]


def pages(collection: sonde.Collection, size: int, count: int, **settings: Any) -> list[tuple[str, float]]:
    found, settings = [], {"rerank": True, "collapse": False} | settings
    for number in range(count):
        for hit in collection.search("winter garden music", k=size, offset=size * number, **settings):
            found.append((hit.id, hit.score))
    return found


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_pages_fit_together(garden: sonde.Collection, mode: str) -> None:
    small = pages(garden, 7, 8, mode=mode, rerank_depth=20)
    assert small == pages(garden, 14, 4, mode=mode, rerank_depth=20) == pages(garden, 56, 1, mode=mode, rerank_depth=20)
    assert len({key for key, _ in small}) == len(small) == 56
    assert [score for _, score in small] == sorted((score for _, score in small), reverse=True)
    assert small[19][1] >= 0.5 > small[20][1]
    plain = [hit.id for hit in garden.search("winter garden music", k=180, mode=mode, collapse=False)]  # type: ignore
    read = {key for key, _ in small[:20]}
    assert [key for key, _ in small[20:]] == [key for key in plain if key not in read][:36]


def test_pages_with_a_threshold_and_a_filter_fit_together(garden: sonde.Collection) -> None:
    settings = {"rerank_depth": 20, "threshold": 0.1, "where": "year > 2001"}
    assert pages(garden, 3, 4, **settings) == pages(garden, 12, 1, **settings)
    hits = garden.search("winter garden music", k=12, rerank=True, **settings)
    assert all(hit.scores.dense is not None and hit.scores.dense >= 0.1 for hit in hits)
    assert all(int(str(hit.metadata["year"])) > 2001 for hit in hits)


def test_many_queries_get_what_each_gets_alone(garden: sonde.Collection, tmp_path: Path) -> None:
    queries = [("a", "winter music"), ("b", "the price of basil"), ("c", "winter music")]
    settings = SearchSettings(k=30, rerank=True, rerank_depth=15, collapse=False)
    found = dict(run_queries(garden.stored, queries, settings, tmp_path / "run.trec"))
    for key, text in queries:
        assert [(h.id, h.score) for h in found[key]] == [(h.id, h.score) for h in search(garden.stored, text, settings)]
    lines = (tmp_path / "run.trec").read_text().splitlines()
    assert lines[0].endswith("sonde-hybrid-rerank")
    scores = [float(line.split()[4]) for line in lines if line.startswith("a ")]
    assert all(a > b for a, b in itertools.pairwise(scores[15:]))


class Clock:
    """Every look at it takes as long as was asked for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """Takes a tenth of a second for each passage; longer texts are better."""

    name, kind, unit, weight, agreement = "slow", "cross-encoder", "logit", 1.0, 0.0

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.read: list[int] = []

    def score(self, query: str, passages: list[str]) -> np.ndarray:
        self.clock.now += 0.1 * len(passages)
        self.read.append(len(passages))
        return np.array([len(passage) for passage in passages], float)

    def matches(self, query: str, passage: str) -> list[object]:
        return []


@pytest.mark.parametrize(("seconds", "depth"), [(0.05, 4), (0.95, 9), (1.25, 12), (60.0, 30), (None, 30)])
def test_a_budget_reads_the_best_documents_first(garden: sonde.Collection, seconds: float | None, depth: int) -> None:
    clock = Clock()
    slow = Slow(clock)
    with garden.stored.view() as view:
        rows = np.arange(40)
        ranked = Ranked(rows, np.linspace(1, 0.1, 40), None, None, 40)
        after, done = SecondStage(view, slow, 30, seconds, clock).run("x", ranked)  # type: ignore[arg-type]
    assert (done.depth, done.wanted, sum(slow.read)) == (depth, 30, depth)
    assert sorted(after.rows[:depth]) == list(range(depth)) and after.rows[depth:].tolist() == list(range(depth, 40))
    assert np.isnan(after.second[depth:]).all() and not np.isnan(after.second[:depth]).any()  # type: ignore[index]


def test_portions_cover_everything_once_and_never_end_empty() -> None:
    assert list(portions(0, None)) == [slice(0, 0)]
    assert list(portions(3, 9.0, lambda: 0.0)) == [slice(0, 3)]
    assert list(portions(200, 9.0, lambda: 0.0)) == [
        slice(0, 4),
        slice(4, 68),
        slice(68, 132),
        slice(132, 196),
        slice(196, 200),
    ]


@pytest.mark.parametrize(
    ("text", "seconds"), [("300ms", 0.3), ("1.5 s", 1.5), ("2min", 120.0), ("2m", 120.0), ("1h", 3_600.0)]
)
def test_budgets(text: str, seconds: float) -> None:
    assert parse_budget(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5 parsecs", "", "300", "-1s", "0ms", "ms", "1e9s"])
def test_a_budget_that_is_no_time(text: str) -> None:
    with pytest.raises(
        UsageError, match=f"^the budget {re.escape(repr(text))} is not a valid duration: write it as 300ms"
    ):
        parse_budget(text)


def test_settings_that_cannot_be(garden: sonde.Collection) -> None:
    with pytest.raises(UsageError, match=r"^rerank_depth is 0: let the second stage read at least 1 document$"):
        garden.search("winter", rerank=True, rerank_depth=0)
    with pytest.raises(UsageError, match=r"^there is no reranker 'lat': give late, a model's folder, or a hub name"):
        garden.search("winter", rerank=True, rerank_model="lat")
    with pytest.raises(UsageError, match=r"^there is no reranker './gone'"):
        garden.search("winter", rerank=True, rerank_model="./gone")
    with pytest.raises(UsageError, match="need rerank: use it too"):
        garden.search("winter", rerank_model="late")
    with pytest.raises(UsageError, match=r"^rerank is for searches"):
        garden.like("winter", rerank=True)


def test_a_model_that_cannot_be_had_fails_and_nothing_takes_its_place(
    garden: sonde.Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    name = "cross-encoder/ms-marco-MiniLM-L6-v2"
    with pytest.raises(SondeError, match=rf"^{name} is not in the hub's cache .*rerank_model ./folder"):
        garden.search("winter", rerank=True, rerank_model=name)


def test_evaluation_knows_the_mode_rerank(garden: sonde.Collection) -> None:
    pytest.importorskip("ir_measures")
    queries = [("q", "winter breaks the sun")]
    hybrid, rerank = evaluate_search(garden.stored, queries, {"q": {"0": 1, "3": 1}}, modes(["hybrid", "rerank"]))
    assert (hybrid.mode, hybrid.second_stage, rerank.mode) == ("hybrid", None, "rerank")
    assert rerank.second_stage == "late interaction over the best 50"
    assert rerank.to_dict()["second_stage"] == "late interaction over the best 50"
    hits = garden.search("winter breaks the sun", k=100, rerank=True)
    gain = sum(1 / np.log2(hit.rank + 1) for hit in hits[:10] if hit.id in ("0", "3"))
    assert rerank.measures["ndcg@10"] == pytest.approx(gain / (1 + 1 / np.log2(3)))


@pytest.fixture
def sonde_command(
    garden: sonde.Collection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def test_the_command_says_which_second_stage_ran(garden: sonde.Collection, sonde_command: Command) -> None:
    ran = sonde_command("search", garden.path, "winter music", "--rerank", "-k", 2)
    assert ran.code == 0 and "late interaction over the best 50, similarity" in ran.said[-1]
    assert "rerank 0." in ran.out
    ran = sonde_command("search", garden.path, "winter music", "--rerank-depth", 1, "-k", 2, "--json")
    first, second = (__import__("json").loads(line) for line in ran.out.splitlines())
    assert first["reranker"]["model"] == "late" and first["reranker"]["unit"] == "similarity"
    assert first["scores"]["rerank"] is not None and second["scores"]["rerank"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--rerank-budget", "5 parsecs"), ("'5 parsecs'", "300ms")),
        (("--rerank-depth", "0"), ("--rerank-depth is 0",)),
        (("--rerank-model", "latte"), ("'latte'", "late", "cross-encoder/ms-marco-MiniLM-L6-v2")),
    ],
)
def test_mistakes_on_the_command_line(
    garden: sonde.Collection, sonde_command: Command, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    sonde_command("search", garden.path, "winter", *options).refused(*words, code=2)


def test_the_default_bi_encoder_says_which_words_matched(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "title": "Phones", "text": "The batteries of this phone die within days."},
        {"id": "b", "title": "", "text": "Basil likes sun and water."},
        {"id": "c", "title": "", "text": "The parcel came late."},
    ]
    made = sonde.index(rows, tmp_path / "m.sonde", encoder=load_encoder())
    hit = made.search("which battery lasts", rerank=True, explain=True)[0]
    assert hit.id == "a" and hit.why is not None
    match = next(match for match in hit.why.matches if match.query == "battery")
    assert (match.word, match.title) == ("batteries", False) and hit.text[match.start : match.end] == "batteries"
    assert 0.5 < match.similarity <= 1
    assert "which" not in [match.query for match in hit.why.matches]
    [hit] = made.search("how was it", k=1, rerank=True, explain=True)
    assert hit.why is not None and {match.query for match in hit.why.matches} == {"how", "was", "it"}
    long = made.search("battery " * 5_000, rerank=True)
    assert long[0].id == "a" and any("the model reads the first 256" in note for note in long.notes)

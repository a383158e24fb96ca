"""Building vector indexes of every kind, adding to them, and choosing among them."""

import sys

import numpy as np
import pytest
from clustered import KINDS, clustered, naive, stored

from sonde.indexer.ann import AnnSettings, ArraySource, Kind, build
from sonde.indexer.errors import UsageError

pytest.importorskip("faiss")

ROWS = 4_000


@pytest.fixture(scope="module")
def source() -> ArraySource:
    return stored(clustered(ROWS))


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    return clustered(200, seed=1)


def test_dead_rows_are_left_out(source: ArraySource, queries: np.ndarray) -> None:
    alive = np.arange(ROWS) % 3 != 0
    for kind in ("exact", "hnsw", "ivf-sq8"):
        index = build(source, AnnSettings(kind=kind), alive=alive)
        assert (index.info.rows, index.info.vectors) == (ROWS, alive.sum())
        _, rows = index.search(queries, 10, vectors=source)
        assert (rows % 3 != 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_adding_reaches_what_building_reaches(kind: Kind, source: ArraySource, queries: np.ndarray) -> None:
    part = ArraySource(source.half[:2_500])
    index = build(part, AnnSettings(kind=kind))
    info = index.add(source, 2_500, ROWS)
    assert info.reason.startswith(f"{ROWS:,} vectors: {kind}, ") and info.reason.endswith("; as asked")
    assert (info.rows, info.vectors, info.reached) == (ROWS, ROWS, True)
    assert info is index.info
    scores, rows = index.search(queries, 10, vectors=source)
    assert (scores >= naive(source, queries, 10)[0][:, -1:] - 1e-6).mean() >= 0.97
    assert (rows >= 2_500).any()


def test_adding_rows_that_do_not_follow_is_refused(source: ArraySource) -> None:
    index = build(ArraySource(source.half[:100]), AnnSettings())
    with pytest.raises(UsageError, match="rows 200 to 300 cannot be added: the index covers 100 of 4000"):
        index.add(source, 200, 300)


def test_adding_in_drops_of_a_few_rows(source: ArraySource, queries: np.ndarray) -> None:
    index = build(ArraySource(source.half[:500]), AnnSettings(kind="hnsw"))
    for start in range(500, 530, 10):
        grown = ArraySource(source.half[: start + 10])
        info = index.add(grown, start, start + 10)
        assert info.recall >= 0.98
    assert index.search(source.read(np.array([525])), 1, vectors=source)[1].tolist() == [[525]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 11, 45])
def test_tiny_collections(kind: Kind, rows: int) -> None:
    source = stored(clustered(rows, 8))
    index = build(source, AnnSettings(kind=kind))
    _, found = index.search(source.read(np.arange(rows)), 3, vectors=source)
    assert found[:, 0].tolist() == list(range(rows))
    assert ((found >= 0).sum(axis=1) == min(3, rows)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_one_dimension(kind: Kind) -> None:
    source = stored(np.array([[0.25], [1.0], [-1.0], [0.5]]))
    index = build(source, AnnSettings(kind=kind, metric="dot"))
    scores, rows = index.search(np.array([[2.0]]), 3, vectors=source)
    assert (rows.tolist(), scores.tolist()) == ([[1, 3, 0]], [[2.0, 1.0, 0.5]])


@pytest.mark.parametrize("kind", KINDS)
def test_identical_vectors_come_in_row_order(kind: Kind) -> None:
    source = stored(np.ones((300, 8)) / np.sqrt(8))
    index = build(source, AnnSettings(kind=kind))
    assert (index.info.vectors, index.info.rows, index.info.recall) == (1, 300, 1.0)
    assert index.search(np.ones((1, 8)), 4, vectors=source)[1].tolist() == [[0, 1, 2, 3]]
    odd = np.arange(300) % 2 == 1
    assert index.search(np.ones((1, 8)), 4, allowed=odd, vectors=source)[1].tolist() == [[1, 3, 5, 7]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_crowd_of_duplicates_hides_nothing(kind: Kind, queries: np.ndarray) -> None:
    vectors = clustered(3_000)
    vectors[1_000:2_500] = vectors[10]
    source = stored(vectors)
    index = build(source, AnnSettings(kind=kind))
    assert index.info.vectors == 1_500
    scores, _ = index.search(queries, 10, vectors=source)
    assert (scores >= naive(source, queries, 10)[0][:, -1:] - 1e-6).mean() >= 0.97
    assert index.search(vectors[10:11], 3, vectors=source)[1].tolist() == [[10, 1_000, 1_001]]


def test_unnormalised_vectors_by_inner_product(queries: np.ndarray) -> None:
    lengths = np.random.default_rng(5).uniform(0.2, 3, size=(1_500, 1))
    source = stored(clustered(1_500) * lengths)
    for kind in KINDS:
        index = build(source, AnnSettings(kind=kind, metric="dot"))
        scores, _ = index.search(queries, 10, vectors=source)
        assert (scores >= naive(source, queries, 10)[0][:, -1:] - 1e-5).mean() >= 0.97, kind


def test_another_breadth_keeps_the_number_of_candidates(source: ArraySource) -> None:
    for kind in KINDS[1:]:
        index = build(source, AnnSettings(kind=kind))
        kept = dict(index.tuned(7).info.parameters)
        before = dict(index.info.parameters)
        name = "efSearch" if kind.startswith("hnsw") else "nprobe"
        assert kept.pop(name) == 7 and before.pop(name)
        assert kept == before, kind


def test_short_codes_find_more_for_the_longer_ones_to_rescore(source: ArraySource, queries: np.ndarray) -> None:
    index = build(source, AnnSettings(kind="ivf-fastscan"))
    truth = naive(source, queries, 10)[0][:, -1:] - 1e-5
    found = [(index.tuned(1_000, k).search(queries, 10, vectors=source)[0] >= truth).mean() for k in (1, 2, 8, 64)]
    assert found == sorted(found) and found[0] < 0.97 and found[-1] > 0.99, found
    assert index.info.parameters["factor"] == 1, "stored vectors are read for the answers and few more"


def test_an_unreachable_target_is_reported(monkeypatch: pytest.MonkeyPatch, source: ArraySource) -> None:
    monkeypatch.setattr(sys.modules["sonde.indexer.ann.kinds"], "BREADTHS", (1,))
    info = build(source, AnnSettings(kind="hnsw", target_recall=1.0)).info
    assert not info.reached
    assert info.recall < info.target


def test_the_choice_follows_size_and_budget(source: ArraySource) -> None:
    choose = sys.modules["sonde.indexer.ann.kinds"].choose_kind

    def chosen(vectors: int, megabytes: int) -> str:
        return choose(AnnSettings(memory_budget=megabytes * 10**6), 384, vectors)[0]

    assert chosen(40_000, 2_000) == "exact"
    assert chosen(500_000, 2_000) == "ivf-fastscan"
    assert chosen(500_000, 300) == "ivf-fastscan"
    assert chosen(500_000, 80) == "ivf-rabitq"
    assert chosen(500_000, 10) == "ivf-rabitq"
    assert chosen(5_000_000, 20_000) == "ivf-fastscan"
    assert choose(AnnSettings(memory_budget=600 * 10**6), 384, 500_000)[1] == (
        "500,000 vectors: ivf-fastscan, 258 MB; an inverted file, within the budget of 600 MB"
    )
    assert build(source, AnnSettings()).info.kind == "exact"


def test_threads_are_given_back(source: ArraySource) -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    build(source, AnnSettings(kind="ivf", threads=before + 1))
    assert faiss.omp_get_max_threads() == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "lsh"}, "index kind 'lsh' is unknown; choose one of auto, exact, hnsw"),
        ({"target_recall": 1.2}, "target_recall is 1.2: give a number above 0 and at most 1"),
        ({"memory_budget": 0}, "memory_budget is 0 bytes: give a number above 0"),
        ({"threads": 0}, "threads is 0"),
        ({"device": "tpu"}, "device 'tpu' is unknown; choose one of auto, cpu, cuda"),
        ({"metric": "l2"}, "metric 'l2' is unknown"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        AnnSettings(**wrong)

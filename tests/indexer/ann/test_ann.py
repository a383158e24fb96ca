"""Every kind of vector index against a naive scan."""

import numpy as np
import pytest
from clustered import KINDS, clustered, naive, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.indexer.ann import AnnIndex, AnnSettings, ArraySource, build, exact_search, to_float32
from sonde.indexer.errors import UsageError

pytest.importorskip("faiss")

ROWS = 4_000


@pytest.fixture(scope="module")
def source() -> ArraySource:
    return stored(clustered(ROWS))


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    return clustered(200, seed=1)


@pytest.fixture(scope="module")
def indexes(source: ArraySource) -> dict[str, AnnIndex]:
    return {kind: build(source, AnnSettings(kind=kind, threads=2)) for kind in KINDS}


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, indexes: dict[str, AnnIndex]) -> AnnIndex:
    return indexes[request.param]


def test_exact_search_equals_the_naive_scan(source: ArraySource, queries: np.ndarray) -> None:
    scores, rows = exact_search(source, queries, 10)
    expected_scores, expected_rows = naive(source, queries, 10)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)


@pytest.mark.parametrize("share", [0.9, 0.3, 0.01])
def test_exact_search_under_a_mask(source: ArraySource, queries: np.ndarray, share: float) -> None:
    allowed = np.random.default_rng(3).random(ROWS) < share
    expected = naive(source, queries[:20], 5, allowed)[1]
    np.testing.assert_array_equal(exact_search(source, queries[:20], 5, allowed=allowed)[1], expected)
    shuffled = np.random.default_rng(4).permutation(np.flatnonzero(allowed))
    np.testing.assert_array_equal(exact_search(source, queries[:20], 5, rows=shuffled)[1], expected)


def test_exact_search_across_blocks_keeps_ties_in_row_order() -> None:
    vectors = np.zeros((20_000, 4), dtype=np.float32)
    vectors[:, 0] = 0.5
    vectors[[7, 9_000, 19_999], 0] = 1
    scores, rows = exact_search(stored(vectors), np.eye(4, dtype=np.float32)[:1], 5)
    assert rows.tolist() == [[7, 9_000, 19_999, 0, 1]]
    assert scores.tolist() == [[1, 1, 1, 0.5, 0.5]]


def test_exact_search_pads_what_is_missing(source: ArraySource, queries: np.ndarray) -> None:
    scores, rows = exact_search(source, queries[:1], 4, rows=np.array([5, 3]))
    assert sorted(rows[0, :2]) == [3, 5]
    assert rows[0, 2:].tolist() == [-1, -1]
    assert np.isneginf(scores[0, 2:]).all()
    assert exact_search(source, queries[:1], 2, rows=np.array([], dtype=int))[1].tolist() == [[-1, -1]]


def test_each_kind_reaches_its_target_on_fresh_queries(
    index: AnnIndex, source: ArraySource, queries: np.ndarray
) -> None:
    scores, _ = index.search(queries, 10, vectors=source)
    truth = naive(source, queries, 10)[0]
    assert (scores >= truth[:, -1:] - 1e-6).mean() >= 0.97
    assert index.info.reached
    assert index.info.recall >= 0.98
    assert index.info.latency_ms > 0


def test_scores_are_those_of_the_stored_vectors(index: AnnIndex, source: ArraySource, queries: np.ndarray) -> None:
    scores, rows = index.search(queries, 10, vectors=source)
    products = np.einsum("qd,qkd->qk", queries, source.read(rows.ravel()).reshape(*rows.shape, -1))
    np.testing.assert_allclose(scores, products, atol=1e-6)
    assert (np.diff(scores, axis=1) <= 0).all()
    for row in rows:
        assert len(set(row)) == 10


def test_the_exact_kind_and_lossless_graph_scan_give_the_naive_rows(
    indexes: dict[str, AnnIndex], source: ArraySource, queries: np.ndarray
) -> None:
    assert indexes["hnsw"].scans(10, 300)
    allowed = np.arange(ROWS) % 50 == 0
    expected = naive(source, queries, 10, allowed)[1]
    for kind in KINDS:
        np.testing.assert_array_equal(indexes[kind].search(queries, 10, allowed=allowed, vectors=source)[1], expected)
    np.testing.assert_array_equal(
        indexes["exact"].search(queries, 10, vectors=source)[1], naive(source, queries, 10)[1]
    )


@settings(max_examples=20)
@given(share=st.floats(0, 1), seed=st.integers(0, 1000), k=st.integers(1, 40))
def test_a_filter_is_obeyed_and_never_under_returns(
    indexes: dict[str, AnnIndex], source: ArraySource, share: float, seed: int, k: int
) -> None:
    allowed = np.random.default_rng(seed).random(ROWS) < share**3
    query = clustered(2, seed=seed)
    expected = min(k, int(allowed.sum()))
    for index in indexes.values():
        scores, rows = index.search(query, k, allowed=allowed, vectors=source)
        found = rows[rows >= 0]
        assert allowed[found].all()
        assert ((rows >= 0).sum(axis=1) == expected).all()
        assert (np.isneginf(scores) == (rows < 0)).all()
        if index.scans(k, int(allowed.sum())) and index.info.kind in ("exact", "hnsw"):
            np.testing.assert_array_equal(rows, exact_search(source, query, k, allowed=allowed)[1])


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_recall_holds_under_a_wide_filter(
    index: AnnIndex, source: ArraySource, queries: np.ndarray, share: float
) -> None:
    allowed = np.random.default_rng(8).random(ROWS) < share
    scores, _ = index.search(queries, 10, allowed=allowed, vectors=source)
    assert (scores >= naive(source, queries, 10, allowed)[0][:, -1:] - 1e-6).mean() >= 0.97


def test_a_read_only_mask_is_remembered_and_a_changed_one_is_not(
    index: AnnIndex, source: ArraySource, queries: np.ndarray
) -> None:
    fixed = np.arange(ROWS) < 50
    fixed.flags.writeable = False
    for _ in range(2):
        assert index.search(queries[:1], 3, allowed=fixed, vectors=source)[1].max() < 50
    loose = np.arange(ROWS) < 50
    index.search(queries[:1], 3, allowed=loose, vectors=source)
    loose[:] = ~loose
    assert index.search(queries[:1], 3, allowed=loose, vectors=source)[1].min() >= 50


@pytest.mark.parametrize("k", [1, 100, ROWS, ROWS + 7])
def test_any_k_gets_as_many_answers_as_there_are(
    index: AnnIndex, source: ArraySource, queries: np.ndarray, k: int
) -> None:
    scores, rows = index.search(queries[:2], k, vectors=source)
    assert rows.shape == (2, k)
    assert ((rows >= 0).sum(axis=1) == min(k, ROWS)).all()
    truth = naive(source, queries[:2], k)[0]
    np.testing.assert_allclose(scores[:, : min(k, 100) // 2], truth[:, : min(k, 100) // 2], atol=0.05)


def test_wrong_requests_are_refused(index: AnnIndex, source: ArraySource, queries: np.ndarray) -> None:
    with pytest.raises(UsageError, match="k is 0"):
        index.search(queries, 0, vectors=source)
    with pytest.raises(UsageError, match=r"queries have shape \(1, 5\), the vectors need \(n, 32\)"):
        index.search(np.ones((1, 5)), 1, vectors=source)
    with pytest.raises(UsageError, match="the mask covers 9 rows, the index 4000"):
        index.search(queries, 1, allowed=np.ones(9, dtype=bool), vectors=source)
    with pytest.raises(UsageError, match="there is no live row to index"):
        build(source, AnnSettings(), alive=np.zeros(ROWS, dtype=bool))


def test_widening_is_exact() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(to_float32(every), every.astype(np.float32))

"""Every kind of vector index against a naive scan."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.indexer.ann import AnnIndex, AnnInfo, AnnSettings, Kind, build, exact_search, load, widen
from sonde.indexer.errors import SondeError, UsageError

pytest.importorskip("faiss")

KINDS: tuple[Kind, ...] = ("exact", "hnsw", "hnsw-sq8", "ivf", "ivf-sq8", "ivf-rabitq")
ROWS, DIMENSION = 4_000, 32


class Memory:
    """float16 vectors in memory."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.half = np.asarray(vectors, dtype=np.float16)

    @property
    def dimension(self) -> int:
        return self.half.shape[1]

    def __len__(self) -> int:
        return len(self.half)

    def read(self, rows: np.ndarray) -> np.ndarray:
        return widen(self.half[rows])

    def chunks(self, size: int):
        for start in range(0, len(self.half), size):
            yield start, widen(self.half[start : start + size])


def clustered(rows: int, dimension: int = DIMENSION, seed: int = 0) -> np.ndarray:
    """Unit vectors around 30 centres, as texts of a few topics lie."""
    centres = np.random.default_rng(99).standard_normal((30, dimension))
    random = np.random.default_rng(seed)
    points = centres[random.integers(30, size=rows)] + 0.8 * random.standard_normal((rows, dimension))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def naive(source: Memory, queries: np.ndarray, k: int, allowed: np.ndarray | None = None):
    """The best k rows by float64 products, ties by row."""
    rows = np.arange(len(source)) if allowed is None else np.flatnonzero(allowed)
    scores = queries.astype(np.float64) @ source.half[rows].astype(np.float64).T
    order = [np.lexsort((rows, -row))[:k] for row in scores]
    return np.array([s[o] for s, o in zip(scores, order, strict=True)]), np.array([rows[o] for o in order])


@pytest.fixture(scope="module")
def source() -> Memory:
    return Memory(clustered(ROWS))


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    return clustered(200, seed=1)


@pytest.fixture(scope="module")
def indexes(source: Memory) -> dict[str, AnnIndex]:
    return {kind: build(source, AnnSettings(kind=kind, threads=2)) for kind in KINDS}


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, indexes: dict[str, AnnIndex]) -> AnnIndex:
    return indexes[request.param]


def test_exact_search_equals_the_naive_scan(source: Memory, queries: np.ndarray) -> None:
    scores, rows = exact_search(source, queries, 10)
    expected_scores, expected_rows = naive(source, queries, 10)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)


@pytest.mark.parametrize("share", [0.9, 0.3, 0.01])
def test_exact_search_under_a_mask(source: Memory, queries: np.ndarray, share: float) -> None:
    allowed = np.random.default_rng(3).random(ROWS) < share
    expected = naive(source, queries[:20], 5, allowed)[1]
    np.testing.assert_array_equal(exact_search(source, queries[:20], 5, allowed=allowed)[1], expected)
    shuffled = np.random.default_rng(4).permutation(np.flatnonzero(allowed))
    np.testing.assert_array_equal(exact_search(source, queries[:20], 5, rows=shuffled)[1], expected)


def test_exact_search_across_blocks_keeps_ties_in_row_order() -> None:
    vectors = np.zeros((20_000, 4), dtype=np.float32)
    vectors[:, 0] = 0.5
    vectors[[7, 9_000, 19_999], 0] = 1
    scores, rows = exact_search(Memory(vectors), np.eye(4, dtype=np.float32)[:1], 5)
    assert rows.tolist() == [[7, 9_000, 19_999, 0, 1]]
    assert scores.tolist() == [[1, 1, 1, 0.5, 0.5]]


def test_exact_search_pads_what_is_missing(source: Memory, queries: np.ndarray) -> None:
    scores, rows = exact_search(source, queries[:1], 4, rows=np.array([5, 3]))
    assert sorted(rows[0, :2]) == [3, 5]
    assert rows[0, 2:].tolist() == [-1, -1]
    assert np.isneginf(scores[0, 2:]).all()
    assert exact_search(source, queries[:1], 2, rows=np.array([], dtype=int))[1].tolist() == [[-1, -1]]


def test_each_kind_reaches_its_target_on_fresh_queries(index: AnnIndex, source: Memory, queries: np.ndarray) -> None:
    scores, _ = index.search(queries, 10, vectors=source)
    truth = naive(source, queries, 10)[0]
    assert (scores >= truth[:, -1:] - 1e-6).mean() >= 0.97
    assert index.info.reached
    assert index.info.recall >= 0.98
    assert index.info.latency_ms > 0


def test_scores_are_those_of_the_stored_vectors(index: AnnIndex, source: Memory, queries: np.ndarray) -> None:
    scores, rows = index.search(queries, 10, vectors=source)
    products = np.einsum("qd,qkd->qk", queries, source.read(rows.ravel()).reshape(*rows.shape, -1))
    np.testing.assert_allclose(scores, products, atol=1e-6)
    assert (np.diff(scores, axis=1) <= 0).all()
    for row in rows:
        assert len(set(row)) == 10


def test_the_exact_kind_and_lossless_graph_scan_give_the_naive_rows(
    indexes: dict[str, AnnIndex], source: Memory, queries: np.ndarray
) -> None:
    assert indexes["hnsw"].scans(10, 300)
    allowed = np.arange(ROWS) % 20 == 0
    expected = naive(source, queries, 10, allowed)[1]
    for kind in KINDS:
        np.testing.assert_array_equal(indexes[kind].search(queries, 10, allowed=allowed, vectors=source)[1], expected)
    np.testing.assert_array_equal(
        indexes["exact"].search(queries, 10, vectors=source)[1], naive(source, queries, 10)[1]
    )


@settings(max_examples=20)
@given(share=st.floats(0, 1), seed=st.integers(0, 1000), k=st.integers(1, 40))
def test_a_filter_is_obeyed_and_never_under_returns(
    indexes: dict[str, AnnIndex], source: Memory, share: float, seed: int, k: int
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
def test_recall_holds_under_a_wide_filter(index: AnnIndex, source: Memory, queries: np.ndarray, share: float) -> None:
    allowed = np.random.default_rng(8).random(ROWS) < share
    scores, _ = index.search(queries, 10, allowed=allowed, vectors=source)
    assert (scores >= naive(source, queries, 10, allowed)[0][:, -1:] - 1e-6).mean() >= 0.97


def test_a_read_only_mask_is_remembered_and_a_changed_one_is_not(
    index: AnnIndex, source: Memory, queries: np.ndarray
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
def test_any_k_gets_as_many_answers_as_there_are(index: AnnIndex, source: Memory, queries: np.ndarray, k: int) -> None:
    scores, rows = index.search(queries[:2], k, vectors=source)
    assert rows.shape == (2, k)
    assert ((rows >= 0).sum(axis=1) == min(k, ROWS)).all()
    truth = naive(source, queries[:2], k)[0]
    np.testing.assert_allclose(scores[:, : min(k, 100) // 2], truth[:, : min(k, 100) // 2], atol=0.05)


def test_dead_rows_are_left_out(source: Memory, queries: np.ndarray) -> None:
    alive = np.arange(ROWS) % 3 != 0
    for kind in ("exact", "hnsw", "ivf-sq8"):
        index = build(source, AnnSettings(kind=kind), alive=alive)
        assert (index.info.rows, index.info.vectors) == (ROWS, alive.sum())
        _, rows = index.search(queries, 10, vectors=source)
        assert (rows % 3 != 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_adding_reaches_what_building_reaches(kind: Kind, source: Memory, queries: np.ndarray) -> None:
    part = Memory(source.half[:2_500])
    index = build(part, AnnSettings(kind=kind))
    info = index.add(source, 2_500, ROWS)
    assert (info.rows, info.vectors, info.reached) == (ROWS, ROWS, True)
    assert info is index.info
    scores, rows = index.search(queries, 10, vectors=source)
    assert (scores >= naive(source, queries, 10)[0][:, -1:] - 1e-6).mean() >= 0.97
    assert (rows >= 2_500).any()


def test_adding_rows_that_do_not_follow_is_refused(source: Memory) -> None:
    index = build(Memory(source.half[:100]), AnnSettings())
    with pytest.raises(UsageError, match="rows 200 to 300 cannot be added: the index covers 100 of 4000"):
        index.add(source, 200, 300)


def test_adding_in_drops_of_a_few_rows(source: Memory, queries: np.ndarray) -> None:
    index = build(Memory(source.half[:500]), AnnSettings(kind="hnsw"))
    for start in range(500, 530, 10):
        grown = Memory(source.half[: start + 10])
        info = index.add(grown, start, start + 10)
        assert info.recall >= 0.98
    assert index.search(source.read(np.array([525])), 1, vectors=source)[1].tolist() == [[525]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 11, 45])
def test_tiny_collections(kind: Kind, rows: int) -> None:
    source = Memory(clustered(rows, 8))
    index = build(source, AnnSettings(kind=kind))
    _, found = index.search(source.read(np.arange(rows)), 3, vectors=source)
    assert found[:, 0].tolist() == list(range(rows))
    assert ((found >= 0).sum(axis=1) == min(3, rows)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_one_dimension(kind: Kind) -> None:
    source = Memory(np.array([[0.25], [1.0], [-1.0], [0.5]]))
    index = build(source, AnnSettings(kind=kind, metric="dot"))
    scores, rows = index.search(np.array([[2.0]]), 3, vectors=source)
    assert (rows.tolist(), scores.tolist()) == ([[1, 3, 0]], [[2.0, 1.0, 0.5]])


@pytest.mark.parametrize("kind", KINDS)
def test_identical_vectors_come_in_row_order(kind: Kind) -> None:
    source = Memory(np.ones((300, 8)) / np.sqrt(8))
    index = build(source, AnnSettings(kind=kind))
    assert (index.info.vectors, index.info.rows, index.info.recall) == (1, 300, 1.0)
    assert index.search(np.ones((1, 8)), 4, vectors=source)[1].tolist() == [[0, 1, 2, 3]]
    odd = np.arange(300) % 2 == 1
    assert index.search(np.ones((1, 8)), 4, allowed=odd, vectors=source)[1].tolist() == [[1, 3, 5, 7]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_crowd_of_duplicates_hides_nothing(kind: Kind, queries: np.ndarray) -> None:
    vectors = clustered(3_000)
    vectors[1_000:2_500] = vectors[10]
    source = Memory(vectors)
    index = build(source, AnnSettings(kind=kind))
    assert index.info.vectors == 1_500
    scores, _ = index.search(queries, 10, vectors=source)
    assert (scores >= naive(source, queries, 10)[0][:, -1:] - 1e-6).mean() >= 0.97
    assert index.search(vectors[10:11], 3, vectors=source)[1].tolist() == [[10, 1_000, 1_001]]


def test_unnormalised_vectors_by_inner_product(queries: np.ndarray) -> None:
    lengths = np.random.default_rng(5).uniform(0.2, 3, size=(1_500, 1))
    source = Memory(clustered(1_500) * lengths)
    for kind in KINDS:
        index = build(source, AnnSettings(kind=kind, metric="dot"))
        scores, _ = index.search(queries, 10, vectors=source)
        assert (scores >= naive(source, queries, 10)[0][:, -1:] - 1e-5).mean() >= 0.97, kind


def test_an_unreachable_target_is_reported(monkeypatch: pytest.MonkeyPatch, source: Memory) -> None:
    monkeypatch.setattr(sys.modules["sonde.indexer.ann.kinds"], "BREADTHS", (1,))
    info = build(source, AnnSettings(kind="hnsw", target_recall=1.0)).info
    assert not info.reached
    assert info.recall < info.target


def test_the_choice_follows_size_and_budget(source: Memory) -> None:
    choose = sys.modules["sonde.indexer.ann.choice"].choose

    def chosen(vectors: int, megabytes: int) -> str:
        return choose(AnnSettings(memory_budget=megabytes * 10**6), 384, vectors)[0]

    assert chosen(40_000, 2_000) == "exact"
    assert chosen(500_000, 2_000) == "hnsw"
    assert chosen(500_000, 400) == "hnsw-sq8"
    assert chosen(500_000, 250) == "ivf-sq8"
    assert chosen(500_000, 80) == "ivf-rabitq"
    assert chosen(500_000, 10) == "ivf-rabitq"
    assert chosen(5_000_000, 20_000) == "ivf-sq8"
    assert choose(AnnSettings(memory_budget=600 * 10**6), 384, 500_000)[1] == (
        "500,000 vectors: hnsw, 540 MB; a graph, within the budget of 600 MB"
    )
    assert build(source, AnnSettings()).info.kind == "exact"


@pytest.mark.parametrize("mmap", [False, True])
def test_a_saved_index_answers_the_same(
    index: AnnIndex, source: Memory, queries: np.ndarray, tmp_path: Path, mmap: bool
) -> None:
    info = index.save(tmp_path)
    assert info.bytes == sum(file.stat().st_size for file in tmp_path.glob("*/*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [info.digest[:16], "info.json"]
    again = load(tmp_path, mmap=mmap)
    assert again.info == info
    allowed = np.arange(ROWS) % 2 == 0
    for mask in (None, allowed):
        for one, other in zip(
            index.search(queries, 10, allowed=mask, vectors=source),
            again.search(queries, 10, allowed=mask, vectors=source),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_saving_replaces_and_sweeps(source: Memory, tmp_path: Path) -> None:
    index = build(Memory(source.half[:200]), AnnSettings(kind="hnsw"))
    first = index.save(tmp_path)
    (tmp_path / ".new-left-by-a-kill").mkdir()
    assert index.save(tmp_path).digest == first.digest
    index.add(source, 200, 400)
    second = index.save(tmp_path)
    assert second.digest != first.digest
    assert sorted(path.name for path in tmp_path.iterdir()) == [second.digest[:16], "info.json"]
    assert load(tmp_path).info.rows == 400


@pytest.fixture(scope="module")
def saved(indexes: dict[str, AnnIndex], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    indexes["hnsw"].save(folder)
    return folder


@pytest.mark.parametrize("name", ["index.faiss", "rows.npy"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "delete"])
def test_a_damaged_index_is_refused_in_one_line(saved: Path, tmp_path: Path, name: str, damage: str) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    (file,) = tmp_path.glob(f"*/{name}")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "delete":
        file.unlink()
    else:
        file.write_bytes({"truncate": content[:-9], "flip": content, "empty": b""}[damage])
    with pytest.raises(SondeError, match=r"cannot be used .*; rebuild it from the vectors") as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "hnsw"}', "null"])
def test_a_damaged_description_is_refused(saved: Path, tmp_path: Path, content: str) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    (tmp_path / "info.json").write_text(content)
    with pytest.raises(SondeError, match="cannot be used"):
        load(tmp_path)


def test_a_missing_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SondeError, match="cannot be used"):
        load(tmp_path / "nowhere")


def test_saving_where_nothing_can_be_written_says_so(source: Memory, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SondeError, match="the index cannot be written to"):
        build(Memory(source.half[:20]), AnnSettings()).save(tmp_path / "file")


def test_a_description_survives_json(index: AnnIndex) -> None:
    assert AnnInfo.from_dict(index.info.to_dict()) == index.info


def test_the_size_is_foreseen(index: AnnIndex, tmp_path: Path) -> None:
    foreseen = index.info.bytes
    assert foreseen == pytest.approx(index.save(tmp_path).bytes, rel=0.15)


def test_equal_input_gives_an_equal_index(source: Memory, tmp_path: Path) -> None:
    source = Memory(source.half[:1_200])
    for kind in KINDS:
        digests = {
            build(source, AnnSettings(kind=kind, seed=7, threads=1)).save(tmp_path / f"{kind}{turn}").digest
            for turn in range(2)
        }
        assert len(digests) == 1, kind


def test_threads_are_given_back(source: Memory) -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    build(source, AnnSettings(kind="ivf", threads=before + 1))
    assert faiss.omp_get_max_threads() == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "lsh"}, "index kind 'lsh' is unknown; choose one of auto, exact, hnsw"),
        ({"target_recall": 1.2}, "target recall is 1.2"),
        ({"memory_budget": 0}, "memory budget is 0 bytes"),
        ({"threads": 0}, "threads is 0"),
        ({"device": "tpu"}, "device 'tpu' is unknown; choose one of cpu, cuda"),
        ({"metric": "l2"}, "metric 'l2' is unknown"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        AnnSettings(**wrong)


def test_wrong_requests_are_refused(index: AnnIndex, source: Memory, queries: np.ndarray) -> None:
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
    np.testing.assert_array_equal(widen(every), every.astype(np.float32))

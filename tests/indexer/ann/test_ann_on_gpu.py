"""The vector index on a GPU, against a stand-in of FAISS's GPU calls: what is built, sent, asked; and the answers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from clustered import clustered, naive, stored
from gpu_faiss import GpuFaiss, stand_in

from sonde.indexer.ann import AnnIndex, AnnSettings, ArraySource, Kind, build, load_index, place
from sonde.indexer.ann.devices import computing_on, search_device
from sonde.indexer.ann.kinds import OnGpu, bytes_on_gpu, candidates, choose_kind, create_index
from sonde.indexer.ann.settings import GPU_KINDS
from sonde.indexer.errors import UsageError
from sonde.indexer.progress import Notice

ROWS = 3_000
QUERIES = clustered(40, seed=5)
SOURCE = stored(clustered(ROWS))
THIRD = np.arange(ROWS) % 3 == 0


@pytest.fixture
def cuvs(monkeypatch: pytest.MonkeyPatch) -> GpuFaiss:
    return stand_in(monkeypatch)


@pytest.fixture
def classic(monkeypatch: pytest.MonkeyPatch) -> GpuFaiss:
    return stand_in(monkeypatch, cuvs=False)


def saved(kind: Kind, folder: Path, device: str = "cuda", source: ArraySource = SOURCE) -> AnnIndex:
    built = build(source, AnnSettings(kind=kind, device=device))
    built.save(folder)
    return built


def agree(found: tuple[np.ndarray, np.ndarray], scores: np.ndarray, rows: np.ndarray, least: float = 1.0) -> None:
    """Most of the rows are the right ones, and each score is that of its row."""
    same = found[1] == rows
    assert same.mean() >= least
    np.testing.assert_allclose(found[0][same], scores[same], atol=1e-6)


@pytest.mark.parametrize("kind", GPU_KINDS)
@pytest.mark.parametrize("allowed", [None, THIRD], ids=["everything", "filtered"])
def test_a_gpu_answers_as_the_exact_scan(
    kind: Kind, allowed: np.ndarray | None, cuvs: GpuFaiss, tmp_path: Path
) -> None:
    saved(kind, tmp_path)
    index = load_index(tmp_path, device="cuda:1")
    cuvs.calls.clear()
    found = index.search(QUERIES, 10, allowed=allowed, vectors=SOURCE)
    agree(found, *naive(SOURCE, QUERIES, 10, allowed), least=1.0 if kind == "exact" else 0.9)
    if allowed is None or kind == "exact":
        assert {call.device for call in cuvs.of("search")} == {1}


def test_what_is_sent_to_the_gpu_and_asked_of_it(cuvs: GpuFaiss, tmp_path: Path) -> None:
    expected: dict[Kind, tuple[str, bool]] = {
        "ivf": ("IndexIVFScalarQuantizer", False),
        "ivf-sq8": ("IndexIVFScalarQuantizer", True),
        "ivf-pq": ("IndexIVFPQ", True),
        "cagra": ("IndexHNSWCagra", True),
    }
    for kind, (name, with_cuvs) in expected.items():
        info = saved(kind, tmp_path / kind).info
        cuvs.calls.clear()
        load_index(tmp_path / kind, device="cuda:1").search(QUERIES, 10, vectors=SOURCE)
        (put,), (search,) = cuvs.of("put"), cuvs.of("search")
        assert (put.index, put.device, put.more) == (name, 1, {"cuvs": with_cuvs})
        assert search.more["queries"] == 40 and search.more["k"] == 10 * info.factor + 4
        if kind == "cagra":
            assert search.more["itopk_size"] == 32 * -(-max(info.breadth, search.more["k"]) // 32)
        else:
            assert search.more["nprobe"] == info.breadth


def test_the_exact_kind_is_a_float16_scan_with_more_candidates(cuvs: GpuFaiss, tmp_path: Path) -> None:
    saved("exact", tmp_path)
    cuvs.calls.clear()
    load_index(tmp_path, device="cuda").search(QUERIES, 10, vectors=SOURCE)
    (flat,), (search,) = cuvs.of("flat"), cuvs.of("search")
    assert (flat.device, flat.more) == (0, {"half": True, "cuvs": True})
    assert search.more["k"] == 4 * 14 + 32


def test_a_scan_is_exact_although_the_gpu_rounds_queries(cuvs: GpuFaiss, tmp_path: Path) -> None:
    """Four hundred vectors that float16 queries cannot tell apart: what the GPU returns is not trusted."""
    rng = np.random.default_rng(0)
    near = clustered(1)[0] + 2e-4 * rng.standard_normal((400, 32))
    source = stored(near.astype(np.float32))
    saved("exact", tmp_path, source=source)
    query = near[:20].astype(np.float32)
    scores, rows = load_index(tmp_path, device="cuda").search(query, 10, vectors=source)
    np.testing.assert_array_equal(scores, load_index(tmp_path).search(query, 10, vectors=source)[0])
    np.testing.assert_array_equal(rows, load_index(tmp_path).search(query, 10, vectors=source)[1])


def test_a_filter_is_a_bitmap_with_cuvs_and_a_scan_of_what_it_leaves_without(
    classic: GpuFaiss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "SMALL_SUBSET", 100)
    expected = naive(SOURCE, QUERIES, 10, THIRD)
    for kind in ("exact", "ivf", "ivf-sq8", "ivf-pq"):
        saved(kind, tmp_path / kind)
        index = load_index(tmp_path / kind, device="cuda")
        classic.calls.clear()
        mask = THIRD.copy()
        mask.flags.writeable = False
        for _ in range(2):
            agree(index.search(QUERIES, 10, allowed=mask, vectors=SOURCE), *expected)
        assert [call.more["filtered"] for call in classic.of("search")] == [False, False]
        assert [call.more["vectors"] for call in classic.of("add")] == [1_000], "sent once for the same mask"


def test_float16_inverted_files_ignore_filters_also_with_cuvs(
    cuvs: GpuFaiss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "SMALL_SUBSET", 100)
    saved("ivf", tmp_path)
    index = load_index(tmp_path, device="cuda")
    agree(index.search(QUERIES, 10, allowed=THIRD, vectors=SOURCE), *naive(SOURCE, QUERIES, 10, THIRD))
    assert [call.index for call in cuvs.of("search") if call.more["filtered"]] == []


@pytest.mark.parametrize("kind", GPU_KINDS)
def test_more_than_the_gpu_returns_comes_from_the_cpu(kind: Kind, cuvs: GpuFaiss, tmp_path: Path) -> None:
    saved(kind, tmp_path)
    scores, rows = load_index(tmp_path, device="cuda").search(QUERIES[:2], 2_500, vectors=SOURCE)
    expected = naive(SOURCE, QUERIES[:2], 2_500)[1]
    assert (rows >= 0).all() and (np.diff(scores) <= 0).all()
    assert np.mean([len(set(a) & set(b)) / 2_500 for a, b in zip(rows, expected, strict=True)]) > 0.95


@pytest.mark.parametrize("kind", GPU_KINDS)
def test_new_rows_are_added_and_the_gpu_gets_them(kind: Kind, cuvs: GpuFaiss, tmp_path: Path) -> None:
    grown = ArraySource(np.concatenate([SOURCE.half, stored(clustered(500, seed=8)).half]))
    saved(kind, tmp_path)
    index = load_index(tmp_path, device="cuda")
    index.search(QUERIES, 10, vectors=grown)
    info = index.add(grown, ROWS, len(grown))
    assert (info.rows, info.device) == (3_500, "cuda")
    cuvs.calls.clear()
    agree(index.search(QUERIES, 10, vectors=grown), *naive(grown, QUERIES, 10), least=0.9)
    assert [call.device for call in cuvs.of("search")] == [0]
    if kind == "cagra":
        index.save(tmp_path)
        assert load_index(tmp_path).index.ntotal == 3_500


def test_the_newer_rows_are_scanned_on_the_gpu_and_grow_there(
    cuvs: GpuFaiss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "SMALL_SUBSET", 100)
    saved("ivf-sq8", tmp_path)
    index = load_index(tmp_path, device="cuda")
    cuvs.calls.clear()
    for more, mask in ((400, None), (600, None), (600, 2), (400, None)):
        grown = ArraySource(np.concatenate([SOURCE.half, stored(clustered(600, seed=8)[:more]).half]))
        rows = np.arange(ROWS, ROWS + more)[::mask]
        allowed = np.zeros(len(grown), dtype=bool)
        allowed[rows] = True
        found = index.search_newer(QUERIES, 10, rows=rows, vectors=grown)
        agree(found, *naive(grown, QUERIES, 10, allowed))
    adds = [call.more["vectors"] for call in cuvs.of("add") if call.index == "IndexFlatIP"]
    assert adds == [400, 200]
    assert [call.more["filtered"] for call in cuvs.of("search")] == [False, False, True, True]


def test_an_hnsw_graph_of_a_cpu_is_a_scan_on_a_gpu(cuvs: GpuFaiss, tmp_path: Path) -> None:
    saved("hnsw", tmp_path, device="cpu")
    index = load_index(tmp_path, device="cuda")
    agree(index.search(QUERIES, 10, allowed=THIRD, vectors=SOURCE), *naive(SOURCE, QUERIES, 10, THIRD))
    assert index.scans(10, ROWS) and [call.more["filtered"] for call in cuvs.of("search")] == [True]


@pytest.mark.parametrize("kind", ["hnsw-sq8", "ivf-fastscan", "ivf-rabitq"])
def test_kinds_without_a_gpu_form_stay_in_main_memory(kind: Kind, cuvs: GpuFaiss, tmp_path: Path) -> None:
    saved(kind, tmp_path, device="cpu")
    load_index(tmp_path, device="cuda").search(QUERIES, 10, vectors=SOURCE)
    assert cuvs.calls == []


def test_a_graph_is_built_at_once_and_saved_for_the_cpu(cuvs: GpuFaiss, tmp_path: Path) -> None:
    info = saved("cagra", tmp_path).info
    assert [call.more["vectors"] for call in cuvs.of("train")] == [ROWS]
    assert (info.kind, info.device, info.reached) == ("cagra", "cuda", True)
    cuvs.gpus = 0
    on_cpu = load_index(tmp_path)
    assert type(on_cpu.index).__name__ == "IndexHNSWCagra"
    agree(on_cpu.search(QUERIES, 10, vectors=SOURCE), *naive(SOURCE, QUERIES, 10), least=0.9)
    agree(on_cpu.search(QUERIES, 10, allowed=THIRD, vectors=SOURCE), *naive(SOURCE, QUERIES, 10, THIRD), least=0.9)


def test_a_cpu_starts_in_every_group_of_a_graph_from_a_gpu() -> None:
    """Made as FAISS converts a CAGRA graph: upper layers of HNSW's own over its links, here only inside 100 groups."""
    hnsw: Any = faiss.SearchParametersHNSW  # pyright: ignore[reportAttributeAccessIssue]
    rows, random = 4_000, np.random.default_rng(0)
    vectors = random.standard_normal((100, 64))[random.integers(100, size=rows)] + 0.1 * random.standard_normal(
        (rows, 64)
    )
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    index = create_index("cagra", 64, rows, 0)
    index.keep_max_size_level0, index.init_level0 = True, False
    index.add(vectors)
    scores, neighbours = index.storage.search(vectors, 33)
    links = np.ascontiguousarray(neighbours[:, 1:])
    index.init_level_0_from_knngraph(32, faiss.swig_ptr(-scores[:, 1:].copy()), faiss.swig_ptr(links))
    queries = vectors[::40] + 0.01
    exact = index.storage.search(queries, 10)[1]
    assert share(candidates("cagra", index, queries, 10, 128, None), exact) > 0.99
    even = np.packbits(np.arange(rows) % 2 == 0, bitorder="little")
    assert (candidates("cagra", index, queries, 10, 128, even) % 2 == 0).all()
    alone = index.search(queries, 10, params=hnsw(efSearch=128))[1]
    assert share(alone, exact) < 0.8


def share(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the mean share of the expected that was found."""
    pairs = zip(found.tolist(), expected.tolist(), strict=True)
    return float(np.mean([len({*ours} & {*theirs}) / len(theirs) for ours, theirs in pairs]))


def test_smaller_batches_when_the_gpu_has_little_memory(cuvs: GpuFaiss, tmp_path: Path) -> None:
    saved("ivf-sq8", tmp_path)
    index = load_index(tmp_path, device="cuda")
    expected = index.search(QUERIES, 10, vectors=SOURCE)
    cuvs.calls.clear()
    cuvs.most_queries = 12
    found = index.search(QUERIES, 10, vectors=SOURCE)
    np.testing.assert_array_equal(found, expected)
    assert [call.more["queries"] for call in cuvs.of("search")] == [40, 20, 10, 10, 10, 10]


@pytest.mark.parametrize("with_cuvs", [True, False])
@pytest.mark.parametrize("kind", ["exact", "ivf-sq8"])
def test_the_cpu_answers_when_the_gpu_has_no_memory(
    kind: Kind, with_cuvs: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = stand_in(monkeypatch, cuvs=with_cuvs)
    saved(kind, tmp_path)
    index = load_index(tmp_path, device="cuda:1")
    module.most_vectors = 10
    with pytest.warns(Notice, match="^cuda:1 has no memory left for the index: the CPU searches it$"):
        found = index.search(QUERIES, 10, vectors=SOURCE)
    np.testing.assert_array_equal(found[1], load_index(tmp_path).search(QUERIES, 10, vectors=SOURCE)[1])
    module.calls.clear()
    index.search(QUERIES, 10, vectors=SOURCE)
    assert module.calls == [], "it is not tried again"


@pytest.mark.parametrize(("kind", "then"), [("ivf-sq8", "ivf-sq8"), ("cagra", "exact")])
def test_the_cpu_builds_when_the_gpu_has_no_memory(kind: Kind, then: Kind, cuvs: GpuFaiss) -> None:
    cuvs.most_vectors = 10
    with pytest.warns(Notice, match="^cuda:0 has no memory left to build the index: the CPU builds it$"):
        index = build(SOURCE, AnnSettings(kind=kind, device="cuda"))
    assert (index.info.kind, index.info.device) == (then, "cpu")
    agree(index.search(QUERIES, 10, vectors=SOURCE), *naive(SOURCE, QUERIES, 10), least=0.9)


def test_other_errors_of_the_gpu_are_not_hidden(cuvs: GpuFaiss, tmp_path: Path) -> None:
    saved("exact", tmp_path)
    index = load_index(tmp_path, device="cuda")
    cuvs.__dict__["GpuIndexFlatIP"] = lambda *_: (_ for _ in ()).throw(RuntimeError("CUDA error 700"))
    with pytest.raises(RuntimeError, match="CUDA error 700"):
        index.search(QUERIES, 10, vectors=SOURCE)


def test_the_kind_is_chosen_by_size_and_by_both_memories() -> None:
    gb, settings = 10**9, AnnSettings(memory_budget=100 * 10**9)

    def chosen(vectors: int, free: int | None, cuvs: bool = True) -> Kind:
        return choose_kind(settings, 384, vectors, OnGpu(free, cuvs))[0]

    assert chosen(1_000_000, 80 * gb) == "exact"
    assert chosen(10_000_000, 80 * gb) == "cagra"
    assert chosen(10_000_000, 80 * gb, cuvs=False) == "ivf-sq8"
    assert chosen(10_000_000, 10 * gb) == "ivf-sq8"
    assert chosen(10_000_000, 4 * gb) == "ivf-pq"
    assert chosen(1_000_000, 1 * gb) == "ivf-sq8"
    assert chosen(1_000_000, None) == "exact"
    assert bytes_on_gpu("exact", 384, 1_000_000) == 768_000_000
    assert bytes_on_gpu("cagra", 384, 1_000_000) == 1_536_000_000 + 256_000_000


def test_free_memory_of_the_gpu_decides_at_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, free=150_000)
    index = build(SOURCE, AnnSettings(device="cuda"))
    assert index.info.kind == "ivf-pq" and "MB of the GPU" in index.info.reason


def test_cagra_without_cuvs_or_on_a_cpu_is_refused(classic: GpuFaiss) -> None:
    with pytest.raises(UsageError, match="a graph of kind 'cagra' needs a GPU and FAISS with cuVS"):
        build(SOURCE, AnnSettings(kind="cagra", device="cuda"))
    with pytest.raises(UsageError, match="'cagra' is built on a GPU; on a CPU use hnsw"):
        AnnSettings(kind="cagra", device="cpu")


def test_which_device_is_meant(cuvs: GpuFaiss) -> None:
    assert search_device("auto") == "cuda:0"
    assert search_device("cuda:1,cuda:0") == "cuda:1", "the first of a list holds the index"
    assert search_device("cpu") == search_device("mps") == "cpu"
    with computing_on("cuda:1"):
        assert search_device() == "cuda:1"
        assert search_device("cpu") == "cpu"
    with pytest.raises(UsageError, match="no device 'cuda:2': it has cuda:0, cuda:1, cpu"):
        search_device("cuda:2")
    cuvs.gpus = 0
    assert search_device("auto") == "cpu"
    with pytest.warns(Notice, match="the installed FAISS has no GPU support, so searches run on the CPU"):
        assert search_device("cuda") == "cpu"


def test_an_index_saved_before_devices_were_noted_is_read(tmp_path: Path) -> None:
    saved("exact", tmp_path, device="cpu")
    info = json.loads((tmp_path / "info.json").read_text())
    del info["device"]
    (tmp_path / "info.json").write_text(json.dumps(info))
    assert load_index(tmp_path).info == replace(load_index(tmp_path).info, device="cpu")

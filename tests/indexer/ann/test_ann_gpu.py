"""The vector index on a GPU: the same answers as on the CPU."""

from pathlib import Path

import numpy as np
import pytest

from sonde.indexer.ann import AnnSettings, ArraySource, Kind, build, load_index
from sonde.indexer.errors import MissingExtraError, UsageError
from sonde.indexer.progress import Notice

faiss = pytest.importorskip("faiss")
HAS_BUILD = hasattr(faiss, "StandardGpuResources")


def clustered(rows: int, dimension: int = 64) -> ArraySource:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((40, dimension))[random.integers(40, size=rows)]
    vectors += 0.6 * random.standard_normal((rows, dimension))
    return ArraySource((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16))


@pytest.mark.gpu
@pytest.mark.skipif(not (HAS_BUILD and faiss.get_num_gpus()), reason="no GPU, or FAISS without GPU support")
@pytest.mark.parametrize("kind", ["exact", "ivf", "ivf-sq8", "ivf-pq", "cagra"])
def test_the_gpu_answers_as_the_cpu(kind: Kind, tmp_path: Path) -> None:
    if kind == "cagra" and "CUVS" not in faiss.get_compile_options():
        pytest.skip("FAISS was built without cuVS")
    source = clustered(20_000)
    queries = source.read(np.arange(0, 20_000, 200)) + 0.01
    index = build(source, AnnSettings(kind=kind, device="cuda"))
    assert index.info.reached
    index.save(tmp_path)
    on_cpu, on_gpu = load_index(tmp_path), load_index(tmp_path, device="cuda")
    scores, rows = on_gpu.search(queries, 10, vectors=source)
    expected_scores, expected_rows = on_cpu.search(queries, 10, vectors=source)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-3)
    assert (rows == expected_rows).mean() > 0.99
    allowed = np.arange(20_000) % 2 == 0
    filtered = on_gpu.search(queries, 10, allowed=allowed, vectors=source)[1]
    assert allowed[filtered].all()
    assert (filtered == on_cpu.search(queries, 10, allowed=allowed, vectors=source)[1]).mean() > 0.99
    assert on_gpu.place.name == "cuda:0"
    assert (on_gpu.search(queries[:1], 5_000, vectors=source)[1] >= 0).all()


@pytest.mark.skipif(HAS_BUILD, reason="FAISS has GPU support here")
def test_without_the_gpu_build_the_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        MissingExtraError, match=r"device 'cuda' needs FAISS with GPU support, .*pip uninstall -y faiss-cpu, then"
    ):
        build(clustered(10), AnnSettings(device="cuda"))
    build(clustered(10), AnnSettings()).save(tmp_path)
    with pytest.warns(Notice, match="the installed FAISS has no GPU support, so searches run on the CPU: pip"):
        assert load_index(tmp_path, device="cuda").place.name == "cpu"


@pytest.mark.parametrize("kind", ["hnsw", "hnsw-sq8", "ivf-fastscan", "ivf-rabitq"])
def test_a_kind_without_a_gpu_form_is_refused(kind: Kind) -> None:
    with pytest.raises(UsageError, match=f"FAISS has no GPU form of '{kind}'; with device 'cuda' use exact, ivf"):
        AnnSettings(kind=kind, device="cuda")

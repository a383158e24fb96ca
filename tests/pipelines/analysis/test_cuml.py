"""UMAP and HDBSCAN through cuML, against a stand-in that keeps what it was asked; and without it or its memory."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from clustered import clustered
from gpu_faiss import GpuFaiss, stand_in

from sonde.indexer.ann.devices import computing_on
from sonde.indexer.progress import Notice
from sonde.pipelines.analysis.cuml import cuml_package, has_cuml
from sonde.pipelines.analysis.neighbours import neighbours
from sonde.pipelines.analysis.umap import project
from sonde.pipelines.cluster.density import dense_groups

VECTORS = clustered(200, dimension=16)


class Cuml:
    """`cuml.manifold`, `cuml.cluster` and `cupy.cuda.Device`: the parameters that were given, and made-up results."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any], np.ndarray]] = []
        self.devices: list[int] = []
        self.error: Exception | None = None
        self.labels = np.repeat([0, 1], 100)

    def umap(self, **given: Any) -> Any:
        return SimpleNamespace(fit_transform=lambda vectors: self._keep("UMAP", given, vectors)[:, :2] * 2)

    def hdbscan(self, **given: Any) -> Any:
        def fit(places: np.ndarray) -> Any:
            self._keep("HDBSCAN", given, places)
            return SimpleNamespace(labels_=self.labels, probabilities_=np.full(200, 0.5, np.float32))

        return SimpleNamespace(fit=fit)

    def _keep(self, name: str, given: dict[str, Any], values: np.ndarray) -> np.ndarray:
        if self.error:
            raise self.error
        self.asked.append((name, given, values))
        return values

    @contextmanager
    def device(self, number: int) -> Any:
        self.devices.append(number)
        yield


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> GpuFaiss:
    return stand_in(monkeypatch)


@pytest.fixture
def cuml(gpus: GpuFaiss, monkeypatch: pytest.MonkeyPatch) -> Cuml:
    made = Cuml()
    modules = {
        "cuml": SimpleNamespace(), "cuml.manifold": SimpleNamespace(UMAP=made.umap),
        "cuml.cluster": SimpleNamespace(HDBSCAN=made.hdbscan),
        "cupy": SimpleNamespace(cuda=SimpleNamespace(Device=made.device)),
    }  # fmt: skip
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_what_umap_is_asked(cuml: Cuml) -> None:
    with computing_on("cuda:1"):
        places = project(VECTORS, 2, seed=7, neighbours=12, spread_out=0.1)
    [(name, given, vectors)] = cuml.asked
    rows, distances = given.pop("precomputed_knn")
    assert (name, cuml.devices) == ("UMAP", [1])
    assert given == {
        "n_neighbors": 12, "n_components": 2, "metric": "cosine", "min_dist": 0.1, "init": "spectral",
        "n_epochs": 500, "random_state": 7, "build_algo": "brute_force_knn", "output_type": "numpy",
    }  # fmt: skip
    with computing_on("cpu"):
        expected, cosines = neighbours(VECTORS, VECTORS, 12)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(distances, np.maximum(1 - cosines, 0), atol=1e-6)
    np.testing.assert_array_equal(vectors, VECTORS)
    np.testing.assert_array_equal(places, VECTORS[:, :2] * 2)


def test_what_hdbscan_is_asked_and_that_a_large_group_is_parted(cuml: Cuml) -> None:
    cuml.labels = np.repeat([0, -1], 100)
    labels, firmness = dense_groups(VECTORS[:, :5], 8, 1)
    assert [given for _, given, _ in cuml.asked] == [{"output_type": "numpy", "min_cluster_size": 8, "min_samples": 1}]
    assert cuml.asked[0][2].dtype == np.float32
    np.testing.assert_array_equal(labels, cuml.labels)
    assert labels.dtype == np.int64 and firmness.tolist() == [0.5] * 200
    cuml.labels = np.repeat([0, 1], [150, 50])
    dense_groups(VECTORS[:, :5], 8, 1)
    assert cuml.asked[-1][1]["max_cluster_size"] == 100


def test_the_cpu_is_asked_when_there_is_no_memory(cuml: Cuml, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hdbscan")
    cuml.error = MemoryError("std::bad_alloc: out_of_memory: CUDA error")
    with pytest.warns(Notice, match="^cuda:0 has no memory left for HDBSCAN: the CPU does it$"):
        found = dense_groups(VECTORS[:, :5], 8, 1)
    with computing_on("cpu"):
        expected = dense_groups(VECTORS[:, :5], 8, 1)
    np.testing.assert_array_equal(found[0], expected[0])
    cuml.error = ValueError("a mistake of ours")
    with pytest.raises(ValueError, match="a mistake of ours"):
        dense_groups(VECTORS[:, :5], 8, 1)


def test_cuml_is_used_only_with_a_gpu(cuml: Cuml, gpus: GpuFaiss) -> None:
    assert has_cuml()
    with computing_on("cpu"):
        assert not has_cuml() and cuml_package() == ()
    gpus.gpus = 0
    assert not has_cuml()


def test_neighbours_on_a_gpu_are_those_of_the_cpu_also_without_memory(gpus: GpuFaiss) -> None:
    with computing_on("cpu"):
        expected = neighbours(VECTORS[:50], VECTORS, 9)
    assert gpus.calls == []
    found = neighbours(VECTORS[:50], VECTORS, 9)
    np.testing.assert_array_equal(found, expected)
    [search] = gpus.of("search")
    assert search.more["k"] == 13 and search.index == "IndexFlatIP"
    gpus.most_queries = 20
    np.testing.assert_array_equal(neighbours(VECTORS[:50], VECTORS, 9), expected)
    gpus.most_queries = 0
    with pytest.warns(Notice, match="^cuda:0 has no memory left for finding neighbours: the CPU does it$"):
        np.testing.assert_array_equal(neighbours(VECTORS[:50], VECTORS, 9), expected)

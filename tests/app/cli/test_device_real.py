"""`--device cuda` with a real GPU: the same as `test_device.py` asks of the stand-in. Run with `pytest -m gpu`."""

import json
from pathlib import Path

import numpy as np
import pytest
from clustered import clustered
from command_line import Command, command, inject
from fake_encoder import FakeEncoder

from sonde.indexer.ann.devices import computing_on
from sonde.indexer.ann.gpu import gpu_here  # noqa: F401  (in a condition)
from sonde.pipelines.analysis.cuml import has_cuml  # noqa: F401  (in a condition)
from sonde.pipelines.analysis.describe import silhouettes
from sonde.pipelines.analysis.neighbours import neighbours
from sonde.pipelines.analysis.umap import project
from sonde.pipelines.cluster.density import dense_groups
from sonde.pipelines.cluster.kmeans import fit_kmeans

pytestmark = [pytest.mark.gpu, pytest.mark.skipif("gpu_here() is None", reason="no GPU, or FAISS without GPU support")]

VECTORS = clustered(20_000, dimension=64)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def test_search_filter_cluster_and_info(run: Command, tmp_path: Path) -> None:
    source, path = tmp_path / "words.jsonl", tmp_path / "words.sonde"
    random = np.random.default_rng(0)
    words = [f"word{number}" for number in range(400)]
    rows = [{"id": str(n), "text": " ".join(random.choice(words, 12)), "stars": n % 5} for n in range(3_000)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("index", source, "--to", path, "--device", "cuda").code == 0
    for more in ((), ("--where", "stars <= 2")):
        asked = ("search", path, "word3 word7 word11", "--mode", "dense", "--json", *more)
        on_gpu, on_cpu = run(*asked, "--device", "cuda"), run(*asked, "--device", "cpu")
        assert on_gpu.out == on_cpu.out != ""
        assert on_gpu.err == ""
    assert run("cluster", path, "-k", "5", "--device", "cuda").code == 0
    assert json.loads(run("info", path, "--json", "--device", "cuda").out)["ann"]["device"] == "cuda"
    assert json.loads(run("info", path, "--json", "--device", "cpu").out)["ann"]["device"] == "cpu"


def test_neighbours_kmeans_and_silhouettes_are_those_of_the_cpu() -> None:
    with computing_on("cpu"):
        rows, cosines = neighbours(VECTORS[:500], VECTORS, 15)
        fitted = fit_kmeans(VECTORS, 30, seed=1)
        expected = silhouettes(VECTORS, fitted.labels)
    with computing_on("cuda"):
        found = neighbours(VECTORS[:500], VECTORS, 15)
        again = fit_kmeans(VECTORS, 30, seed=1)
        values = silhouettes(VECTORS, fitted.labels)
    assert (found[0] == rows).mean() > 0.999
    np.testing.assert_allclose(found[1], cosines, atol=1e-6)
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert again.objective == pytest.approx(fitted.objective, rel=2e-3)


@pytest.mark.skipif("not has_cuml()", reason="no cuML")
def test_cuml_repeats_itself_and_finds_the_groups() -> None:
    some = VECTORS[:5_000]
    first, second = (project(some, 5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    labels, firmness = dense_groups(first, 50, 1)
    assert labels.max() >= 5 and ((firmness >= 0) & (firmness <= 1)).all()

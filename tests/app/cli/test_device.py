"""`--device`, through the command line and the Python API, over a stand-in of FAISS's GPU calls."""

import json
import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder
from gpu_faiss import GpuFaiss, stand_in

import sonde
from sonde.indexer.ann import kinds
from sonde.indexer.encoder import settings as encoder_settings
from sonde.indexer.store import derived

THEMES = {
    "delivery": "parcel late courier lost delivery van door box",
    "battery": "battery charge dead phone power drain plug cable",
    "garden": "rose soil water seed bloom leaf spade hedge",
}


def documents(count: int, offset: int = 0) -> list[dict]:
    names, random = list(THEMES), np.random.default_rng(offset)
    rows = []
    for number in range(offset, offset + count):
        words = THEMES[names[number % 3]].split()
        text = " ".join(random.choice(words, 5)) + f" {number}"
        rows.append({"id": str(number), "text": text, "stars": number % 5})
    return rows


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    inject(monkeypatch, FakeEncoder())


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> GpuFaiss:
    """Two GPUs, for FAISS and by what PyTorch says."""
    module = stand_in(monkeypatch)
    monkeypatch.setattr(encoder_settings, "available_devices", lambda: ["cuda:0", "cuda:1", "cpu"][2 - module.gpus :])
    return module


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(capsys, monkeypatch)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "themes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in documents(120)))
    return path


def kind_of(path: Path, device: str = "auto") -> str:
    found = sonde.open(path, device=device).info().ann
    assert found is not None
    return found["kind"]


def hits(out: str) -> list[tuple[str, float]]:
    return [(row["id"], row["score"]) for row in map(json.loads, out.splitlines())]


def test_a_collection_is_built_searched_and_grouped_on_the_gpu_that_is_named(
    gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.sonde"
    assert run("index", source, "--to", path, "--device", "cuda:1").code == 0
    assert {call.device for call in gpus.calls if call.name != "resources"} == {1}
    asked = ("search", path, "battery dead phone", "--mode", "dense", "-k", "5", "--json")
    for more in ((), ("--where", "stars <= 2")):
        gpus.calls.clear()
        on_gpu = run(*asked, *more, "--device", "cuda:1")
        assert {call.device for call in gpus.of("search")} == {1}
        gpus.calls.clear()
        on_cpu = run(*asked, *more, "--device", "cpu")
        assert gpus.calls == []
        assert hits(on_gpu.out) == hits(on_cpu.out) != []
    gpus.calls.clear()
    assert run("cluster", path, "-k", "3", "--device", "cuda:1").code == 0
    assert {call.device for call in gpus.of("kmeans")} == {1} and {call.device for call in gpus.of("products")} == {1}
    gpus.calls.clear()
    assert run("cluster", path, "-k", "3", "--name", "again", "--device", "cpu").code == 0
    assert gpus.calls == []
    opened = sonde.open(path)
    runs = [opened.run(name) for name in ("kmeans", "again")]
    assert [item.data["size"] for item in runs[0].items] == [item.data["size"] for item in runs[1].items]
    assert runs[0].run.report["silhouette"] == pytest.approx(runs[1].run.report["silhouette"], abs=2e-6)
    together = [[member.id for member in opened.members(run.run.name, 0, k=120)] for run in runs]
    assert sorted(together[0]) == sorted(together[1])


def test_topics_and_maps_find_neighbours_on_the_gpu(gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.sonde"
    run("index", source, "--to", path, "--device", "cuda")
    gpus.calls.clear()
    assert run("map", path, "--device", "cuda").code == 0
    assert [call.more["half"] for call in gpus.of("flat")] == [False] and gpus.of("search")
    gpus.calls.clear()
    assert run("map", path, "--name", "cpu", "--device", "cpu").code == 0
    assert gpus.calls == []
    opened = sonde.open(path)
    np.testing.assert_array_equal(opened.map_run("map").places, opened.map_run("cpu").places)


def test_info_measures_on_the_device_that_it_names(gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.sonde"
    run("index", source, "--to", path, "--device", "cuda", "--ann", "ivf-sq8")
    stored = json.loads(next(path.glob("ann/*/info.json")).read_text())
    assert stored["device"] == "cuda"
    for device, named in (("cuda", "cuda"), ("auto", "cuda"), ("cpu", "cpu")):
        gpus.calls.clear()
        found = json.loads(run("info", path, "--json", "--device", device).out)["ann"]
        assert found["device"] == named
        assert (found["latency_ms"] == stored["latency_ms"]) == (named == "cuda")
        assert found["recall"] == pytest.approx(1, abs=0.05)
    assert " ms on cuda" in run("info", path).out
    gpus.gpus = 0
    assert json.loads(run("info", path, "--json").out)["ann"]["device"] == "cpu"
    assert " on cuda" not in run("info", path).out


def test_the_python_api_takes_the_device_too(gpus: GpuFaiss, tmp_path: Path) -> None:
    made = sonde.index(documents(60), to=tmp_path / "t.sonde", encoder=cast(Any, FakeEncoder()), device="cuda:1")
    assert made.device == "cuda:1"
    gpus.calls.clear()
    found = made.search("rose soil", mode="dense", k=3)
    assert {call.device for call in gpus.of("search")} == {1}
    gpus.calls.clear()
    expected = sonde.open(tmp_path / "t.sonde", device="cpu").search("rose soil", mode="dense", k=3)
    assert [(hit.id, hit.score) for hit in found] == [(hit.id, hit.score) for hit in expected]
    assert gpus.calls == []


def test_newer_rows_are_found_on_the_gpu(
    gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sonde.indexer.ann import place

    monkeypatch.setattr(place, "SMALL_SUBSET", 10)
    path, more = tmp_path / "t.sonde", tmp_path / "more.jsonl"
    more.write_text("".join(json.dumps(row) + "\n" for row in documents(30, offset=120)))
    run("index", source, "--to", path, "--device", "cuda", "--ann", "ivf-sq8")
    run("index", more, "--to", path, "--device", "cuda")
    gpus.calls.clear()
    asked = ("search", path, "spade hedge leaf", "--mode", "dense", "-k", "30", "--json")
    on_gpu = hits(run(*asked, "--device", "cuda").out)
    assert [call.index for call in gpus.of("search")] == ["IndexIVFScalarQuantizer", "IndexFlatIP"]
    assert on_gpu == hits(run(*asked, "--device", "cpu").out)
    assert any(int(id) >= 120 for id, _ in on_gpu)


def test_a_gpu_that_is_not_there_is_refused_in_one_line(
    gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.sonde"
    run("index", source, "--to", path, "--device", "cpu")
    before = sorted(each.stat().st_mtime_ns for each in path.rglob("*.npy"))
    gpus.gpus = 0
    for words in (
        ("search", path, "van"), ("cluster", path, "-k", "2"), ("topics", path), ("map", path), ("info", path),
        ("duplicates", path), ("evaluate", "clusters", path), ("compact", path), ("repair", path), ("verify", path),
        ("topic", path), ("compare", path, "--cluster", "0", "--cluster", "1"), ("similar", path, "3"),
        ("index", source, "--to", path), ("label", path, "--labels", "a,b"), ("ui", path), ("mcp", path),
        ("serve", path),
    ):  # fmt: skip
        run(*words, "--device", "cuda").refused("this machine has no device 'cuda:0': it has cpu", code=2)
        run(*words, "--device", "gpu0").refused("unknown device 'gpu0': give auto, cpu, cuda", code=2)
    assert sorted(each.stat().st_mtime_ns for each in path.rglob("*.npy")) == before


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 120 vectors be more than a CPU scans fast."""
    monkeypatch.setattr(kinds, "EXACT_BYTES", 1_000)


def test_a_collection_built_for_a_gpu_says_so_once_and_is_repaired_for_a_cpu(
    gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path, large: None
) -> None:
    path, other = tmp_path / "t.sonde", tmp_path / "other.sonde"
    run("index", source, "--to", path, "--device", "cuda")
    assert kind_of(path, "cuda") == "exact"
    shutil.copytree(path, other)
    gpus.gpus = 0
    asked = run("search", path, "garden rose", "--mode", "dense", "--json")
    assert len(hits(asked.out)) > 0
    assert asked.said == [
        f"the FAISS index of {path} was built for a GPU: this CPU scans 120 vectors in each search until "
        "`sonde repair` builds one for it"
    ]
    assert "built a FAISS index for this CPU" in run("repair", path).out
    assert run("search", path, "garden rose", "--mode", "dense", "--json").err == ""
    assert kind_of(path) == "ivf-fastscan"
    assert "nothing to repair" in run("repair", path).err
    said = run("index", source, "--to", other).err
    assert "the FAISS index (exact) was built for a GPU: building one for this CPU" in said
    assert kind_of(other) == "ivf-fastscan"


def test_a_cagra_graph_is_searched_on_a_cpu_and_replaced_when_it_has_to_grow(
    gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived, "TAIL_ROWS", 5)
    path, more = tmp_path / "t.sonde", tmp_path / "more.jsonl"
    more.write_text("".join(json.dumps(row) + "\n" for row in documents(30, offset=120)))
    run("index", source, "--to", path, "--device", "cuda", "--ann", "cagra")
    on_gpu = hits(run("search", path, "charge cable", "--mode", "dense", "--json").out)
    gpus.gpus = 0
    asked = run("search", path, "charge cable", "--mode", "dense", "--json")
    assert hits(asked.out) == on_gpu and asked.err == ""
    assert (
        "the FAISS index (cagra) was built for a GPU: building one for this CPU" in run("index", more, "--to", path).err
    )
    assert kind_of(path) == "exact"


def test_without_memory_on_the_gpu_the_command_goes_on_and_says_so_once(
    gpus: GpuFaiss, run: Command, source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.sonde"
    run("index", source, "--to", path, "--device", "cuda", "--ann", "ivf-sq8")
    gpus.most_vectors = 10
    asked = ("search", path, "charge cable", "--mode", "dense", "--json")
    ran = run(*asked, "--device", "cuda")
    assert ran.said == ["cuda:0 has no memory left for the index: the CPU searches it"]
    assert hits(ran.out) == hits(run(*asked, "--device", "cpu").out)
    ran = run("cluster", path, "-k", "3", "--device", "cuda")
    assert ran.code == 0 and "cuda:0 has no memory left for KMeans: the CPU does it" in ran.said

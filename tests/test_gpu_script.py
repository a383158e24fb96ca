"""`benchmarks/gpu.sh` runs every stage, tried without a card on little data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from default_model import default_model

STAGES = ("install", "check", "embed", "index", "search", "groups", "report")


def script(checkout: Path, *given: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"SONDE_GPU_DEVICE": "cpu", "SONDE_GPU_SIZE": "tiny", "SONDE_GPU_PYTHON": sys.executable}
    command = ["bash", str(checkout / "benchmarks" / "gpu.sh"), *given]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables | environment)


@pytest.mark.slow
@pytest.mark.skipif(not default_model(), reason="needs the default model")
def test_every_stage_runs(checkout: Path, tmp_path: Path) -> None:
    ran = script(checkout, str(tmp_path), SONDE_GPU_WORK=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    said = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("==") and "took" in line]
    assert said == list(STAGES)
    table = (tmp_path / "results" / "report.md").read_text("utf-8")
    assert "not run" not in table
    for work in ("matrix product", "embed, tokenising", "from the file until", "hybrid query", "map", "label by NLI"):
        assert work in table
    assert "| embed | lowest cosine to float32 | 1.000000 |" in table
    assert "| search | top tens in common with FAISS's exact scan | 1.000 |" in table
    # A stage that is run again replaces its own rows only.
    (tmp_path / "results" / "groups.jsonl").unlink()
    ran = script(checkout, str(tmp_path), "search", "report", SONDE_GPU_WORK=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    again = (tmp_path / "results" / "report.md").read_text("utf-8")
    assert again.count("hybrid query") == 1
    assert "| groups | | not run | | | |" in again


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "usage: benchmarks/gpu.sh WHEELS [install check embed index search groups report]"),
        (["nowhere"], "there is no folder of wheels nowhere"),
        (["benchmarks", "embde"], "there is no stage embde"),
    ],
)
def test_a_wrong_call_says_what_is_right(checkout: Path, given: list[str], said: str) -> None:
    ran = script(checkout, *(str(checkout / name) if name == "benchmarks" else name for name in given))
    assert ran.returncode == 2
    assert said in ran.stderr


def test_a_python_without_torch_is_named(checkout: Path, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ran = script(checkout, str(tmp_path), "install", SONDE_GPU_PYTHON="", SONDE_GPU_WORK=str(tmp_path), PATH=path)
    assert ran.returncode == 1
    assert ran.stderr == f"{python} has no torch: install torch for CUDA 13 first\n"


def test_the_wheels_are_the_versions_of_the_constraints(checkout: Path) -> None:
    listed = script(checkout, "--list").stdout.split()
    pinned = (checkout / "constraints.txt").read_text("utf-8").lower().replace("_", "-").split()
    own = {
        "cuda-pathfinder",
        "faiss-gpu-cuvs",
        "libcuvs-cu13",
        "libraft-cu13",
        "librmm-cu13",
        "rapids-logger",
    }
    assert len(listed) > 80
    known = [one for one in listed if one.partition("==")[0] not in own and not one.startswith("nvidia-")]
    assert [one for one in known if one not in pinned] == []

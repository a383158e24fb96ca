"""The wheel with the lowest and with the newest versions that it allows: one job, done in both, has the same results.

Run by `make test-versions`, since it downloads the dependencies twice (450 MB).
"""

import csv
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from default_model import default_model
from installed import build_wheel, environment, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not default_model(), reason="the default model is not in this checkout: make weights"),
]
QUERIES = ("where is my money", "the lamp arrived broken", "Wo bleibt mein Paket?")
SCORE = 0.002
"""How far scores may differ: the versions of ONNX Runtime add in different orders."""


@pytest.fixture(scope="module")
def results(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the job answered with the lowest and with the newest versions."""
    wheel = build_wheel(checkout, tmp_path_factory.mktemp("wheel"))
    found = {}
    for resolution in ("lowest-direct", "highest"):
        folder = tmp_path_factory.mktemp(resolution)
        python = environment(folder / "venv")
        uv = (
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            str(python),
            "--only-binary",
            ":all:",
        )
        run(*uv, "--resolution", resolution, str(wheel), limit=1_200)
        (folder / "work").mkdir()
        found[resolution] = job(python, folder / "work")
    return found


def job(python: Path, folder: Path) -> dict[str, Any]:
    """Do with the tickets of the tutorials what the light installation promises; return the answers."""

    def sonde(*words: str) -> str:
        return run(str(python), "-m", "sonde.app.cli.main", *words, cwd=folder)

    sonde("demo", "--files", ".")
    sonde("index", "tickets.csv", "--id", "ticket", "--late")
    sonde("index", "tickets.csv", "--id", "ticket", "--to", "static.sonde", "--model", "static")
    options: dict[str, tuple[str, ...]] = {mode: ("--mode", mode) for mode in ("hybrid", "dense", "lexical")}
    options |= {"reranked": ("--rerank",), "filtered": ("--where", "country = 'DE' AND date >= '2026-02-01'")}
    found: dict[str, Any] = {
        f"{name}, {collection}": [
            hits(sonde("search", collection, query, "--json", "-k", "5", *more)) for query in QUERIES
        ]
        for collection in ("tickets.sonde", "static.sonde")
        for name, more in options.items()
    }
    found["duplicates"] = sonde("duplicates", "tickets.sonde", "--json")
    reasons = sorted({row["reason"] for row in rows(folder / "tickets.csv")})
    for engine in ("similarity", "nli", "reranker"):
        sonde("label", "tickets.sonde", "--labels", ",".join(reasons), "--engine", engine, "--name", engine)
    sonde("cluster", "tickets.sonde", "-k", "6", "--name", "six")
    sonde("export", "tickets.sonde", "--to", "tickets-out.csv")
    found["export"] = rows(folder / "tickets-out.csv")
    found["served"] = hits(served(python, folder))
    found["mcp"] = asked(python, folder)
    return found


def hits(text: str) -> list[tuple[str, float]]:
    """The id and the score of each hit in JSON lines."""
    return [(hit["id"], pytest.approx(hit["score"], abs=SCORE)) for hit in map(json.loads, text.splitlines())]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def served(python: Path, folder: Path) -> str:
    """What the HTTP service answers to a search, as JSON lines."""
    command = [str(python), "-m", "sonde.app.cli.main", "serve", "tickets.sonde", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
        asked = json.dumps({"query": QUERIES[0], "k": 5}).encode()
        request = urllib.request.Request(f"{address}/search", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)["hits"]
        process.terminate()
        process.communicate(timeout=60)
    return "\n".join(map(json.dumps, found))


def asked(python: Path, folder: Path) -> list[str]:
    """The ids of the documents that the MCP server answers to a search."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    calls = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": QUERIES[0]}}},
    ]
    command = [str(python), "-m", "sonde.app.cli.main", "mcp", "tickets.sonde"]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        for call in calls:
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | call) + "\n")
            process.stdin.flush()
        answers = map(json.loads, process.stdout)
        found = next(answer for answer in answers if answer.get("id") == 2)
        process.terminate()
    return re.findall(r"T-\d+", json.dumps(found["result"]["structuredContent"]))


def test_both_answer_alike(results: dict[str, dict[str, Any]]) -> None:
    lowest, newest = results.values()
    assert lowest == newest


def test_the_answers_are_good(results: dict[str, dict[str, Any]]) -> None:
    newest = results["highest"]
    assert len(newest["export"]) == 248
    right = {
        engine: sum(row["reason"] == row[f"label:{engine}"] for row in newest["export"]) / 248
        for engine in ("similarity", "nli", "reranker")
    }
    assert min(right.values()) > 0.5, right
    assert {row["cluster:six"] for row in newest["export"]} == {str(number) for number in range(6)}
    assert newest["duplicates"].count("representative") >= 8
    assert newest["mcp"] and newest["served"]

"""The wheel with the lowest and with the newest versions that it allows: one job, done in both, has the same results.

Run by `make test-versions`, since it downloads the dependencies twice (450 MB).
"""

import csv
import json
import re
import subprocess
import sys
import urllib.request
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from default_model import default_model
from installed import build_wheel, environment, program, run

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
        needed = folder / "requirements.txt"
        needed.write_text("\n".join(requirements(wheel)))  # of the wheel itself, uv would take the newest ones
        uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python))
        run(*uv, "--only-binary", ":all:", "--resolution", resolution, "--requirements", str(needed), limit=1_200)
        run(*uv, "--no-deps", str(wheel))
        (folder / "work").mkdir()
        found[resolution] = job(str(program(folder / "venv", "sonde")), folder / "work")
    return found


def requirements(wheel: Path) -> list[str]:
    """What the wheel requires without extras."""
    archive = zipfile.ZipFile(wheel)
    [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    required = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    return [each for each in required if "extra ==" not in each]


def job(program: str, folder: Path) -> dict[str, Any]:
    """Do with the tickets of the tutorials what the light installation promises; return the answers."""

    def sonde(*words: str) -> str:
        return run(program, *words, cwd=folder)

    sonde("demo", "--files", ".")
    sonde("index", "tickets.csv", "--id", "ticket", "--late")
    sonde("index", "tickets.csv", "--id", "ticket", "--to", "static.sonde", "--model", "static")
    options: dict[str, tuple[str, ...]] = {mode: ("--mode", mode) for mode in ("hybrid", "dense", "lexical")}
    options |= {"reranked": ("--rerank",), "filtered": ("--where", "country = 'DE' AND date >= '2026-02-01'")}
    found: dict[str, Any] = {
        f"{name}, {collection}, {query}": hits(sonde("search", collection, query, "--json", "-k", "5", *more))
        for collection in ("tickets.sonde", "static.sonde")
        for name, more in options.items()
        for query in QUERIES
    }
    found["duplicates"] = sonde("duplicates", "tickets.sonde", "--json")
    reasons = sorted({row["reason"] for row in rows(folder / "tickets.csv")})
    for engine in ("similarity", "nli", "reranker"):
        sonde("label", "tickets.sonde", "--labels", ",".join(reasons), "--engine", engine, "--name", engine)
    sonde("cluster", "tickets.sonde", "-k", "6", "--name", "six")
    sonde("export", "tickets.sonde", "--to", "tickets-out.csv")
    found["export"] = rows(folder / "tickets-out.csv")
    found["served"] = hits(served(program, folder))
    found["mcp"] = asked(program, folder)
    return found


def hits(text: str) -> dict[str, float]:
    """The id and the score of each hit in JSON lines, the best first."""
    return {hit["id"]: hit["score"] for hit in map(json.loads, text.splitlines())}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def served(program: str, folder: Path) -> str:
    """What the HTTP service answers to a search, as JSON lines."""
    command = [program, "serve", "tickets.sonde", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
        asked = json.dumps({"query": QUERIES[0], "k": 5}).encode()
        request = urllib.request.Request(f"{address}/search", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)["hits"]
        process.terminate()
        process.communicate(timeout=60)
    return "\n".join(map(json.dumps, found))


def asked(program: str, folder: Path) -> list[str]:
    """The ids of the documents that the MCP server answers to a search."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    calls = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": QUERIES[0]}}},
    ]
    command = [program, "mcp", "tickets.sonde"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, encoding="utf-8") as process:
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
    for asked_for, answer in lowest.items():
        other = newest[asked_for]
        if isinstance(answer, dict):  # scores of hits, whose order counts too
            assert [*answer] == [*other], asked_for
            assert answer == pytest.approx(other, abs=SCORE), asked_for
        else:
            assert answer == other, asked_for


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

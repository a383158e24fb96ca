"""The same commands with the same output where torch and its friends are not installed, and on other systems."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apart import SCRIPT, asks, sonde, write_notes
from default_model import default_model

pytestmark = pytest.mark.skipif(not default_model(), reason="the default model is not in this checkout: make weights")

TORCH = {"onnx", "scipy", "sentence_transformers", "sklearn", "torch", "transformers"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("light")
    write_notes(made / "notes.csv")
    (made / "pages").mkdir()
    (made / "pages/page.md").write_text("# Soup\n\nIt needs salt.")
    return made


@pytest.fixture(scope="module")
def full(folder: Path) -> str:
    """A collection of the full installation, with clusters and a taxonomy."""
    made = [["index", "notes.csv", "--to", "full.sonde"], ["cluster", "full.sonde", "-k", "2"]]
    sonde(folder, [*made, ["taxonomy", "full.sonde", "--from", "kmeans"]], "show")
    return "full.sonde"


WRITES = [["delete", "--where", "kind = 'money'"], ["compact"], ["info"]]


@pytest.mark.parametrize(
    ("model", "modes"),
    [
        pytest.param("all-MiniLM-L6-v2", ("hide", "show", "elsewhere"), marks=pytest.mark.long),
        ("static", ("hide", "show")),
    ],
)
def test_each_command_prints_the_same(folder: Path, model: str, modes: tuple[str, ...]) -> None:
    """Without the libraries of the full installation, with them, and without what Windows lacks."""
    found, vectors = {}, {}
    for mode in modes:
        collection = f"{mode}-{model[:3]}.sonde"
        commands = [
            ["index", "notes.csv", "--to", collection, "--model", model],
            ["index", "pages", "--to", collection],
        ]
        commands += [*asks(collection), ["export", collection, "--to", f"{mode}.csv"]]
        commands += [[name, collection, *options] for name, *options in WRITES]
        printed, loaded = sonde(folder, commands, mode)
        assert mode == "elsewhere" or not TORCH & set(loaded.split())  # the full installation does not load them either
        assert [part.rstrip().endswith("exit code 0") for part in printed] == [True] * len(commands), printed
        sized = (re.sub(r"[\d.]+ k?B\b", "SIZE", part) for part in printed)  # of files that hold measured times
        found[mode] = [part.replace(collection, "C").replace(f"{mode}.", "M.") for part in sized]
        vectors[mode] = sorted((folder / collection / "vectors").glob("*.npy"))[0].read_bytes()
    for mode in modes:
        assert found[mode] == found["show"]
    assert {*vectors.values()} == {vectors["show"]}  # the same engine: not one bit differs
    asked = [["search", f"{mode}-{model[:3]}.sonde", "salt", "--json"] for mode in ("show", "hide")]
    of_both = sonde(folder, asked, "hide")[0]  # each installation reads what the other made
    assert of_both[0] == of_both[1]


def test_what_only_the_full_installation_has_is_one_line_each(folder: Path, full: str, tmp_path: Path) -> None:
    kinds = {"BertForSequenceClassification": tmp_path / "classifier", "T5EncoderModel": tmp_path / "encoder"}
    for kind, model in kinds.items():
        model.mkdir()
        (model / "config.json").write_text(json.dumps({"architectures": [kind]}))
        (model / "model.safetensors").write_bytes(b"")
    classifier, encoder = map(str, kinds.values())
    commands = {
        "sonde[all]'": [
            ["search", full, "salt", "--rerank", "--rerank-model", classifier],
            ["index", "notes.csv", "--to", "other.sonde", "--model", encoder],
            ["index", "notes.csv", "--to", "other.sonde", "--dtype", "bfloat16"],
            ["train", "nli", "pairs.jsonl", "--to", "mine"],
        ],
        "sonde[topics]'": [["topics", full]],
        "sonde[cluster]'": [
            ["map", full],
            ["cluster", full, "--method", "density"],
            ["check", full, "--label", "kind"],
            ["taxonomy", "refit", full],
        ],
        "sonde[ui]'": [["ui", full]],
        "sonde[formats]'": [["export", full, "--to", "notes.parquet"]],
    }
    for install, several in commands.items():
        for command in several:
            done = subprocess.run(
                [sys.executable, str(SCRIPT), "hide", *command], capture_output=True, text=True, cwd=folder, check=False
            )
            assert (done.returncode, done.stdout) == (1, ""), (command, done)
            assert done.stderr.splitlines()[-1].startswith("sonde: "), done.stderr
            assert f"pip install 'sonde{install[5:]}" in done.stderr.splitlines()[-1], done.stderr
    assert not (folder / "other.sonde").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("map C", "reducing vectors to a few dimensions needs umap-learn, which is not installed"),
        ("duplicates C --to unique.parquet", "writing Parquet needs pyarrow, which is not installed"),
        ("tune C", "evaluating search needs ir-measures, which is not installed"),
        ("model C --to static --dry-run", "evaluating search needs ir-measures, which is not installed"),
        ("label C --examples nothere.csv", "nothere.csv does not exist"),
    ],
)
def test_what_is_missing_is_noticed_before_the_work(folder: Path, full: str, command: str, message: str) -> None:
    words = [full if word == "C" else word for word in command.split()]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "hide", *words], capture_output=True, text=True, cwd=folder, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"sonde: {message}") and done.stderr.count("\n") == 1, done.stderr


@contextmanager
def serving(folder: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "hide", *command], cwd=folder, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_serve_answers(folder: Path, full: str) -> None:
    with serving(folder, "serve", full, "--port", "0") as process:
        assert process.stderr
        line = next(line for line in process.stderr if "http://" in line)
        address = re.search(r"http://[\d.]+:\d+", line)
        assert address, line
        asked = urllib.request.Request(
            f"{address[0]}/search", json.dumps({"query": "salt", "k": 1}).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(asked, timeout=20) as answer:
            assert json.load(answer)["hits"][0]["id"].startswith("food")


def test_mcp_answers(folder: Path, full: str) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    calls = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "salt"}}},
    ]
    with serving(folder, "mcp", full) as process:
        assert process.stdin and process.stdout
        for call in calls:
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | call) + "\n")
            process.stdin.flush()
        answers = {}
        while 2 not in answers:
            answer = json.loads(process.stdout.readline())
            answers[answer.get("id")] = answer
        assert "garlic" in json.dumps(answers[2]["result"])


def test_a_collection_is_named_after_its_source(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    shutil.copy(folder / "notes.csv", tmp_path / "data/notes.csv")
    shutil.copy(folder / "notes.csv", tmp_path / "notes.csv")
    commands = [["index", "data/notes.csv"], ["index", "data/notes.csv"], ["index", "notes.csv"]]
    printed, _ = sonde(tmp_path, [*commands, ["index", "notes.csv", "data/notes.csv"], ["index", "-"]], "show")
    assert "notes.sonde: 24 added" in printed[0]
    assert "24 unchanged" in printed[1]
    assert [part.split()[-1] for part in printed[2:]] == ["2", "2", "2"]
    assert sorted(path.name for path in tmp_path.glob("*.sonde")) == ["notes.sonde"]


def test_without_playwright_the_browser_script_says_what_to_install(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "playwright.py").write_text("raise ModuleNotFoundError")
    command = [sys.executable, str(checkout / "tests" / "support" / "browser.py")]
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Playwright is not installed: run `make test`, or ") and ran.stderr.count("\n") == 1

"""What can be refused is refused before a model is loaded and before anything is encoded."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from http_service import refused
from mcp_client import call

from sonde.app.api import Collection, index
from sonde.app.mcp import server_of
from sonde.indexer.errors import UsageError

ROWS = [{"id": "1", "text": "The battery died.", "stars": 1}, {"id": "2", "text": "Great phone.", "stars": 5}]


class UnusedEncoder(FakeEncoder):
    """Fails when it is used."""

    def tokenize(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the encoder was used")

    encode = encode_texts = token_vectors = tokenize


@pytest.fixture
def path(tmp_path: Path) -> Path:
    index(ROWS, tmp_path / "r.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    return tmp_path / "r.sonde"


@pytest.fixture
def unused(path: Path) -> Collection:
    return Collection.open(path, encoder=UnusedEncoder())  # type: ignore[arg-type]


TYPO = "star > 2"
NO_FIELD = "there is no field 'star' to filter by"
CALLS: dict[str, tuple[Callable[[Collection], object], str]] = {
    "search": (lambda c: c.search("a", where=TYPO), NO_FIELD),
    "search, mode": (lambda c: c.search("a", mode="x"), "there is no mode 'x'"),  # type: ignore
    "search, k": (lambda c: c.search("a", k=0), "k is 0"),
    "search, k of text": (lambda c: c.search("a", k="5"), "k is '5'"),  # type: ignore[arg-type]
    "search, empty": (lambda c: c.search(" "), "the query is empty"),
    "search, reranker": (lambda c: c.search("a", rerank=True, rerank_model="x"), "there is no reranker 'x'"),
    "search, threshold": (lambda c: c.search("a", threshold=float("nan")), "threshold is nan: give a number"),
    "search, threshold of text": (lambda c: c.search("a", threshold="0.5"), "threshold is '0.5': give a number"),  # type: ignore
    "search_many": (lambda c: c.search_many(["a"], where=TYPO), NO_FIELD),
    "search_many, empty": (lambda c: c.search_many(["a", ""]), "query 2 is empty"),
    "similar": (lambda c: c.similar("1", where=TYPO), NO_FIELD),
    "like": (lambda c: c.like("a", where=TYPO), NO_FIELD),
    "like, k": (lambda c: c.like("a", k=0), "k is 0"),
    "like, rerank": (lambda c: c.like("a", rerank=True), "rerank is for searches"),
    "ask, threshold": (lambda c: c.ask("a", threshold=float("inf")), "threshold is inf: give a number"),
    "label": (lambda c: c.label(["a", "b"], where=TYPO), NO_FIELD),
    "cluster": (lambda c: c.cluster(where=TYPO), NO_FIELD),
    "delete": (lambda c: c.delete(where=TYPO), NO_FIELD),
    "compare": (lambda c: c.compare(where=("stars > 1", TYPO)), NO_FIELD),
    "compare, query": (lambda c: c.compare(queries=("a", "")), "query 2 is empty"),
}


@pytest.mark.parametrize("name", CALLS)
def test_python(unused: Collection, name: str) -> None:
    run, message = CALLS[name]
    with pytest.raises(UsageError, match=f"^{message}"):
        run(unused)


def test_http(unused: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi.testclient import TestClient

    from sonde.app.http.context import Models
    from sonde.app.http.hosted import Hosts
    from sonde.app.http.service import create_app
    from sonde.app.http.settings import ServeSettings

    monkeypatch.setattr(Hosts, "warm", lambda _: None)
    monkeypatch.setattr(Models, "nli", lambda _: pytest.fail("the NLI model was loaded"))
    hosts = Hosts.open([unused.path], ServeSettings(), encoder=UnusedEncoder())  # type: ignore[arg-type]
    app = create_app(hosts, ServeSettings())
    with TestClient(app, "http://127.0.0.1:8080", raise_server_exceptions=False) as client:
        for route, body in (("/search", {"query": "a"}), ("/similar", {"text": "a"}), ("/similar", {"id": "1"})):
            refused(client.post(route, json=body | {"where": TYPO}), 422, NO_FIELD, field="where")
        body = {"texts": ["a"], "labels": {"b": ""}, "engine": "nli"}
        refused(client.post("/label", json=body), 422, "only label", field="labels")


def test_mcp(unused: Collection) -> None:
    server = server_of(unused)
    assert NO_FIELD in call(server, "search", query="a", where=TYPO)
    assert NO_FIELD in call(server, "similar", id="1", where=TYPO)
    assert "only label" in call(server, "label", texts=["a"], labels={"b": ""})


COMMANDS: list[tuple[list[str], str]] = [
    (["search", "C", "a", "--where", TYPO], NO_FIELD),
    (["search", "C", "a", "--mode", "x"], "there is no mode 'x'"),
    (["search", "C", "a", "-k", "0"], "k is 0"),
    (["search", "C", " "], "the query is empty"),
    (["search", "C", "a", "--rerank-model", "x"], "there is no reranker 'x'"),
    (["search", "C", "a", "--threshold", "nan"], "threshold is nan"),
    (["similar", "C", "1", "--where", TYPO], NO_FIELD),
    (["similar", "C", "--text", "a", "--where", TYPO], NO_FIELD),
    (["ask", "C", "a", "--threshold", "nan"], "threshold is nan"),
    (["label", "C", "--labels", "a,b", "--where", TYPO], NO_FIELD),
    (["label", "--text", "a", "--labels", "b"], "only label"),
    (["entail", "a", ""], "the hypothesis is empty"),
    (["similarity", "a", ""], "a text is empty"),
    (["cluster", "C", "--where", TYPO], NO_FIELD),
    (["delete", "C", "--where", TYPO], NO_FIELD),
    (["compare", "C", "--where", "stars > 1", "--where", TYPO], NO_FIELD),
    (["compare", "C", "--query", "a", "--query", ""], "query 2 is empty"),
]
RUN = """
import contextlib, io, json, sys
from sonde.app.cli.main import main
heavy = ("torch", "sentence_transformers", "transformers")
found = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["sonde", *arguments]
    said = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(said):
        main()
    found.append([said.getvalue(), [name for name in heavy if name in sys.modules]])
print(json.dumps(found))
"""


def test_the_command_line_imports_nothing_heavy(path: Path) -> None:
    commands = [[str(path) if part == "C" else part for part in command] for command, _ in COMMANDS]
    ran = subprocess.run([sys.executable, "-c", RUN, json.dumps(commands)], capture_output=True, check=True, text=True)
    for (command, message), (said, loaded) in zip(COMMANDS, json.loads(ran.stdout), strict=True):
        assert (command, loaded) == (command, [])
        assert message in said, (command, said)

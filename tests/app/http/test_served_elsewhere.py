"""A service whose shards other processes hold, which are fakes: what it answers, and what its options refuse."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from fastapi.testclient import TestClient
from mcp_client import call
from replicas import FakeReplica, fakes, gathered
from two_ways import rows

from sonde.app.api import index
from sonde.app.http.client import RemoteCollection
from sonde.app.http.hosted import Hosts
from sonde.app.http.service import create_app
from sonde.app.http.settings import ServeSettings
from sonde.app.mcp import server_of
from sonde.indexer.errors import SondeError


@dataclass
class Served:
    """A service and the replicas behind it."""

    client: TestClient
    hosts: Hosts
    replicas: dict[int, list[FakeReplica]]

    def search(self, **given: Any) -> dict[str, Any]:
        answer = self.client.post("/search", json={"query": "red apple", "k": 100, "collapse": False} | given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def kill(self, shard: int) -> None:
        for each in self.replicas[shard]:
            each.how = "dead"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index(rows(80), tmp_path / "s.sonde", shards=2, encoder=FakeEncoder())  # type: ignore[arg-type]
    return tmp_path / "s.sonde"


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    settings = ServeSettings()
    hosts = Hosts.open([folder], settings, encoder=FakeEncoder())  # type: ignore[arg-type]
    replicas = fakes(folder)
    gathered(hosts.hosted["s"].collection, replicas)
    with TestClient(create_app(hosts, settings), "http://127.0.0.1:8080") as client:
        yield Served(client, hosts, replicas)


def test_a_partial_answer_says_so_in_every_interface(served: Served):
    whole = served.search()
    assert (whole["partial"], whole["missing_shards"]) == (False, [])
    served.kill(1)
    found = served.search(mode="dense")
    assert (found["partial"], found["missing_shards"]) == (True, [1])
    assert 0 < len(found["hits"]) < len(whole["hits"])
    assert any(note.startswith("this result is partial: shard 01 did not answer") for note in found["notes"])
    similar = served.client.post("/similar", json={"id": found["hits"][0]["id"]}).json()
    assert similar["missing_shards"] == [1]
    remote = RemoteCollection(served.client)  # type: ignore[arg-type]
    results = remote.search("red apple")
    assert (results.partial, results.missing_shards) == (True, (1,))
    assistant = server_of(served.hosts.hosted["s"].collection)
    assert any("partial" in note for note in call(assistant, "search", query="red apple")["notes"])


def test_what_cannot_be_partial_is_answered_with_503_and_when_to_retry(served: Served):
    def incomplete() -> None:
        raise SondeError("1 shard did not answer: try again in a few seconds", code="shards-missing")

    served.client.app.get("/incomplete")(incomplete)  # type: ignore[attr-defined]
    answer = served.client.get("/incomplete")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "shards-missing"


def test_metrics_tell_how_many_replicas_answer(served: Served):
    assert 'sonde_shard_replicas{collection="s",shard="1"} 2.0' in served.client.get("/metrics").text
    served.kill(1)
    metrics = served.client.get("/metrics").text
    assert 'sonde_shard_replicas{collection="s",shard="0"} 2.0' in metrics
    assert 'sonde_shard_replicas{collection="s",shard="1"} 0.0' in metrics


def test_writes_and_information_need_no_replica(served: Served):
    served.kill(0)
    served.kill(1)
    assert served.client.get("/collections").json()[0]["documents"] == 80
    assert served.client.get("/documents/d3").json()["id"] == "d3"
    assert served.client.put("/documents", json={"documents": [{"id": "n", "text": "red"}]}).json()["added"] == 1
    assert [hit["id"] for hit in served.search(mode="lexical", query="red", where="id = 'n'")["hits"]] == ["n"]
    assert served.search()["missing_shards"] == [0, 1]


def test_options_that_are_not_valid(sonde: Command, folder: Path, monkeypatch: pytest.MonkeyPatch):
    sonde("serve", folder, "--replicas", "2").refused("--replicas needs --on", code=2)
    sonde("serve", folder, "--on", "ray", "--replicas", "0").refused("--replicas is 0: give a whole number", code=2)
    sonde("serve", folder, "--on", "ray://here").refused("--on is 'ray://here': give ray, or ray://HOST:PORT", code=2)
    monkeypatch.setitem(sys.modules, "ray", None)
    ran = sonde("serve", folder, "--on", "ray")
    ran.refused("--on ray needs Ray, which is not installed: pip install 'sonde[distributed]'")


def test_a_collection_without_shards(sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index(rows(5), tmp_path / "one.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    monkeypatch.setattr("sonde.app.ray.connect._imported", lambda address: None)
    ran = sonde("serve", tmp_path / "one.sonde", "--on", "ray", "--port", "0")
    ran.refused("has no shards, and --on serves shards: index its sources with --shards, or leave out --on", code=2)

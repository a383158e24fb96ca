"""Services and assistants over a sharded collection: the answers are those over one collection."""

from pathlib import Path
from typing import Any

import themes
from fake_encoder import FakeEncoder
from fastapi.testclient import TestClient
from http_service import ROWS, client_of, folder, refused  # noqa: F401  (a fixture)
from mcp_client import call
from two_ways import TwoWays

from sonde.app.api import index
from sonde.app.mcp import server_of


def test_a_service_over_shards(tmp_path: Path, folder: Path):  # noqa: F811
    encoder = FakeEncoder()
    index(ROWS, tmp_path / "s.sonde", id="id", shards=2, encoder=encoder)  # type: ignore[arg-type]
    with client_of(tmp_path / "s.sonde") as sharded, client_of(folder) as one:
        asked = {"query": "battery week", "k": 2}
        assert sharded.post("/search", json=asked).json()["hits"] == one.post("/search", json=asked).json()["hits"]
        assert sharded.get("/documents/1").json()["text"] == ROWS[0]["text"]
        assert sharded.get("/ready").status_code == 200
        new = {"id": "x/1", "text": "A new phone hums.", "metadata": {"stars": 4}}
        assert sharded.put("/documents", json={"documents": [new, new | {"id": "1"}]}).json()["added"] == 1
        assert sharded.get("/documents/x/1").json()["metadata"] == {"stars": 4}
        twice = {"documents": [new | {"text": "Not kept."}, new]}
        counts = {"added": 0, "replaced": 0, "unchanged": 1, "duplicate_ids": 1, "skipped": []}
        assert sharded.put("/documents", json=twice).json() == counts
        assert sharded.delete("/documents/1").json() == {"deleted": 1}
        assert sharded.get("/documents/1").status_code == 404
        [found] = sharded.get("/collections").json()
        rows = found["passages"] + found["tombstones"]
        assert (found["documents"], found["ann"]["rows"] + found["newer"]) == (3, rows)
        assert found["ann"]["reason"] == "2 shards: exact in 2"


def test_runs_by_http(tmp_path: Path):
    both = TwoWays(tmp_path, shards=3)
    both.index(themes.rows(15))
    said = [_asked(client_of(tmp_path / f"{name}.sonde")) for name in ("one", "sharded")]
    for one, sharded in zip(*said, strict=True):
        assert one == sharded
    assert both.sharded.verify() == []


def _asked(service: TestClient) -> list[Any]:
    """Write runs and ask for them, and return the answers without times."""
    with service as client:
        for method, options in (
            ("cluster", {"name": "k", "k": 4}),
            ("tag", {"name": "late", "where": "stars <= 1"}),
            ("map", {"name": "m"}),
            ("rename_run", {"name": "k", "to": "groups"}),
        ):
            answer = client.post(f"/write/{method}", json={"options": options})
            assert answer.status_code == 200, answer.text
        found = client.post("/search", json={"query": "parcel", "where": '"cluster:groups" = 1 AND "tag:late"'})
        refused(client.get("/topics"), 404, "no topic run", field="run")
        return [
            [(run["name"], run["documents"]) for run in client.get("/runs").json()],
            [(item["name"], item["documents"]) for item in client.get("/clusters").json()["items"]],
            client.get("/map", params={"offset": 3, "limit": 9}).json()["points"],
            found.json()["hits"],
        ]


def test_an_assistant_over_shards(tmp_path: Path):
    both = TwoWays(tmp_path, shards=3)
    both.index(themes.rows(15))
    for collection in (both.one, both.sharded):
        collection.topics("t")
        collection.label(tuple(themes.THEMES), name="l")
    one, sharded = server_of(both.one), server_of(both.sharded)
    for tool, given in (
        ("search", {"query": "late parcel", "where": "\"label:l\" = 'parcel'"}),
        ("topics", {}),
        ("count", {"by": "label:l"}),
        ("get_document", {"id": "parcel-3"}),
    ):
        assert call(sharded, tool, **given) == call(one, tool, **given), tool

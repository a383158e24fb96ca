"""Results as DataFrames and in notebooks: short, escaped, and with the columns of `--json`."""
# ruff: noqa: F811  (fixtures that are imported)

from typing import Any

import pytest
from extras import needs
from fastapi.testclient import TestClient
from http_service import client, folder, local  # noqa: F401  (fixtures)
from themes import collection, rows

from sonde.app.api import Collection
from sonde.app.http.client import RemoteCollection

FOUND = {
    "clusters": (lambda c: c.cluster("two", k=2), 2, ["number", "name"]),
    "the run": (lambda c: c.cluster_run("two"), 2, ["number", "name"]),
    "counts": (lambda c: c.breakdown("two", "stars"), 3, ["number", "name", "class", "documents", "share"]),
    "labels": (lambda c: c.label(["phone", "tablet"], engine="similarity"), 2, ["label", "documents"]),
    "findings": (lambda c: c.check(kinds=["personal data"]), 1, ["kind", "id", "score", "why"]),
    "duplicates": (lambda c: c.duplicates(), 1, ["representative", "id", "kind", "similarity"]),
    "a taxonomy": (lambda c: c.make_taxonomy("two"), 2, ["number", "name", "path", "level"]),
}


@pytest.mark.parametrize("remote", [False, True])
def test_results_are_tables(local: Collection, client: TestClient, remote: bool) -> None:
    asked: Any = RemoteCollection(client) if remote else local  # type: ignore[arg-type]
    row = {"id": "<b>", "text": "Great phone, lasts for days. Ask <b>me</b> at a.b@example.org", "stars": 5}
    asked.put([row, {"id": "copy", "title": "Phone", "text": "Great phone, lasts for days.", "stars": 5}])
    for name, (ask, length, columns) in FOUND.items():
        found = ask(asked)
        frame = found.to_pandas()
        assert (name, len(frame), list(frame.columns)[: len(columns)]) == (name, length, columns)
        assert frame.to_dict("records")[0].keys() == found.rows()[0].keys()
        assert len(repr(found)) < 80 and repr(found).startswith(type(found).__name__)
        shown = found._repr_html_()
        assert shown.startswith('<div class="tex2jax_ignore mathjax_ignore">')
        assert shown.count("<tr>") == length + 1
        assert "<b>" not in shown


def test_runs_are_shown_in_short(local: Collection) -> None:
    local.cluster("two", k=2)
    assert repr(local.runs()) == "[Run('cluster', 'two', 3 documents)]"


@needs("umap")
def test_a_remote_map_is_a_table(local: Collection, client: TestClient) -> None:
    local.put([{"id": f"p{n}", "text": f"Parcel {n} is late."} for n in range(20)])
    made = RemoteCollection(client).map()  # type: ignore[arg-type]
    assert made.to_pandas()["id"].tolist() == [row["id"] for row in local.rows()]
    assert repr(made).startswith("RemoteMap(")


@needs("bertopic")
def test_topics_and_maps_are_tables(tmp_path: Any) -> None:
    made = collection(tmp_path / "c.sonde", rows())
    topics = made.topics(min_size=10, names="terms")
    assert topics.to_pandas()["size"].tolist() == [30] * 4
    assert sum(topics.over("day").to_pandas()["documents"].tolist()) == 120
    assert topics._repr_html_().count("<tr>") == 5
    frame = made.map(seed=3).to_pandas()
    assert (list(frame.columns), frame["id"].tolist()) == (["id", "x", "y"], [row["id"] for row in rows()])
    assert "10 more: to_pandas() has all" in made.cluster("many", k=30)._repr_html_()

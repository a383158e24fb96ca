"""The service's OpenAPI document says how to send a key, and what errors look like."""
# ruff: noqa: F811  (fixtures that are imported)

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from http_service import client, client_of, folder, local  # noqa: F401  (fixtures)
from pydantic import TypeAdapter

from sonde.app.http import responses
from sonde.app.http.guard import add_key


def test_errors_have_their_own_media_type(folder: Path) -> None:
    with client_of(folder) as client:
        described = client.get("/openapi.json").json()
        refused = client.get("/documents", params={"id": "nobody"})
    found = described["paths"]["/documents"]["get"]["responses"]["404"]["content"]
    assert found == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}}}
    assert refused.headers["content-type"] in found
    assert set(described["components"]["schemas"]["ProblemOut"]["required"]) <= refused.json().keys()
    assert "security" not in described


def test_with_keys_every_route_needs_one_but_those_of_the_state(folder: Path, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.json", "reader", "read")
    with client_of(folder, keys=tmp_path / "keys.json") as client:
        described = client.get("/openapi.json", headers={"Authorization": f"Bearer {key}"}).json()
        assert described["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
        assert described["security"] == [{"key": []}]
        open_routes = {path for path, said in described["paths"].items() if said.get("get", {}).get("security") == []}
        assert open_routes == {path for path in described["paths"] if client.get(path).status_code in (200, 503)}


ANSWERS: list[tuple[str, str, dict[str, Any] | None, Any]] = [
    ("GET", "/health", None, responses.Alive),
    ("GET", "/ready", None, responses.Ready),
    ("GET", "/jobs", None, list[responses.JobOut]),
    ("GET", "/collections", None, list[responses.CollectionOut]),
    ("GET", "/runs", None, list[responses.RunOut]),
    ("GET", "/clusters", None, responses.Groups),
    ("GET", "/topics", None, responses.Groups),
    ("GET", "/labels", None, responses.Groups),
    ("GET", "/map", None, responses.MapPage),
    ("GET", "/documents/1", None, responses.DocumentOut),
    ("POST", "/search", {"query": "battery"}, responses.Hits),
    ("POST", "/search", {"query": "battery", "explain": True, "rerank": True}, responses.Hits),
    ("POST", "/search", {"query": "battery", "mode": "lexical", "texts": False}, responses.Hits),
    ("POST", "/similar", {"id": "1"}, responses.Hits),
    ("POST", "/label", {"texts": ["a screen"], "labels": ["phone", "tablet"]}, responses.Labelled),
    ("POST", "/rerank", {"query": "a", "texts": ["b", "c"]}, responses.Reranked),
    ("POST", "/embed", {"texts": ["a"]}, responses.Vectors),
    ("PUT", "/documents", {"documents": [{"id": "1", "text": "New."}]}, responses.Written),
    ("DELETE", "/documents/2", None, responses.Deleted),
    ("POST", "/search", {"k": 0}, responses.ProblemOut),
]


@pytest.fixture
def with_runs(client: TestClient) -> TestClient:
    for method, options in (("cluster", {"k": 2}), ("topics", {"min_size": 2}), ("map", {}),
                            ("label", {"labels": ["phone", "tablet"], "engine": "similarity"})):  # fmt: skip
        answer = client.post(f"/write/{method}", json={"options": options})
        assert answer.status_code == 200, answer.text
    return client


def test_every_answer_has_the_fields_of_its_schema_and_no_others(with_runs: TestClient) -> None:
    for method, path, body, kind in ANSWERS:
        answer = with_runs.request(method, path, json=body)
        known = TypeAdapter(kind)
        found = known.dump_python(known.validate_python(answer.json()), exclude_unset=True, mode="json")
        assert found == answer.json(), path
        assert answer.json() or path == "/jobs"


def test_the_schemas_are_closed_and_the_operations_have_short_names(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    assert [name for name in schemas if schemas[name].get("additionalProperties")] == ["GroupOut", "Region"]
    assert schemas["Hits"]["properties"]["mode"]["enum"] == ["dense", "lexical", "hybrid"]
    assert "not-found" in schemas["ProblemOut"]["properties"]["code"]["enum"]
    assert schemas["SearchRequest"]["properties"]["k"] == {
        "type": "integer", "minimum": 1, "maximum": 1_000, "default": 10, "title": "K",
        "description": "Documents to return.",
    }  # fmt: skip
    assert schemas["DocumentIn"]["required"] == ["id", "text"]
    names = [operation["operationId"] for path in described["paths"].values() for operation in path.values()]
    assert len(names) == len({*names}) and {"search", "get_document", "put_documents", "runs"} <= {*names}
    for path in ("/runs", "/clusters", "/collections", "/label", "/map", "/ready"):
        [operation] = described["paths"][path].values()
        assert "$ref" in str(operation["responses"]["200"]), path


def test_the_calls_of_the_manual_run(with_runs: TestClient) -> None:
    page = (Path(__file__).parents[3] / "docs" / "http.md").read_text()
    calls = re.findall(r"^POST (/\S+) (\{.*\})$", page, re.MULTILINE)
    assert len(calls) == 5
    answers = [with_runs.post(path, content=body, headers={"content-type": "application/json"}) for path, body in calls]
    assert [answer.status_code for answer in answers] == [200] * 5, [answer.text for answer in answers]
    shown = json.loads(re.findall(r'^```json\n(\{"result".*?)^```', page, re.MULTILINE | re.DOTALL)[0])["result"]
    found = answers[0].json()["result"]
    assert {name: found[name] for name in shown} == shown


def test_offsets_count_code_points(client: TestClient) -> None:
    text = "\U0001f600 Prices rose. \U0001f600 " + "The hinge squeaks when it is cold. " * 40
    client.put("/documents", json={"documents": [{"id": "e", "text": text}]})
    [hit] = client.post("/search", json={"query": "hinge", "where": "id = 'e'", "explain": True}).json()["hits"]
    for part in (hit["passage"], hit["excerpt"], *hit["why"]["sentences"]):
        assert text[part["start"] : part["end"]].strip() == part["text"].strip()

"""The service's OpenAPI document says how to send a key, and what errors look like."""

from pathlib import Path

from http_service import client_of, folder  # noqa: F401  (fixture)

from sonde.app.http.guard import add_key


def test_errors_have_their_own_media_type(folder: Path) -> None:  # noqa: F811
    with client_of(folder) as client:
        described = client.get("/openapi.json").json()
        refused = client.get("/documents", params={"id": "nobody"})
    found = described["paths"]["/documents"]["get"]["responses"]["404"]["content"]
    assert found == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}}}
    assert refused.headers["content-type"] in found
    assert set(described["components"]["schemas"]["ProblemOut"]["required"]) <= refused.json().keys()
    assert "security" not in described


def test_with_keys_every_route_needs_one_but_those_of_the_state(folder: Path, tmp_path: Path) -> None:  # noqa: F811
    key = add_key(tmp_path / "keys.json", "reader", "read")
    with client_of(folder, keys=tmp_path / "keys.json") as client:
        described = client.get("/openapi.json", headers={"Authorization": f"Bearer {key}"}).json()
        assert described["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
        assert described["security"] == [{"key": []}]
        open_routes = {path for path, said in described["paths"].items() if said.get("get", {}).get("security") == []}
        assert open_routes == {path for path in described["paths"] if client.get(path).status_code in (200, 503)}

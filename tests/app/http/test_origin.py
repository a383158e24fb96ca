"""A service answers only under its own names, and only its own pages and programs: not a stranger's web page."""
# ruff: noqa: F811  (fixtures that are imported)

from pathlib import Path

import pytest
from command_line import Command
from fastapi.testclient import TestClient
from http_service import client, client_of, folder, local, refused  # noqa: F401  (fixtures)

from sonde.app.api import Collection
from sonde.app.http.guard import add_key
from sonde.app.http.origin import Names
from sonde.indexer.errors import UsageError

OWN = "127.0.0.1:8080"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9", "LOCALHOST:8080", "localhost.", "[::1]:80", "a.localhost"]
)
def test_loopback_names_are_always_its_own(host: str) -> None:
    assert Names().answers_for(host)
    assert Names("10.0.0.7").answers_for(host)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil-localhost", "10.0.0.7", "127.0.0.1.evil.example", "", None, "a b",
     "127.0.0.1:8080:1", "user@localhost", "localhost/x", "2130706433", "[::1"],
)  # fmt: skip
def test_other_names_are_not(host: str | None) -> None:
    assert not Names().answers_for(host)


def test_names_of_a_service_for_other_machines() -> None:
    assert Names("10.0.0.7").answers_for("10.0.0.7:8080")
    assert not Names("10.0.0.7").answers_for("10.0.0.8")
    assert Names("box").answers_for("BOX:80")
    for everywhere in ("0.0.0.0", "::"):
        assert Names(everywhere).answers_for("10.0.0.8:80")
        assert not Names(everywhere).answers_for("evil.example")
        assert Names(everywhere, ("search.example.org",)).answers_for("Search.Example.org")


@pytest.mark.parametrize("name", ["http://a.example", "a.example:80", "", "*", "a b"])
def test_a_name_that_is_not_one(name: str) -> None:
    with pytest.raises(UsageError, match=r"allow_host is .*: give a bare name such as search\.example\.org"):
        Names(allowed=(name,))


def test_a_request_for_another_host_is_refused_on_every_route(client: TestClient, local: Collection) -> None:
    for method, path in (
        ("GET", "/health"),
        ("GET", "/openapi.json"),
        ("GET", "/documents/1"),
        ("DELETE", "/documents/1"),
    ):
        answer = client.request(method, path, headers={"host": "evil.example"})
        refused(answer, 421, "'evil.example'", "--allow-host evil.example")
    assert len(local) == 3
    assert client.get("/health", headers={"host": "localhost:1"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://[x"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_a_page_of_another_site_cannot_write(client: TestClient, local: Collection, headers: dict[str, str]) -> None:
    refused(client.delete("/documents/1", headers=headers), 403, "may not use this service")
    refused(
        client.post("/search", json={"query": "a"}, headers=headers),
        403,
        "one proxy",
        "add --allow-origin ORIGIN (see docs/http.md)",
    )
    assert len(local) == 3


def test_own_pages_and_links_are_answered(client: TestClient) -> None:
    for headers in (
        {"origin": f"http://{OWN}", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ):
        assert client.get("/documents/1", headers=headers).status_code == 200


def test_the_page_of_a_proxy_is_its_own(folder: Path) -> None:
    with client_of(folder, allow_host=("search.example.org",)) as client:
        for host in ("search.example.org", OWN):
            headers = {"origin": "https://search.example.org", "sec-fetch-site": "same-origin", "host": host}
            assert client.post("/search", json={"query": "battery"}, headers=headers).status_code == 200
        refused(client.get("/health", headers={"host": "www.example.org"}), 421)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_a_form_could_send_is_not_read(client: TestClient, kind: str) -> None:
    answer = client.post("/search", content='{"query": "battery"}', headers={"content-type": kind})
    refused(answer, 415, "Content-Type: application/json")


PAGE = "http://localhost:3000"


def test_a_page_elsewhere_that_is_allowed(folder: Path, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.json", "page", "read")
    with client_of(folder, keys=tmp_path / "keys.json", allow_origin=(PAGE,)) as client:
        asks = {"origin": PAGE, "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type"}  # fmt: skip
        asked = client.options("/search", headers=asks)
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, PAGE)
        sent = {"origin": PAGE, "sec-fetch-site": "same-site", "authorization": f"Bearer {key}"}
        answer = client.post("/search", json={"query": "battery"}, headers=sent)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        without = client.post("/search", json={"query": "battery"}, headers={"origin": PAGE})
        refused(without, 401, "give an API key")
        assert without.headers["access-control-allow-origin"] == PAGE  # so that the page can read why
        other = client.post("/search", json={"query": "battery"}, headers={**sent, "origin": "http://localhost:3001"})
        refused(other, 403, "may not use this service")
        assert "access-control-allow-origin" not in other.headers


def test_no_page_elsewhere_is_allowed_by_default_or_without_keys(client: TestClient, sonde: Command) -> None:
    headers = {"origin": PAGE, "access-control-request-method": "POST"}
    refused(client.options("/search", headers=headers), 403, "may not use this service")
    sonde("serve", "c.sonde", "--allow-origin", PAGE).refused(
        "--allow-origin lets web pages use", "--keys FILE", code=2
    )


@pytest.mark.parametrize("origin", ["*", "null", "localhost:3000", "http://a.example/", "http://A.example", "http://"])
def test_an_origin_that_is_not_one(origin: str) -> None:
    with pytest.raises(UsageError, match=r"^allow_origin is .*: give an origin such as http://localhost:3000"):
        Names(origins=(origin,))

"""Every status that the service answers is in the OpenAPI document, and the key is checked before anything is read."""
# ruff: noqa: F811  (fixtures that are imported)

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from http_service import client, client_of, folder, local, refused  # noqa: F401  (fixtures)
from thinned import thinned

from sonde.app.http.guard import add_key
from sonde.indexer.errors import SondeError

JSON = {"content-type": "application/json"}
WRONG: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no JSON": {"content": b"{", "headers": JSON},
    "bad UTF-8": {"content": b'{"a": "\xe9"}', "headers": JSON},
    "a deep one": {"content": b"[" * 9_000, "headers": JSON},
    "a long number": {"content": b'{"k": ' + b"1" * 5_000 + b"}", "headers": JSON},
    "many values": {"content": b"[" + b"[]," * 250_000 + b"1]", "headers": JSON},
    "a list": {"json": [1]},
    "null": {"content": b"null", "headers": JSON},
    "other fields": {"json": {"x": 1}},
    "very many fields": {"json": {f"x{number}": 1 for number in range(5_000)}},
    "wrong types": {"json": {"query": 1, "texts": 1, "documents": 1, "options": 1, "premise": []}},
    "many wrong entries": {"json": {"texts": [1] * 5_000, "documents": [1] * 5_000, "options": {}}},
    "a form": {"content": b"a=b", "headers": {"content-type": "application/x-www-form-urlencoded"}},
    "too large": {"content": b'"' + b"x" * 5_000_000 + b'"', "headers": JSON},
    "another host": {"headers": {"host": "evil.example"}},
    "another page": {"headers": {"origin": "http://evil.example"}},
    "no collection": {"params": {"collection": "none"}, "json": {"collection": "none"}},
    "wrong query": {"params": {"limit": "x", "offset": "-1"}},
}


def routes(client: TestClient) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the method, the path and the description of every route."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method, described in methods.items():
            yield method.upper(), path.format(id="none", opened="topic_run", method="none"), described


def test_a_collection_that_was_moved_away(client: TestClient, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    away = folder.rename(folder.with_name("away.sonde"))
    new = {"documents": [{"id": "9", "text": "new"}]}
    for answer in (client.post("/search", json={"query": "battery"}), client.put("/documents", json=new)):
        refused(answer, 503, "the collection is not available: its folder was moved or removed")
        assert answer.json()["code"] == "no-collection" and str(folder) not in answer.text
    assert not folder.exists() and f"{folder}" in caplog.text
    away.rename(folder)
    assert client.post("/search", json={"query": "battery"}).status_code == 200


@pytest.mark.parametrize("name", thinned([*WRONG], 2))
def test_every_answer_is_documented(client: TestClient, name: str) -> None:
    tried = 0
    for method, path, described in routes(client):
        answer = client.request(method, path, **WRONG[name])
        assert str(answer.status_code) in described["responses"], (method, path, answer.text)
        assert answer.status_code < 500, (method, path, answer.text)
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("key", [None, "sonde_wrong"])
def test_the_key_is_checked_before_the_body_is_read(folder: Path, tmp_path: Path, key: str | None) -> None:
    add_key(tmp_path / "keys.json", "a", "read")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with client_of(folder, keys=tmp_path / "keys.json") as client:
        for method, path, described in routes(client):
            for content in (b"{", b'"' + b"x" * 5_000_000 + b'"'):
                answer = client.request(method, path, content=content, headers=headers)
                if path in ("/health", "/ready"):
                    assert str(answer.status_code) in described["responses"]
                else:
                    refused(answer, 401, "this API key is not valid" if key else "give an API key")


def test_the_rights_are_checked_before_the_body_is_read(folder: Path, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {add_key(tmp_path / 'keys.json', 'a', 'read')}"}
    with client_of(folder, keys=tmp_path / "keys.json") as client:
        writing = [(m, path) for m, path, _ in routes(client) if m in ("PUT", "DELETE") or path.startswith("/write")]
        assert len(writing) == 5
        for method, path in writing:
            refused(client.request(method, path, content=b"{", headers=headers), 403, "only read")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/documents/%0a", "the path has no id; put an id with a line break in the query: /documents?id=ID"),
        ("/documents/", "the path has no id; put an id with a line break in the query: /documents?id=ID"),
        ("/documents/a%0ab", "there is no route '/documents/a\\nb'; put an id with a line break in the query:"),
        ("/nothing", "there is no route '/nothing'; /openapi.json lists all routes"),
        ("/nothing/", "there is no route '/nothing/'; /openapi.json lists all routes"),
        ("/search/", "there is no route '/search/'; did you mean '/search'?"),
    ],
)
def test_what_does_not_arrive_in_a_path(client: TestClient, path: str, said: str) -> None:
    refused(client.get(path), 404, said)


@pytest.mark.parametrize("id", ["a\nb", "a/b/", "100%", "%2F", "a b", "?x=1#y", "\x01", "ü", "..", ".", "//", "a\\b"])
def test_an_id_of_any_characters(client: TestClient, id: str) -> None:
    from sonde.app.http.client import RemoteCollection

    remote = RemoteCollection(client)  # type: ignore[arg-type]
    assert remote.put([{"id": id, "text": "a zebra"}]).added == 1
    found = remote.get(id)
    assert found and (found.id, found.text) == (id, "a zebra")
    answer = client.get("/documents", params={"id": id})
    assert (answer.status_code, answer.json()["id"]) == (200, id)
    assert client.delete("/documents", params={"id": id}).json() == {"deleted": 1}
    refused(client.get("/documents", params={"id": id}), 404, "there is no document")
    with pytest.raises(SondeError, match="there is no document with the id"):
        remote.get(id)


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_a_probe_without_a_body(folder: Path, tmp_path: Path, path: str) -> None:
    add_key(tmp_path / "keys.json", "a", "read")
    with client_of(folder, keys=tmp_path / "keys.json") as client:
        client.portal.call(client.app.state.ready.wait)  # type: ignore[union-attr, attr-defined]
        asked, probed = client.get(path), client.head(path)
    assert (asked.status_code, probed.status_code, probed.content) == (200, 200, b"")
    assert probed.headers["content-length"] == asked.headers["content-length"]


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_slash_behind_a_route_is_not_redirected(folder: Path, tmp_path: Path, method: str) -> None:
    add_key(tmp_path / "keys.json", "a", "read")
    with client_of(folder, keys=tmp_path / "keys.json") as client:
        answer = client.request(method, "/search/", follow_redirects=False)
        refused(answer, 404, "there is no route '/search/'; did you mean '/search'?")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/search", "POST"), ("POST", "/documents", "DELETE, GET, HEAD, PUT"), ("POST", "/health", "GET, HEAD"),
     ("PUT", "/documents/1", "DELETE, GET, HEAD")],
)  # fmt: skip
def test_the_methods_of_a_path_are_named(client: TestClient, method: str, path: str, allowed: str) -> None:
    answer = client.request(method, path)
    refused(answer, 405, f"{path!r} does not support {method}: use {allowed}")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/documents/a%ff", "/documents?id=a%ff", "/runs?collection=%c3"])
def test_an_address_that_is_not_utf_8(client: TestClient, path: str) -> None:
    refused(client.get(path), 400, "the address is not valid UTF-8: percent-encode its UTF-8 bytes")


def test_head_is_answered_where_get_is(client: TestClient) -> None:
    for path in ("/runs", "/documents/1", "/documents?id=1", "/collections", "/jobs"):
        asked, probed = client.get(path), client.head(path)
        assert (probed.status_code, probed.content) == (200, b"")
        assert probed.headers["content-length"] == asked.headers["content-length"]
    assert client.head("/documents/none").status_code == 404
    assert client.head("/search").status_code == 405


def test_every_code_is_listed(client: TestClient) -> None:
    """The codes of the sources, those of the schema, and those that the manual lists with their statuses."""
    import re

    from sonde.app.http.problems import CODES, KINDS, ON_DISK
    from sonde.app.http.responses import ERROR_CODES

    top = Path(__file__).parents[3]
    sources = [path.read_text() for part in ("app", "indexer", "pipelines") for path in (top / part).rglob("*.py")]
    given = {code for text in sources for code in re.findall(r'\bcode(?:: str)? ?= ?"([a-z-]+)"', text)}
    given |= {*CODES.values(), *ON_DISK, *(code for _, code in KINDS.values())}
    given |= {code for text in sources for code in re.findall(r'exit_code, code = \d, "([a-z-]+)"', text)}
    elsewhere = {"deletes-most", "exists", "no-documents", "no-keys", "not-keys", "not-sharded"}  # of commands
    assert given - {*ERROR_CODES} == elsewhere
    section = (top / "docs" / "http.md").read_text().partition("| status | codes |")[2].partition("\n\n")[0]
    assert sorted({*re.findall(r"`([a-z-]+)`", section)}) == sorted(ERROR_CODES)

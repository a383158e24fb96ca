"""The HTTP service given what cannot be: a problem that names the field, and nothing of the code's insides."""
# ruff: noqa: F811  (fixtures that are imported)

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from http_service import client, client_of, folder, local, refused  # noqa: F401  (fixtures)

from sonde.app.api import Collection

MISTAKES: dict[str, tuple[str, Any, int, str, tuple[str, ...]]] = {
    "no query": ("/search", {}, 422, "query", ("required",)),
    "an empty query": ("/search", {"query": "  "}, 422, "query", ("empty",)),
    "a query of 200,000 characters": ("/search", {"query": "x" * 200_000}, 422, "query", ("100,000",)),
    "half a surrogate pair": ("/search", '{"query": "a\\ud800"}', 422, "query", ("unicode",)),
    "k of 0": ("/search", {"query": "a", "k": 0}, 422, "k", ()),
    "k of a million": ("/search", {"query": "a", "k": 10**6}, 422, "k", ("1,000",)),
    "k as text": ("/search", {"query": "a", "k": "many"}, 422, "k", ()),
    "a mode that is none": ("/search", {"query": "a", "mode": "psychic"}, 422, "mode", ("hybrid",)),
    "a typo": ("/search", {"query": "a", "treshold": 1}, 422, "treshold", ()),
    "an unknown column": ("/search", {"query": "a", "where": "price > 1"}, 422, "where", ("price", "stars")),
    "an injection": ("/search", {"query": "a", "where": "1=1; DROP TABLE documents"}, 422, "where", ()),
    "a union": ("/search", {"query": "a", "where": "stars IN (SELECT doc FROM documents)"}, 422, "where", ()),
    "another collection": ("/search", {"query": "a", "collection": "../../etc"}, 404, "collection", ("reviews",)),
    "not a number": ("/search", '{"query": "a", "threshold": NaN}', 422, "threshold", ()),
    "similar to nothing": ("/similar", {}, 422, "id", ("one of the two",)),
    "similar to two": ("/similar", {"id": "1", "text": "a"}, 422, "id", ("one of the two",)),
    "similar to what is not there": ("/similar", {"id": "77"}, 404, "id", ("'77'",)),
    "an empty example": ("/similar", {"text": " "}, 422, "text", ("empty",)),
    "no texts": ("/embed", {"texts": []}, 422, "texts", ()),
    "too many texts": ("/embed", {"texts": ["a"] * 1_001}, 422, "texts", ("1,000",)),
    "an empty text among others": ("/embed", {"texts": ["a", " "]}, 422, "texts.1", ("empty",)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_field(client: TestClient, name: str) -> None:
    path, body, status, field, words = MISTAKES[name]
    content = {"json": body} if isinstance(body, dict) else {"content": body}
    refused(client.post(path, headers={"content-type": "application/json"}, **content), status, *words, field=field)


@pytest.mark.parametrize("document", [{"id": "", "text": "a"}, {"id": "1", "text": " "}, {"id": "1"}, {"text": "a"},
                                      {"id": "1", "text": "a", "metadata": {"x": {"deep": 1}}}])  # fmt: skip
def test_a_document_that_cannot_be(client: TestClient, local: Collection, document: dict[str, Any]) -> None:
    answer = client.put("/documents", json={"documents": [{"id": "8", "text": "fine"}, document]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("documents.1")
    assert len(local) == 3


@pytest.mark.parametrize("body", [b"", b"{", b'{"query": "caf\xe9"}', b"[" * 100_000, b"null", b'"text"'])
def test_a_body_that_is_no_json_object(client: TestClient, body: bytes) -> None:
    answer = client.post("/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_that_is_too_large_is_not_read(folder: Path) -> None:
    with client_of(folder, max_body=1_000) as client:
        refused(client.post("/search", json={"query": "x" * 2_000}), 413, "1,000 bytes")
        sent: list[int] = []

        def endless() -> Iterator[bytes]:
            while len(sent) < 1_000:
                sent.append(1)
                yield b"x" * 600

        refused(client.post("/search", content=endless()), 413, "1,000 bytes")


def test_paths_that_do_not_exist(client: TestClient) -> None:
    for path in ("/nothing", "/docs", "/../../etc/passwd"):
        refused(client.get(path), 404)
    refused(client.get("/search"), 405)


def test_no_answer_shows_an_error_of_the_code(folder: Path) -> None:
    with client_of(folder) as client:
        client.app.state.context.hosts.find(None).searches._work = lambda _: 1 / 0  # type: ignore[attr-defined]
        refused(client.post("/search", json={"query": "battery"}), 500, "its log says why")

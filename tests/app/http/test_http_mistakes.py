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
    "k of 0": ("/search", {"query": "a", "k": 0}, 422, "k", ("k: give 1 or more",)),
    "k of a million": ("/search", {"query": "a", "k": 10**6}, 422, "k", ("1,000",)),
    "k as text": ("/search", {"query": "a", "k": "many"}, 422, "k", ()),
    "a mode that is none": ("/search", {"query": "a", "mode": "psychic"}, 422, "mode", ("hybrid",)),
    "a typo": ("/search", {"query": "a", "treshold": 1}, 422, "treshold", ("did you mean 'threshold'?",)),
    "a collection with its suffix": (
        *("/search", {"query": "a", "collection": "reviews.sonde"}, 404, "collection"),
        ("there is no collection 'reviews.sonde': did you mean 'reviews'?",),
    ),
    "half a surrogate pair in a call": (
        *("/read/search", '{"options": {"query": "a\\ud800"}}', 422, "options"),
        ("the text is not valid Unicode: write it in UTF-8",),
    ),
    "a call without a query": ("/read/search", {}, 422, "query", ("missing a required argument: 'query'",)),
    "a deep offset": ("/read/search", {"options": {"query": "a", "offset": 999}}, 422, "offset", ("1,009", "1,000")),
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
    "too many hits to skip": ("/search", {"query": "a", "offset": 995}, 422, "offset", ("1,005", "1,000")),
    "a list instead of an object": ("/search", "[]", 422, "body", ("body: give an object",)),
    "k as a text of digits": ("/search", {"query": "a", "k": "3"}, 422, "k", ("k: give a whole number",)),
    "k as a truth value": ("/search", {"query": "a", "k": True}, 422, "k", ("k: give a whole number",)),
    "a weight as text": ("/search", {"query": "a", "weight": "0.5"}, 422, "weight", ("weight: give a number",)),
    "a truth value as text": ("/search", {"query": "a", "explain": "yes"}, 422, "explain", ("give true or false",)),
    "a second stage without reranking": (
        *("/search", {"query": "a", "rerank_model": "late"}, 422, "rerank", ("need rerank: use it too",)),
    ),
    "an empty question": ("/read/ask", {"options": {"question": " "}}, 422, "question", ("the question is empty",)),
    "a call without an argument": ("/read/count_by", {}, 422, "column", ("missing a required argument: 'column'",)),
    "a call with another argument": (
        *("/read/count_by", {"options": {"column": "a", "zz": 1}}, 422, "zz"),
        ("unexpected keyword argument 'zz'; it takes column, where, period, mean_of, k, offset",),
    ),
    "a call that takes nothing": ("/read/facets", {"options": {"k": 1}}, 422, "k", ("it takes no arguments",)),
    "a call with a typo": ("/read/search", {"options": {"query": "a", "wher": "b"}}, 422, "wher", ("mean 'where'?",)),
    "a run that is none": ("/read/topics/tree", {}, 404, "opened", ("use topic_run or map_run",)),
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


@pytest.mark.parametrize("value", ['{"deep": 1}', "[[1]]", "[null]", "NaN", "[1, 1e999]"])
def test_a_value_that_metadata_cannot_hold_is_one_mistake(client: TestClient, value: str) -> None:
    body = f'{{"documents": [{{"id": "8", "text": "a", "metadata": {{"x": {value}}}}}]}}'
    answer = client.put("/documents", content=body, headers={"content-type": "application/json"})
    said = "documents.0.metadata.x: give text, a number, true, false, a list of these, or null; write dates as text"
    refused(answer, 422, said)
    assert [each["field"] for each in answer.json()["errors"]] == ["documents.0.metadata.x"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"query": "caf\xe9"}', b"[" * 40_000, b"null", b'"text"'])
def test_a_body_that_is_no_json_object(client: TestClient, body: bytes) -> None:
    answer = client.post("/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "status"), [(b"[" * 50_001, 413), (b"[" + b"1," * 249_999, 413), (b"1," * 250_000, 400)]
)
def test_a_body_has_250_000_commas_at_most_and_a_bracket_counts_as_five(
    client: TestClient, body: bytes, status: int
) -> None:
    answer = client.post("/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert ("too many commas and brackets: send fewer values at once" in answer.json()["detail"]) == (status == 413)


@pytest.mark.parametrize(
    ("path", "body", "field", "detail"),
    [
        ("/search", '{"query": "a", "kk": 1}', "kk", "there is no option 'kk': did you mean 'k'?"),
        ("/embed", '{"texts": ["a"], "zzz": 1}', "zzz", "there is no option 'zzz': use collection, texts, query"),
        (
            "/search",
            '{"query": "a" "k": 1}',
            "body",
            "the body is not valid JSON: Expecting ',' delimiter at character 15",
        ),
    ],
)
def test_options_and_json_that_are_not_valid(client: TestClient, path: str, body: str, field: str, detail: str) -> None:
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    refused(answer, 400 if field == "body" else 422, field=field)
    assert answer.json()["detail"] == answer.json()["errors"][0]["problem"] == detail


@pytest.mark.parametrize(
    ("call", "options", "status", "words"),
    [
        (
            "read/choices_among",
            {"ids": ["1"], "known": None},
            422,
            "known has None: give facets, as `facets()` returns",
        ),
        ("read/choices_among", {"ids": ["1"], "known": ["stars"]}, 422, "known has 'stars': give facets"),
        ("read/count_by", {"column": "stars", "period": ["year"]}, 422, "period is ['year']"),
        ("write/correct", {"given": {"1": {"a": 1}}}, 422, "is not a valid"),
    ],
)
def test_values_of_the_wrong_type_in_options(
    client: TestClient, call: str, options: dict[str, Any], status: int, words: str
) -> None:
    refused(client.post(f"/{call}", json={"options": options}), status, words)


def test_a_number_that_no_document_can_have(client: TestClient) -> None:
    assert client.post("/read/numbered", json={"options": {"docs": [10**40, -1]}}).json() == {"result": []}


def test_an_option_of_one_of_several_documents(client: TestClient) -> None:
    documents = [{"id": "8", "text": "a"}, {"id": "9", "text": "b", "titel": "c"}]
    answer = client.put("/documents", json={"documents": documents})
    refused(answer, 422, "there is no option 'titel': did you mean 'title'?", field="documents.1.titel")


def test_a_body_that_is_too_large_is_not_read(folder: Path) -> None:
    with client_of(folder, max_body=1_000) as client:
        refused(client.post("/search", json={"query": "x" * 2_000}), 413, "1,000 bytes")
        sent: list[int] = []

        def endless() -> Iterator[bytes]:
            while len(sent) < 1_000:
                sent.append(1)
                yield b"x" * 600

        headers = {"content-type": "application/json"}
        refused(client.post("/search", content=endless(), headers=headers), 413, "1,000 bytes")


def test_paths_that_do_not_exist(client: TestClient) -> None:
    for path in ("/nothing", "/docs", "/../../etc/passwd"):
        refused(client.get(path), 404)
    refused(client.get("/search"), 405)


def test_no_answer_shows_an_error_of_the_code(folder: Path) -> None:
    with client_of(folder) as client:
        client.app.state.context.hosts.find(None).searches.quick._work = lambda _: 1 / 0  # type: ignore[attr-defined]
        refused(client.post("/search", json={"query": "battery"}), 500, "see its log")


CODES = {
    "out-of-range": [{"k": 0}, {"k": 10_000}, {"k": 10, "offset": 995}, {"weight": 1.5}, {"rerank_depth": 201}],
    "wrong-type": [{"k": "3"}, {"k": 1.5}, {"where": 1}, {"collapse": 1}],
    "unknown-option": [{"kk": 1}, {"mode": "psychic"}],
    "empty": [{"query": ""}, {"query": " "}],
    "missing-option": [{"query": None}],
}


@pytest.mark.parametrize("code", CODES)
def test_the_code_of_a_mistake(client: TestClient, code: str) -> None:
    for given in CODES[code]:
        body = {"query": "battery"} | given
        body = {name: value for name, value in body.items() if value is not None}
        answer = client.post("/search", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text


def test_a_whole_number_may_be_written_with_a_point(client: TestClient) -> None:
    assert len(client.post("/search", json={"query": "a", "k": 2.0}).json()["hits"]) == 2


@pytest.mark.parametrize(
    ("path", "field", "words"),
    [
        ("/documents?id=1&colection=reviews", "colection", "query string: did you mean 'collection'?"),
        ("/documents?id=1&id=2", "id", "id is in the query string more than once"),
        ("/documents/1?id=2", "id", "query string: use collection"),
        ("/collections?name=reviews", "name", "this route takes none"),
        ("/runs?kind=cluster", "kind", "query string: use collection"),
    ],
)
def test_a_query_string_is_as_strict_as_a_body(client: TestClient, path: str, field: str, words: str) -> None:
    refused(client.get(path), 422, words, field=field)


@pytest.mark.parametrize(
    ("path", "options", "field"),
    [
        ("read/run", {"name": "none"}, "run"),
        ("read/members", {"run": "none", "item": 1}, "run"),
        ("read/members", {"run": "two", "item": 77}, "item"),
        ("read/taxonomy", {"name": "none"}, "taxonomy"),
        ("read/get", {"id": "nobody"}, "id"),
        ("read/similar", {"id": "nobody"}, "id"),
        ("write/delete_run", {"kind": "cluster", "name": "none"}, "run"),
        ("write/edit_taxonomy", {"operation": "rename", "groups": [99], "name": "x"}, "groups"),
        ("write/edit_taxonomy", {"operation": "rename", "groups": [0], "name": "x", "taxonomy": "none"}, "taxonomy"),
    ],
)
def test_what_does_not_exist_is_404_by_every_route(
    client: TestClient, path: str, options: dict[str, Any], field: str
) -> None:
    client.post("/write/cluster", json={"options": {"k": 2, "name": "two"}})
    assert client.post("/write/make_taxonomy", json={"options": {"source": "two"}}).status_code == 200
    answer = client.post(f"/{path}", json={"options": options})
    refused(answer, 404, field=field)
    assert answer.json()["code"] == "not-found"


def test_a_run_is_given_by_its_name(client: TestClient) -> None:
    client.post("/write/cluster", json={"options": {"k": 2, "name": "two"}})
    items = client.post("/read/items", json={"options": {"run": "two"}}).json()["result"]
    assert [item["number"] for item in items] == [0, 1]
    assert client.post("/read/item_sizes", json={"options": {"run": "two"}}).json()["result"]["$pairs"]

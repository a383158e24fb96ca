"""Taxonomies over HTTP given what cannot be: one line with a status of 4xx, and nothing changed."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from edited import made, rows_of
from fastapi.testclient import TestClient
from http_service import client_of
from thinned import thinned

LONG = "n" * 50_000
WRONG: list[Any] = [None, True, -1, 1.5, 10**30, "", LONG, "a\x00b", [], [[]], {}, {"a": 1}, [None], [1.5], [True]]
SOME = thinned(WRONG, 2)
READING = {"taxonomy": ("name",), "taxonomy_log": ("name", "k"), "export_taxonomy": ("form", "name")}
WRITING = {
    "make_taxonomy": ("source", "name", "kind", "replace", "by"),
    "update_taxonomy": ("name", "by", "seed"),
    "refit_taxonomy": ("name", "k", "by", "seed"),
    "undo_taxonomy": ("steps", "name", "by"),
    "import_taxonomy": ("text", "form", "name", "documents", "label", "replace", "by"),
}
EDIT = (
    "operation", "name", "groups", "description", "to", "level", "ids", "where", "k", "run", "examples", "near", "lock",
    "taxonomy", "by", "seed",
)  # fmt: skip


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection that is only copied."""
    shop = made(tmp_path_factory.mktemp("fresh") / "shop.sonde")
    shop.stored.close()
    return shop.path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shop = made(tmp_path_factory.mktemp("http") / "shop.sonde")
    shop.edit_taxonomy("describe", groups=[0], description="too late")
    shop.stored.close()
    return shop.path


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with client_of(folder, rate=1e6) as found:
        yield found


def problem_of(answer: Any) -> str:
    """Return the sentence of a problem document, after a check that it is one."""
    assert 400 <= answer.status_code < 500, answer.text[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    detail = answer.json()["detail"]
    assert detail and "\n" not in detail and len(detail) < 1_500 and "Traceback" not in answer.text
    return detail


def tried(client: TestClient, path: str, options: Any) -> Any:
    """Send a request; return the answer if it is a success, after a check that it is a problem otherwise."""
    answer = client.post(path, json={"options": options})
    if answer.status_code == 200:
        return answer
    problem_of(answer)
    return None


@pytest.mark.parametrize("value", WRONG, ids=[repr(value)[:20] for value in WRONG])
@pytest.mark.parametrize("method", READING)
def test_reading(client: TestClient, method: str, value: Any) -> None:
    for option in READING[method]:
        tried(client, f"/read/{method}", {option: value})


@pytest.mark.parametrize("value", thinned(SOME, 2), ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("method", WRITING)
def test_writing(fresh: Path, tmp_path: Path, method: str, value: Any) -> None:
    needed = {
        "make_taxonomy": {"source": "tree", "name": "new"},
        "import_taxonomy": {"text": "name\na\n", "form": "csv"},
    }
    shutil.copytree(fresh, tmp_path / "shop.sonde")
    with client_of(tmp_path / "shop.sonde", rate=1e6) as client:
        for option in WRITING[method]:
            tried(client, f"/write/{method}", {**needed.get(method, {}), option: value})


@pytest.mark.parametrize("value", thinned(SOME, 2), ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("operation", ["add", "rename", "merge", "move", "split", "rule", "lock", "remove", "accept"])
def test_editing(client: TestClient, folder: Path, operation: str, value: Any) -> None:
    for option in EDIT:
        before = rows_of(folder)
        given = {"operation": operation, "groups": [0], option: value}
        if tried(client, "/write/edit_taxonomy", given) is None:
            assert rows_of(folder) == before, option
        elif rows_of(folder) != before:
            assert client.post("/write/undo_taxonomy", json={"options": {}}).status_code == 200
            assert rows_of(folder) == before


SAID = {
    "unknown": ({"operation": "paint"}, "use add, rename"),
    "missing": ({}, "missing a required argument: 'operation'"),
    "no group": ({"operation": "rename", "name": "x"}, "rename needs groups or level"),
    "no target": ({"operation": "move", "groups": [0]}, "move needs to: a group, top or none"),
    "option": ({"operation": "rename", "groups": [0], "nme": "x"}, "did you mean 'name'?"),
    "long": ({"operation": "rename", "groups": [0], "name": LONG}, "has 50,000 characters; the maximum is 1,000"),
    "too many": ({"operation": "rename", "groups": [0, 1], "name": "x"}, "rename takes one group at a time"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_wrong_is_said(client: TestClient, folder: Path, case: str) -> None:
    before = rows_of(folder)
    options, said = SAID[case]
    assert said in problem_of(client.post("/write/edit_taxonomy", json={"options": options}))
    assert rows_of(folder) == before


@pytest.mark.parametrize("body", ["", "[]", "{", '{"options": 5}', '{"options": {"groups": [0}}', "null", '"x"'])
def test_bodies_that_are_no_request(client: TestClient, body: str) -> None:
    for path in ("/write/edit_taxonomy", "/write/import_taxonomy"):
        answer = client.post(path, content=body, headers={"content-type": "application/json"})
        problem_of(answer)

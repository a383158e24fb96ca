"""Documents that `put` and `PUT /documents` refuse, in one collection and in shards alike: nothing is written."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from http_service import ROWS, client_of, refused

from sonde import Document
from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, TooManyFieldsError, UsageError
from sonde.indexer.store import writing

HALF = "\ud800"
PAIR = r"half a surrogate pair \(U\+D800\) at character 1 of the "
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "half a pair in a value": (
        {"id": "z", "metadata": {"k": HALF}},
        f"document 'z' cannot be stored: {PAIR}column 'k'",
    ),
    "half a pair in a list": ({"id": "z", "metadata": {"k": ["a", HALF]}}, f"{PAIR}column 'k'"),
    "half a pair in a name": ({"id": "z", "metadata": {HALF: 1}}, f"{PAIR}name of a column"),
    "half a pair in an id": ({"id": HALF}, rf"document '\\ud800' cannot be stored: {PAIR}id"),
    "NUL in an id": ({"id": "a\0z"}, r"the id contains a NUL byte at character 2"),
    "NUL in a name": ({"id": "z", "metadata": {"a\0b": 1}}, r"the name of a column contains a NUL byte at character 2"),
    "NUL in a value": ({"id": "z", "metadata": {"k": "a\0b"}}, r"the column 'k' contains a NUL byte at character 2"),
    "a long name": (
        {"id": "z", "metadata": {"n" * 10_000: 1}},
        r"a column name has 10,000 characters, more than 1,000",
    ),
}


@pytest.fixture(params=[None, 2], ids=["single", "sharded"])
def collection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Collection]:
    """A collection of three reviews."""
    with index(ROWS, tmp_path / "r.sonde", id="id", shards=request.param, encoder=FakeEncoder()) as made:  # type: ignore[arg-type]
        yield made


def unchanged(collection: Collection) -> bool:
    return len(collection) == len(ROWS) and list(collection.fields()) == ["stars"] and collection.verify() == []


def test_what_cannot_be_stored_is_refused_and_nothing_changes(collection: Collection) -> None:
    for bad, message in BAD.values():
        with pytest.raises(UsageError, match=message):
            collection.put([{"id": "good", "text": "fine"}, bad | {"text": "zed"}])
        with pytest.raises(UsageError, match=message):
            collection.put([Document("zed", key=bad["id"], metadata=bad.get("metadata", {}))])
    with pytest.raises(UsageError, match=r"document 'z' cannot be stored: the metadata is \[1\], not a mapping"):
        collection.put([{"id": "z", "text": "zed", "metadata": [1]}])
    assert unchanged(collection)


def test_a_document_without_an_origin_is_refused_without_a_gap(collection: Collection) -> None:
    with pytest.raises(SondeError, match=r"no usable documents \(1 skipped; the first: \w"):
        collection.put([Document(" ", key="z")])
    assert unchanged(collection)


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("text", 5, "the text is 5, not a string"),
        ("text", None, "the text is None, not a string"),
        ("key", 5, "the id is 5, not a string"),
        ("key", b"q", "the id is b'q', not a string"),
        ("title", ["t"], r"the title is \['t'\], not a string"),
        ("language", 7, "the language is 7, not a string"),
        ("metadata", None, "the metadata is None, not a mapping"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(collection: Collection, field: str, value: Any, fault: str) -> None:
    bad = replace(Document("zed", key="z"), **{field: value})
    with pytest.raises(UsageError, match=rf"^the document .+ cannot be stored: {fault}$"):
        collection.put([Document("fine", key="good"), bad])
    if field != "key":
        with pytest.raises(UsageError, match=rf"^a document without an id cannot be stored: {fault}$"):
            collection.put([replace(bad, key=None)])
    with pytest.raises(SondeError, match=rf"1 of the first 1 rows cannot be read; the first is row 1: {fault}$"):
        index([bad], collection.path, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert unchanged(collection)


def test_a_name_that_is_no_string_becomes_text(collection: Collection) -> None:
    given = {"id": "z", "text": "zed", "metadata": {5: 1, None: 2}}
    assert collection.put([given]).added == 1
    assert collection.verify() == []
    assert collection.get("z").metadata == {"5": 1, "None": 2}
    assert collection.put([Document("zed", key="z", metadata=given["metadata"])]).unchanged == 1


def test_more_columns_than_a_table_holds(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_FIELDS", 3)
    monkeypatch.setattr("sonde.indexer.sharded.spool.MAX_FIELDS", 3)
    wide = {"id": "z", "text": "zed", "metadata": {f"c{number}": number for number in range(5)}}
    with pytest.raises(
        TooManyFieldsError, match=r"^more than 3 metadata columns \(the next is 'c2'\): leave some out$"
    ):
        collection.put([wide])
    assert unchanged(collection)
    with client_of(collection.path) as client:
        answer = client.put("/documents", json={"documents": [wide]})
        refused(answer, 422, "more than 3 metadata columns (the next is 'c2')", field="documents")
    assert unchanged(collection)


def test_the_service_answers_422(collection: Collection) -> None:
    with client_of(collection.path) as client:
        cases = [bad | {"text": "zed"} for bad, _ in BAD.values()]
        for bad in [*cases, {"id": "z", "text": HALF}, {"id": "z", "text": "zed", "title": HALF}]:
            sent = json.dumps({"documents": [bad]})
            answer = client.put("/documents", content=sent, headers={"content-type": "application/json"})
            refused(answer, 422)
    assert unchanged(collection)

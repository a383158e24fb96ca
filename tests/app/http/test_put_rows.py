"""What `put` takes, here and through a service: documents, mappings with fields of their own, and tables."""
# ruff: noqa: F811  (fixtures that are imported)

from collections.abc import Callable
from datetime import date
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from http_service import client, folder, local  # noqa: F401  (fixtures)

import sonde
from sonde.app.api import Collection
from sonde.app.http.client import RemoteCollection
from sonde.indexer.errors import UsageError

ROWS: list[dict[str, Any]] = [
    {"id": 8, "text": "The lens is dirty.", "title": "Camera", "stars": 2, "kinds": ["a", "b"]},
    {"id": 9, "text": "A sharp picture.", "title": None, "stars": 4, "kinds": ["b"]},
]
DAYS = [{"id": "9", "text": "New.", "day": date(2026, 11, 25)}]
FORMS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "mappings": lambda rows: rows,
    "metadata": lambda rows: [
        {name: row.pop(name) for name in ("id", "text", "title") if name in row} | {"metadata": row}
        for row in map(dict, rows)
    ],
    "a generator": iter,
    "pandas": pd.DataFrame,
    "arrow": pa.Table.from_pylist,
}


@pytest.fixture(params=["local", "remote"])
def either(request: pytest.FixtureRequest, client: TestClient, local: Collection) -> Collection:
    """The same collection: opened here, and behind a service."""
    return local if request.param == "local" else RemoteCollection(client)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
def test_put_takes_the_rows_that_index_takes(either: Collection, form: str) -> None:
    assert either.put(FORMS[form](ROWS)).added == 2
    first, second = either.get("8"), either.get("9")
    assert (first.text, first.title, second.title) == ("The lens is dirty.", "Camera", "")
    assert first.metadata == {"stars": 2, "kinds": ["a", "b"]}
    assert second.metadata == {"stars": 4, "kinds": ["b"]}
    assert either.put(FORMS[form](DAYS)).replaced == 1
    assert either.get("9").metadata["day"] == date(2026, 11, 25)


def test_a_value_that_is_missing_in_a_table_is_missing(either: Collection) -> None:
    frame = pd.DataFrame({"id": ["8", "9"], "text": ["Dirty.", "Sharp."], "title": ["Camera", float("nan")]})
    assert either.put(frame.assign(stars=[2, None])).added == 2
    assert (either.get("9").title, either.get("9").metadata.get("stars")) == ("", None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"id": ["8"], "review": ["Dirty."]}), r"^the document {'id': '8', 'review': 'Dirty.'} needs an"),
        (pd.DataFrame({"text": ["Dirty."]}), r"^the document {'text': 'Dirty.'} needs an id and a text$"),
        ([{"id": "8", "text": "a", "stars": 1, "metadata": {"stars": 2}}], r"^the document '8' has 'stars' twice: "),
        ([{"id": "8", "text": "a", "stars": "many"}], r"^stars of document '8' is 'many', and the collection's stars"),
        ([{"id": "8", "text": "a", "stars": 1, "metadata": [2]}], r"the metadata is \[2\], not a mapping$"),
        (8, r"^8 is not a list of documents: give \[{'id': …, 'text': …}, …\]$"),
        ({"id": "8", "text": "a"}, r"is not a list of documents: give \[{'id': …, 'text': …}, …\]$"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(either: Collection, given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        either.put(given)
    assert len(either) == 3


def test_fields_may_be_in_metadata_and_beside_it(either: Collection) -> None:
    document = {"id": "9", "text": "New.", "stars": 4, "metadata": {"kind": "screen"}}
    assert either.put([document, sonde.Document("Old.", key="8", metadata={"stars": 1})]).added == 2
    assert either.get("9").metadata == {"stars": 4, "kind": "screen"}


@pytest.mark.parametrize(("name", "meant"), [("titel", "title"), ("Title", "title"), ("metdata", "metadata")])
def test_a_mistyped_name_is_refused_and_a_field_of_this_name_is_not(either: Collection, name: str, meant: str) -> None:
    said = (
        f"^the document '8' has '{name}' and no '{meant}': did you mean '{meant}'. To store a field of this name, put"
    )
    given = {"id": "8", "text": "a", name: "b"}
    with pytest.raises(UsageError, match=said):
        either.put([{"id": "7", "text": "c"}, given])
    assert len(either) == 3, "nothing is written"
    assert either.put([given | {meant: "T" if meant == "title" else {"stars": 1}}]).added == 1
    assert either.get("8").metadata[name] == "b"
    assert either.put([{"id": "9", "text": "a", name: "b"}]).added == 1, "the collection has this field now"


def test_a_field_with_the_name_of_a_mistake_can_be_stored(either: Collection) -> None:
    assert either.put([{"id": "8", "text": "a", "metadata": {"tile": "blue"}}]).added == 1
    assert either.put(pd.DataFrame({"id": ["9"], "text": ["b"], "tilt": [3]})).added == 1
    assert (either.get("8").metadata["tile"], either.get("9").metadata["tilt"]) == ("blue", 3)


@pytest.mark.parametrize("given", [{"ID": "8", "text": "a"}, {"id": "8", "txt": "a"}])
def test_a_missing_id_or_text_says_which_name_was_meant(either: Collection, given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"needs an id and a text \(did you mean '(id|text)', not '(ID|txt)'\?\)$"):
        either.put([given])

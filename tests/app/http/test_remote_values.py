"""Tables of pandas, columns and filters as arguments: a collection here and one behind a service take the same."""
# ruff: noqa: F811  (fixtures that are imported)

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from http_service import client, folder, local  # noqa: F401  (fixtures)

from sonde.app.api import Collection
from sonde.app.http.client import RemoteCollection
from sonde.indexer.errors import UsageError


@pytest.fixture(params=["local", "remote"])
def either(request: pytest.FixtureRequest, client: TestClient, local: Collection) -> Collection:
    """The same collection: opened here, and behind a service."""
    return local if request.param == "local" else RemoteCollection(client)  # type: ignore[arg-type]


def test_labels_by_id_come_as_a_series_or_a_table(either: Collection) -> None:
    either.label(["phone", "tablet"], engine="similarity", name="kinds")
    series = pd.Series({"1": "tablet", "2": None})
    assert either.correct(series, run="kinds").to_dict() == {"run": "kinds", "documents": 1, "total": 1}
    table = pd.DataFrame({"id": [2, 1], "label": ["phone", "tablet"]})
    assert either.correct(table, run="kinds").documents == 2
    either.label(["phone", "tablet"], engine="similarity", name="fresh")
    for truth in (table, pd.Series({2: "phone", 1: "tablet"})):
        assert either.evaluate_labels("fresh", truth).documents == 2
    with pytest.raises(UsageError, match=r"^truth must have the columns id and label, not id, kind$"):
        either.evaluate_labels("fresh", pd.DataFrame({"id": ["1"], "kind": ["phone"]}))


def test_rows_and_columns_of_documents_are_chosen(either: Collection) -> None:
    assert [row["id"] for row in either.rows(where="stars < 3")] == ["1", "a/b"]
    assert [row["id"] for row in either.rows(where="stars < 3", start=1, count=1)] == ["a/b"]
    frame = either.to_pandas(where="stars < 3", columns=["stars", "id"])
    assert frame.to_dict("list") == {"stars": [1, 2], "id": ["1", "a/b"]}
    assert list(either.to_pandas(where="stars > 9", columns=["stars"]).columns) == ["stars"]
    with pytest.raises(UsageError, match=r"^columns is 'star' \(did you mean 'stars'\?\): use id, title, text, stars$"):
        either.to_pandas(columns=["star"])
    with pytest.raises(UsageError, match="star"):
        either.to_pandas(where="star = 1")


def test_ids_are_looked_up_like_keys(either: Collection) -> None:
    assert [id in either for id in ("1", 1, np.int64(1), "a/b", "9", None, 1.5)] == [True] * 4 + [False] * 3


def test_an_empty_selection_changes_nothing(either: Collection) -> None:
    for empty in ([], (), pd.Series([], dtype=str), pd.DataFrame({"id": ["1"]}).query("id == '2'")["id"]):
        assert either.delete(empty) == 0
    assert len(either) == 3
    either.tag("odd", ids=["1"])
    assert [either.tag("odd", ids=[], change=change).changed for change in ("add", "remove")] == [0, 0]
    with pytest.raises(UsageError, match="nothing is left for the tag 'new': no document was given"):
        either.tag("new", ids=[])
    for call in (either.delete, lambda: either.tag("odd")):
        with pytest.raises(UsageError, match="say which documents"):
            call()


def test_dates_and_booleans_are_what_python_has(either: Collection) -> None:
    days = [date(2024, 3, day) for day in range(1, 21)]
    either.put(
        [{"id": f"d{day.day}", "text": f"Parcel {day.day} is late.", "day": day, "open": day.day < 3} for day in days]
    )
    for low, high in [
        (date(2024, 3, 1), date(2024, 3, 2)),
        ("2024-03-01", "2024-03-02"),
        (pd.Timestamp("2024-03-01"), pd.Timestamp("2024-03-02T12:00")),
        (19783, 19784),
    ]:
        found = either.select({"parts": [{"kind": "range", "column": "day", "low": low, "high": high}]})
        assert [document.id for document in either.numbered(found.tolist())] == ["d1", "d2"]
    found = either.select({"parts": [{"kind": "values", "column": "open", "values": [True]}]})
    assert [document.id for document in either.numbered(found.tolist())] == ["d1", "d2"]
    moment: Any = pd.Timestamp("2024-03-11")
    for since in ("2024-03-11", date(2024, 3, 11), moment):
        assert either.watch(since, replace=True).new == 10


def test_counts_and_groups_by_filter(client: TestClient, local: Collection) -> None:
    local.cluster("two", k=2, seed=3)
    local.tag("low", where="stars <= 2")
    both: Any = local, RemoteCollection(client)  # type: ignore[arg-type]
    here, there = both
    assert there.cross_by("stars", "tag:low", mean_of="stars") == here.cross_by("stars", "tag:low", mean_of="stars")
    given: dict[str, Any] = {"mean_of": "stars", "k": 1, "offset": 1}
    assert there.count_by("stars", **given) == here.count_by("stars", **given)
    found = [each.members("two", 0, where="stars > 1") for each in both]
    assert found[0] == found[1] and len(found[0]) <= len(here.members("two", 0))
    sizes = [each.item_sizes(each.newest_run("cluster").run, "stars > 1") for each in both]
    assert sizes[0] == sizes[1] and sum(sizes[0].values()) == here.matching("stars > 1", k=0)[0]


def test_more_queries_than_a_request_may_have(client: TestClient, local: Collection) -> None:
    """The service takes 1,000 texts in a request, and the client sent all in one."""
    queries, remote = [f"battery of phone {number}" for number in range(1_100)], RemoteCollection(client)  # type: ignore[arg-type]
    there = [found.hits for found in remote.search_many(queries, 1, mode="lexical")]
    assert there == [found.hits for found in local.search_many(queries, 1, mode="lexical")]
    assert list(remote.search_many([])) == list(local.search_many([])) == []

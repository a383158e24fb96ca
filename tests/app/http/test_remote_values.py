"""Values of pandas as arguments: a collection here and one behind a service take the same."""
# ruff: noqa: F811  (fixtures that are imported)

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

"""Many documents over HTTP: requests that a service reads, and what is stored if one of them is refused."""

import pytest
from fastapi.testclient import TestClient
from http_service import client, folder  # noqa: F401  (fixtures)

from sonde.app.http.client import RemoteCollection
from sonde.app.http.wire import parts_of
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.readers.given import given_documents


def test_documents_are_sent_in_requests_that_a_service_reads(
    client: TestClient,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """600 documents of 8,500 characters were refused: their first 500 were too long for one request."""
    there = RemoteCollection(client)  # type: ignore[arg-type]
    given = [{"id": f"n{number}", "text": "long " * 300} for number in range(7)]
    monkeypatch.setattr("sonde.app.http.wire.MOST_BYTES", 4_000)
    assert there.put(given).added == 7
    sizes = [len(part) for part in parts_of(given_documents(given, set))]
    assert sizes == [2, 2, 2, 1]
    monkeypatch.setattr("sonde.app.http.wire.AT_ONCE", 1)
    with pytest.raises(SondeError) as raised:
        there.put([{"id": "a", "text": "A text."}, {"id": "b", "text": "x", "metadata": {"stars": "many"}}])
    assert raised.value.__notes__ == ["stored before that: 1 document"]
    with pytest.raises(UsageError, match="needs an id and a text"):
        there.put([{"id": "", "text": "A text."}])

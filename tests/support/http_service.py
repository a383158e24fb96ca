"""A service over three reviews, without weights and without a port, and what a refusal looks like."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from fastapi.testclient import TestClient

from sonde.app.api import Collection, index
from sonde.app.http.hosted import Hosts
from sonde.app.http.service import create_app
from sonde.app.http.settings import ServeSettings

ROWS = [
    {"id": "1", "text": "The battery died after a week.", "title": "Phone", "stars": 1},
    {"id": "2", "text": "Great phone, lasts for days.", "title": "Phone", "stars": 5},
    {"id": "a/b", "text": "The screen broke on the first day.", "title": "Tablet", "stars": 2},
]


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a collection that is indexed once."""
    made = tmp_path_factory.getbasetemp() / "served.sonde"
    if not made.exists():
        index(ROWS, made, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    return copytree(made, tmp_path / "reviews.sonde")


def client_of(*folders: Path, **settings: Any) -> TestClient:
    given = ServeSettings(**settings)
    hosts = Hosts.open(folders, given, encoder=FakeEncoder())  # type: ignore[arg-type]
    return TestClient(create_app(hosts, given), "http://127.0.0.1:8080", raise_server_exceptions=False)


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with client_of(folder) as client:
        yield client


@pytest.fixture
def local(folder: Path) -> Collection:
    return Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]


def refused(answer: Any, status: int, *words: str, field: str | None = None) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert [word for word in words if word not in body["detail"]] == [], body
    assert "Traceback" not in answer.text
    if field:
        assert body["errors"][0]["field"] == field

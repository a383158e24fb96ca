"""The warm-up of the web UI: after it, a search loads nothing; what cannot be loaded is left to the page."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index
from sonde.app.ui import workspace
from sonde.app.ui.launch import UiSettings
from sonde.app.ui.workspace import Workspace


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    encoder: Any = FakeEncoder()
    monkeypatch.setattr(workspace, "load_encoder_for", lambda spec, device: encoder)
    monkeypatch.setattr("sonde.indexer.store.collection.is_local", lambda name, revision: True)
    index([{"id": "1", "text": "The battery died."}], tmp_path / "shop.sonde", id="id", encoder=encoder)
    index([{"id": "1", "text": "The screen broke."}], tmp_path / "zoo.sonde", id="id", encoder=encoder)
    return Workspace(UiSettings(shelf=str(tmp_path)))


def test_the_first_collection_is_loaded_and_no_other(shelf: Workspace) -> None:
    workspace.warm_up(shelf.settings).join(60)
    assert shelf.open("shop").stored.load() == 0.0
    assert shelf.open("zoo").stored.load() > 0.0


def test_the_named_collection_is_loaded(shelf: Workspace) -> None:
    settings = UiSettings(shelf=shelf.settings.shelf, collection="zoo")
    workspace.warm_up(settings).join(60)
    assert shelf.open("zoo").stored.load() == 0.0


def test_what_cannot_be_loaded_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "bad.sonde").mkdir()
    (tmp_path / "bad.sonde" / "catalog.db").write_bytes(b"nonsense" * 100)
    with caplog.at_level("INFO", "sonde.ui"):
        workspace.warm_up(UiSettings(shelf=str(tmp_path))).join(60)
        workspace.warm_up(UiSettings(shelf=str(tmp_path / "nowhere"))).join(60)
    assert [record.levelname for record in caplog.records if record.name == "sonde.ui"] == ["INFO"]
    assert "preloading failed" in caplog.text


def test_a_collection_is_loaded_once(shelf: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(workspace, "_started", started.append)
    collection = shelf.open("shop")
    workspace.warm(collection)
    workspace.warm(collection)
    assert len(started) == 1


def test_a_collection_in_the_place_of_one_that_was_closed_is_loaded(
    shelf: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server keeps few collections open, and Python gives the identity of a lost object to another one."""
    started: list[object] = []
    monkeypatch.setattr(workspace, "_started", started.append)
    monkeypatch.setattr(workspace, "id", lambda _: 7, raising=False)
    workspace.warm(shelf.open("shop"))
    workspace.warm(shelf.open("zoo"))
    assert len(started) == 2

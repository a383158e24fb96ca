"""What a key that may only read sees on the pages with runs, and that nothing it presses changes a collection."""
# ruff: noqa: F811  (fixtures that are imported)

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from ui_overview import Started, box, mapped, shop, started, topics  # noqa: F401  (fixture)
from ui_pages import Pages, pages  # noqa: F401  (fixture)

from sonde.app.api import Collection
from sonde.app.http.guard import add_key
from sonde.app.ui.launch import VARIABLE


@pytest.fixture
def made(pages: Pages) -> Collection:
    made = shop(pages)
    made.cluster("k", k=4, refits=0)
    made.label(["parcel", "battery", "screen", "refund"])
    topics(made)
    mapped(made)
    return made


class Door:
    """A server that asks for a key, and how one comes in."""

    def __init__(self, pages: Pages, keys: dict[str, str]) -> None:
        self.pages, self.keys = pages, keys

    def enter(self, rights: str, page: str, **address: str) -> AppTest:
        """Open a page of the collection "shop" and give the key."""
        found = self.pages.open(page, collection="shop", **address)
        found.text_input[0].set_value(self.keys[rights])
        found.button[0].click().run()
        assert not found.exception, found.exception
        return found


@pytest.fixture
def door(pages: Pages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Door:
    keys = tmp_path / "keys.json"
    made = {"read": add_key(keys, "reader", "read"), "write": add_key(keys, "writer", "write")}
    settings = {"shelf": str(pages.shelf), "keys": str(keys), "device": "cpu", "local": False}
    monkeypatch.setenv(VARIABLE, json.dumps(settings))
    return Door(pages, made)


def content(collection: Collection) -> list[str]:
    """Everything that the catalog holds."""
    with closing(sqlite3.connect(collection.path / "catalog.db")) as connection:
        return list(connection.iterdump())


def buttons(page: AppTest) -> dict[str, str]:
    """The buttons that can be pressed: for each kind, which is what their keys begin with, one."""
    kept = [str(button.key) for button in page.button if not button.proto.disabled]
    return {key.split(":")[0]: key for key in reversed(kept)}


CHANGES = {"new_start", "rename_do", "delete_run", "make_taxonomy"}


@pytest.mark.parametrize(
    ("name", "address", "shown_to_all", "shown_to_writers"),
    [
        ("clusters", {"run": "cluster:k"}, set(), CHANGES),
        ("clusters", {"run": "topic:topics"}, set(), CHANGES),
        ("labels", {"run": "labels"}, {"open"}, {"label_delete", "label_rename_do"}),
        ("map", {"area": box(-1, -1, 9, 9), "do": "cluster"}, set(), {"part_start"}),
        ("search", {"q": "battery"}, {"like", "facet", "open"}, {"good", "bad"}),
        ("explain", {}, {"example0", "example1", "example2"}, set()),
        ("evaluate", {}, set(), set()),
    ],
)
def test_nothing_that_a_reader_presses_writes(
    door: Door, made: Collection, started: Started, name: str, address: dict[str, str], shown_to_all: set[str],
    shown_to_writers: set[str],
) -> None:  # fmt: skip
    before = content(made)
    seen = buttons(door.enter("read", name, **address))
    assert set(seen) == shown_to_all
    for key in seen.values():
        page = door.enter("read", name, **address)
        page.button(key=key).click().run()
        assert not page.exception, page.exception
    assert started.commands == []
    assert content(made) == before
    assert set(buttons(door.enter("write", name, **address))) == shown_to_all | shown_to_writers

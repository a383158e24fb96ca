"""Taxonomies over HTTP, by an assistant and in the web UI: the same edits, with who made them in the log."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from edited import made
from fastapi.testclient import TestClient
from http_service import client_of, refused
from mcp import Client
from mcp_client import call

from sonde.app.api import Collection
from sonde.app.http.client import RemoteCollection
from sonde.app.mcp import server_of
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.lock import writer_lock


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return made(tmp_path / "shop.sonde")


@pytest.fixture
def client(shop: Collection) -> Iterator[TestClient]:
    with client_of(shop.path) as found:
        yield found


def test_a_remote_taxonomy_is_edited_as_a_local_one(shop: Collection, client: TestClient) -> None:
    remote: Any = RemoteCollection(client)  # type: ignore[arg-type]
    assert remote.taxonomy() == shop.taxonomy()
    entry = remote.edit_taxonomy("merge", groups=[0, "lost"])
    assert (entry.said, entry.by) == ("merged 1 'lost' into 0 'late'", "HTTP")
    assert remote.edit_taxonomy("rename", groups=[0], name="parcels", by="Ann").by == "Ann"
    assert remote.taxonomy_log() == shop.taxonomy_log()
    assert [one.number for one in remote.undo_taxonomy(2)] == [3, 2]
    assert remote.update_taxonomy().added == 0 and remote.refit_taxonomy().kept == (4, 4)
    text = remote.export_taxonomy("json")
    assert text == shop.export_taxonomy("json")
    assert remote.import_taxonomy(text, "json", "again") == shop.taxonomy("again")
    named = remote.import_taxonomy("Titel;locked\na;WAHR\n", "csv", "german", columns={"name": "Titel"})
    assert [(one.name, one.locked) for one in named.groups] == [("a", True)]
    assert [one.number for one in remote.make_taxonomy("again", "more").groups] == [0, 1, 2, 3]
    for collection in (shop, remote):
        with pytest.raises(UsageError, match="merging needs at least two groups"):
            collection.edit_taxonomy("merge", groups=[0])
        with pytest.raises(SondeError, match="the taxonomy 'more' has no group 9"):
            collection.edit_taxonomy("remove", groups=[9])


def test_over_plain_http(shop: Collection, client: TestClient) -> None:
    options = {"operation": "move", "ids": ["d0"], "to": 3}
    answer = client.post("/write/edit_taxonomy", json={"options": options})
    assert answer.status_code == 200 and answer.json()["result"]["said"] == "moved 1 document to 3 'weak'"
    assert shop.taxonomy().locked == 1
    refused(client.post("/write/edit_taxonomy", json={"options": {"operation": "paint"}}), 422, "use add, rename")
    refused(client.post("/read/edit_taxonomy", json={"options": options}), 404, "there is no method 'edit_taxonomy'")


def test_an_assistant_reads_and_edits_only_on_request(shop: Collection) -> None:
    reading, editing = server_of(shop), server_of(shop, edit=True)
    assert [group["name"] for group in call(reading, "list_taxonomy")["groups"]] == ["late", "lost", "dead", "weak"]
    whole, top = (call(reading, "list_taxonomy", **given)["groups"] for given in ({}, {"depth": 1}))
    assert set(whole[0]) == {"number", "name", "level", "documents", "total"}, "the rest is that of one group"
    assert call(reading, "list_taxonomy", number=0)["group"]["path"] == "late"
    shop.edit_taxonomy("move", groups=[1], to=0)
    inside = call(reading, "list_taxonomy", number=0)["group"]["inside"]
    assert [(one["number"], one["name"], one["parent"]) for one in inside] == [(1, "lost", 0)]
    shop.undo_taxonomy()
    second = call(reading, "list_taxonomy", k=1, offset=1)
    assert second["groups"] == whole[1:2] and (second["listed_of"], second["next_offset"]) == (4, 2)
    assert call(reading, "list_taxonomy", offset=9)["notes"] == ["offset is 9, but there are only 4 groups"]
    assert call(reading, "list_taxonomy", number=9).startswith("there is no group 9: `list_taxonomy` without")
    assert top == [group for group in whole if group["level"] == 0]
    assert "there is no tool 'edit_taxonomy'" in call(reading, "edit_taxonomy", operation="remove", groups=[0])
    found = call(editing, "edit_taxonomy", operation="rename", groups=["late"], name="too late")["edit"]
    assert (found["said"], found["by"]) == ("renamed 0 'late' to 'too late'", "assistant")
    assert [one["undone"] for one in call(editing, "undo_taxonomy")["undone"]] == [True]
    assert call(editing, "edit_taxonomy", operation="merge", groups=[0]) == "merging needs at least two groups"
    assert shop.taxonomy()[0].name == "late"

    async def listed() -> Any:
        async with Client(editing) as client:
            return await client.list_tools()

    tools = {tool.name: tool.annotations for tool in anyio.run(listed).tools}
    assert {name for name, each in tools.items() if not each.read_only_hint} == {"edit_taxonomy", "undo_taxonomy"}
    assert tools["edit_taxonomy"].destructive_hint, "a client then asks its user"


def test_an_assistants_edit_waits_for_another_writer(shop: Collection) -> None:
    editing, held = server_of(shop, edit=True), threading.Event()

    def write() -> None:
        with writer_lock(shop.path):
            held.set()
            time.sleep(1.0)

    writer = threading.Thread(target=write)
    writer.start()
    assert held.wait(10)
    found = call(editing, "edit_taxonomy", operation="rename", groups=["late"], name="too late")
    writer.join()
    assert found["edit"]["said"] == "renamed 0 'late' to 'too late'"

"""An MCP server over collections of which one is damaged: the others work, and the assistant learns what is wrong."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from mcp_client import call

from sonde.app.api import index
from sonde.app.api.served import Opening
from sonde.app.mcp import server_of
from sonde.indexer.errors import SondeError


def made(folder: Path, name: str) -> Path:
    """Return the folder of a collection with one document."""
    path = folder / f"{name}.sonde"
    index([{"id": name, "text": f"the {name} text"}], path, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    return path


def opening(path: Path) -> Opening:
    """Return a collection that is opened by the server."""
    return Opening.at(path, encoder=FakeEncoder())  # type: ignore[arg-type]


def unopenable(bad: Path) -> str:
    (bad / "catalog.db").write_bytes(b"x" * 5_000)
    return "bad.sonde is not a Sonde collection: its catalog.db is damaged (file is not a database)"


def unreadable(bad: Path) -> str:
    shutil.rmtree(bad / "vectors")
    return "bad.sonde/vectors/000001.npy is missing: run `sonde repair bad.sonde`"


@pytest.mark.parametrize("damage", [unopenable, unreadable])
def test_the_others_work_and_the_damaged_one_is_named_with_its_reason(
    tmp_path: Path, damage: Callable[[Path], str]
) -> None:
    bad, good = made(tmp_path, "bad"), made(tmp_path, "good")
    kept = shutil.copytree(bad, tmp_path / "kept")
    said = damage(bad)
    server = server_of(opening(bad), opening(good))
    assert f"bad: it cannot be used now: {said}. good: 1 document; " in (server.instructions or "")
    broken, sound = call(server, "collections")["collections"]
    assert broken == {"name": "bad", "error": said}
    assert (sound["name"], sound["documents"]) == ("good", 1)
    assert [hit["id"] for hit in call(server, "search", query="text", collection="good")["hits"]] == ["good"]
    for tool in ("search", "count", "get_document", "list_topics"):
        given = {"search": {"query": "text"}, "get_document": {"id": "bad"}}.get(tool, {})
        assert call(server, tool, collection="bad", **given).replace(f"{tmp_path}/", "") == said
    shutil.rmtree(bad)
    kept.rename(bad)
    assert call(server, "count", collection="bad") == {"documents": 1}, "it was restored"


def test_a_server_of_damaged_collections_alone_or_of_none_does_not_start(tmp_path: Path) -> None:
    bad, good = made(tmp_path, "bad"), made(tmp_path, "good")
    said = unopenable(bad)
    with pytest.raises(SondeError, match=r"its catalog\.db is damaged") as raised:
        server_of(opening(bad))
    assert str(raised.value).endswith(said)
    with pytest.raises(SondeError, match=r"there is no collection at .*none\.sonde"):
        server_of(opening(good), opening(tmp_path / "none.sonde"))

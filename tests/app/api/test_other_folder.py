"""A program or a notebook changes its working directory while a collection is open."""

import shutil
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError

PARTS = pytest.mark.parametrize("shards", [None, 2])


def made(texts: list[str], shards: int | None) -> Collection:
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    return index(rows, "docs.sonde", id="id", encoder=FakeEncoder(), shards=shards)  # type: ignore[arg-type]


@PARTS
def test_an_open_collection_stays_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int | None) -> None:
    """With a relative path, deletions reached a collection of the same name in the new folder."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    made(["a secret", "a plan"], shards)
    first = Collection.open("docs.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path / "two")
    assert first.path == tmp_path / "one" / "docs.sonde"
    second = made(["a letter", "a card", "a stamp"], shards)
    assert (first.get("0").text, len(first), len(second)) == ("a secret", 2, 3)
    assert first.delete("0") == 1
    assert (len(first), len(second), second.get("0").text) == (1, 3, "a letter")
    shutil.rmtree(tmp_path / "two" / "docs.sonde")
    assert first.put([{"id": "9", "text": "a new plan"}]).added == 1
    assert len(first.search("plan", mode="lexical")) == 2


def test_messages_name_it_as_the_caller_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SondeError, match=r"no document with the id '7' in docs\.sonde$"):
        made(["a secret"], None).similar("7")

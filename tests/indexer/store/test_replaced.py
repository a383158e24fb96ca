"""A collection whose folder is replaced while it is open: the new one is read and written, never a mixture."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError

OLD = [{"id": f"old-{number}", "text": f"letter stone {number}"} for number in range(5)]
NEW = [{"id": f"new-{number}", "text": f"winter cloud {number}"} for number in range(7)]


@pytest.fixture(params=[None, 2], ids=["one", "sharded"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two collections, `c.sonde` with old documents and `n.sonde` with new ones."""
    encoder: Any = FakeEncoder()
    for name, rows in (("c", OLD), ("n", NEW)):
        index(rows, tmp_path / f"{name}.sonde", encoder=encoder, shards=request.param).close()
    return tmp_path


def opened(folder: Path) -> Collection:
    return Collection.open(folder / "c.sonde", loader=lambda *_, **__: FakeEncoder())  # type: ignore[arg-type]


def moved(folder: Path) -> None:
    (folder / "c.sonde").rename(folder / "o.sonde")
    (folder / "n.sonde").rename(folder / "c.sonde")


def copied(folder: Path) -> None:
    shutil.rmtree(folder / "c.sonde")
    shutil.copytree(folder / "n.sonde", folder / "c.sonde")


def test_a_folder_that_was_away_for_a_moment_is_read_again(pair: Path) -> None:
    """What was asked in between left a closed connection behind: every later search failed until a restart."""
    collection = opened(pair)
    before = [hit.id for hit in collection.search("letter", k=9)]
    for _ in range(2):
        (pair / "c.sonde").rename(pair / "away.sonde")
        for ask in (lambda: collection.search("letter"), lambda: len(collection), collection.info):
            with pytest.raises(SondeError, match=r"c\.sonde"):
                ask()
        (pair / "away.sonde").rename(pair / "c.sonde")
        assert [hit.id for hit in collection.search("letter", k=9)] == before
    (pair / "c.sonde").rename(pair / "away.sonde")
    with pytest.raises(SondeError, match=r"c\.sonde"):
        len(collection)
    (pair / "n.sonde").rename(pair / "c.sonde")
    assert {hit.id for hit in collection.search("winter", k=9)} == {row["id"] for row in NEW}


@pytest.mark.parametrize("replace", [moved, copied])
def test_the_new_collection_is_read_and_written(pair: Path, replace: Any) -> None:
    """The old documents were found for ever, and clusters of the old embeddings were stored with the new documents."""
    collection = opened(pair)
    assert {hit.id for hit in collection.search("letter", k=9)} <= {row["id"] for row in OLD}
    replace(pair)
    assert len(collection) == 7
    assert {hit.id for hit in collection.search("winter", k=9)} == {row["id"] for row in NEW}
    collection.put([{"id": "more", "text": "winter garden"}])
    assert collection.get("more").text == "winter garden"
    collection.cluster("groups", k=2)
    assert {row["id"] for row in collection.rows() if row["cluster:groups"] is not None} == {
        *(row["id"] for row in NEW),
        "more",
    }
    assert collection.verify() == []
    if replace is moved:
        old = Collection.open(pair / "o.sonde", loader=lambda *_, **__: FakeEncoder())  # type: ignore[arg-type]
        assert (len(old), old.verify(), old.runs()) == (5, [], [])


def test_what_was_made_of_the_old_one_is_not_stored_in_the_new_one(pair: Path) -> None:
    collection = opened(pair)
    with collection.stored.view():
        moved(pair)
    said = r"c.sonde was replaced by another collection: run the same command again"
    with pytest.raises(SondeError, match=said), collection.stored.writing():
        pass
    assert collection.verify() == [] and len(collection) == 7

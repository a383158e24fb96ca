"""Compacting what is kept of other models: no text of a deleted document stays, and `--undo` still works."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from model_change import corpus, few_queries, hits  # noqa: F401  (fixture)
from other_encoder import OtherEncoder, loaded

from sonde.app.api import index
from sonde.app.api.collection import Collection
from sonde.indexer.sharded.generations import generation_number
from sonde.indexer.upkeep.delete import compact
from sonde.indexer.upkeep.model import changing

SECRET = b"xylophone"


def rows(**changed: str) -> list[dict[str, str]]:
    """Return documents; those named `dN` in `changed` have that text."""
    texts = {each.key: each.text for each in corpus(60)}
    return [{"id": f"d{key}", "text": changed.get(f"d{key}", text)} for key, text in texts.items()]


def made(folder: Path, source: list[dict[str, str]], encoder: Any, shards: int | None) -> Collection:
    index(source, folder, encoder=encoder, shards=shards)
    return Collection.open(folder, loader=loaded)  # type: ignore[arg-type]


def holders(folder: Path) -> list[str]:
    """Return the files that hold the secret word."""
    return [str(path) for path in sorted(folder.rglob("*")) if path.is_file() and SECRET in path.read_bytes().lower()]


@pytest.fixture(params=[None, 3])
def shards(request: pytest.FixtureRequest) -> int | None:
    return request.param


@pytest.fixture
def switched(tmp_path: Path, shards: int | None) -> Collection:
    """Return a collection that keeps the embeddings of its first model."""
    secret = {"d7": "A xylophone and an apple. ", "d8": "Another xylophone and a river. "}
    collection = made(tmp_path / "c.sonde", rows(**secret), FakeEncoder(), shards)
    collection.change_model(encoder=OtherEncoder(), anyway=True)  # type: ignore[arg-type]
    return collection


def test_no_text_of_a_deleted_or_changed_document_stays(switched: Collection, tmp_path: Path, shards: int | None):
    assert len(holders(switched.path / "models")) >= 1
    switched.delete("d7")
    switched.put([{"id": "d8", "text": "Only a river now."}])
    told: list[str] = []
    switched.compact(progress=lambda event: told.append(str(event)))
    assert holders(switched.path) == []
    assert switched.verify() == []
    assert not [line for line in told if "still hold" in line]
    [other] = switched.info().other_models
    assert other["documents"] == 58
    switched.undo_model()
    expected = [each for each in rows(d8="Only a river now.") if each["id"] != "d7"]
    fresh = made(tmp_path / "fresh.sonde", expected, FakeEncoder(), shards)
    assert hits(switched) == hits(fresh)
    assert switched.verify() == []


def test_while_the_model_is_being_changed_compact_says_what_it_leaves(switched: Collection):
    switched.delete("d7")
    told: list[str] = []
    with changing(switched.path):
        switched.compact(progress=lambda event: told.append(str(event)))
    [line] = [line for line in told if "other models" in line]
    assert line.startswith("the embeddings of other models still hold deleted texts: the model of ")
    assert line.endswith("; then compact again")
    switched.compact()
    switched.delete("d8")
    switched.compact()
    assert holders(switched.path) == []


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("shards", [3], indirect=True)
def test_a_compact_that_was_killed_between_two_files_of_a_shard(
    switched: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
):
    gone = ["d7", "d8", "d9", "d10", "d21"]
    switched.delete(gone)

    def killed(place: Path) -> None:
        if committed:
            compact(place)
        raise KeyboardInterrupt("killed here")

    with monkeypatch.context() as patched:
        patched.setattr("sonde.indexer.sharded.beside.compact", killed)
        with pytest.raises(KeyboardInterrupt, match="killed here"):
            switched.compact()
    assert switched.verify() == []
    shutil.copytree(switched.path, tmp_path / "again.sonde")
    switched.undo_model()
    fresh = made(tmp_path / "fresh.sonde", [each for each in rows() if each["id"] not in gone], FakeEncoder(), 3)
    assert (hits(switched), switched.verify()) == (hits(fresh), [])
    again = Collection.open(tmp_path / "again.sonde", loader=loaded)  # type: ignore[arg-type]
    again.compact()
    assert (holders(again.path), again.verify(), list(again.path.rglob("order-*"))) == ([], [], [])
    again.undo_model()
    assert hits(again) == hits(fresh)


def test_a_change_of_model_that_was_killed_before_it_wrote_anything_does_not_disturb_compact(
    switched: Collection, shards: int | None
):
    place = switched.path / "models" / ("e" * 16)
    place = place / "shards/01/000001-beside" if shards else place
    place.mkdir(parents=True)
    (place / "catalog.db").touch()
    switched.delete("d7")
    told: list[str] = []
    switched.compact(progress=lambda event: told.append(str(event)))
    assert not [line for line in told if "still hold" in line]


@pytest.mark.parametrize("shards", [3], indirect=True)
def test_compact_rewrites_the_catalog_of_runs_of_shards(switched: Collection):
    for number in range(6):
        switched.tag(f"tag {number}", ids=[f"d{each}" for each in range(60)])
    for number in range(5):
        switched.delete_run(f"tag {number}", kind="tag")
    before = sum(path.stat().st_size for path in switched.path.glob("runs/*/catalog.db"))
    switched.compact()
    [path] = switched.path.glob("runs/*/catalog.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert path.stat().st_size < before
    [left] = switched.uncounted_runs("tag")
    assert switched.counted_run(left).run.documents == 60
    assert switched.verify() == []
    generation = generation_number(switched.path)
    switched.compact()
    assert generation_number(switched.path) == generation, "nothing is left to compact"

"""What deleted documents took goes back to the disk, no text of them stays, and reported sizes are those of files."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from model_change import corpus, few_queries, hits  # noqa: F401  (fixture)
from other_encoder import OtherEncoder, loaded

from sonde.app.api import Collection, index
from sonde.indexer.sharded.generations import generation_number
from sonde.indexer.sharded.info import quick_look
from sonde.indexer.store.catalog import Catalog
from sonde.indexer.upkeep.delete import compact
from sonde.indexer.upkeep.model import changing

COUNT, LEFT = 600, 30
WORDS = [f"word{number}" for number in range(300)]


def rows() -> list[dict[str, str]]:
    chance = random.Random(1)
    return [{"id": str(number), "text": " ".join(chance.choices(WORDS, k=60))} for number in range(COUNT)]


def opened(folder: Path) -> Collection:
    return Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]


def problems(folder: Path) -> list[str]:
    with closing(opened(folder)) as collection:
        return [f"{found.part}: {found.problem}" for found in collection.verify()]


def ids(collection: Collection) -> list[str]:
    return [hit.id for hit in collection.search("word1 word2", k=LEFT)]


def made(folder: Path, shards: int | None) -> Path:
    encoder: Any = FakeEncoder()
    index(rows(), folder, shards=shards, encoder=encoder)
    return folder


@pytest.fixture(scope="module")
def thinned(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int | None], Path]:
    """Collections of which 95 % of the documents were deleted, in random order."""
    place, done = tmp_path_factory.mktemp("thinned"), dict[int | None, Path]()

    def of(shards: int | None) -> Path:
        if shards not in done:
            folder = done[shards] = made(place / f"{shards}.sonde", shards)
            gone = random.Random(2).sample([str(number) for number in range(COUNT)], COUNT - LEFT)
            with closing(opened(folder)) as collection:
                assert collection.delete(gone) == COUNT - LEFT
        return done[shards]

    return of


@pytest.fixture(params=[None, 2], ids=["one", "shards"])
def either(request: pytest.FixtureRequest, thinned: Callable[[int | None], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(thinned(request.param), tmp_path / "c.sonde"))


def on_disk(folder: Path) -> int:
    """The bytes of all files; one with two names counts once."""
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum({status.st_ino: status.st_size for status in found}.values())


def catalogs(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("catalog.db*") if path.name != "catalog.db-shm")


def test_one_compact_gives_the_space_back(either: Path) -> None:
    with closing(opened(either)) as collection:
        kept, before = ids(collection), on_disk(either)
        report = collection.compact()
        assert (report.disk_before, report.disk) == (before, on_disk(either))
        assert ids(collection) == kept
    assert catalogs(either) < 300_000 and report.disk < before / 3
    assert [path.stat().st_size for path in either.rglob("catalog.db-wal")] in ([], [0], [0, 0])
    assert problems(either) == []
    left = opened(either).info()
    assert opened(either).compact().removed == 0
    assert opened(either).info().generation == left.generation


def test_a_catalog_of_free_pages_shrinks_although_nothing_was_deleted_since(
    either: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older Sonde compacted it."""
    with monkeypatch.context() as patched:
        patched.setattr("sonde.indexer.upkeep.delete._shrink", lambda *_: None)
        opened(either).compact()
    assert catalogs(either) > 300_000
    report = opened(either).compact()
    assert report.removed == 0 and catalogs(either) < 300_000
    assert problems(either) == []


def test_readers_keep_what_they_see(
    thinned: Callable[[int | None], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.indexer.upkeep.delete.BRIEFLY", 0.01)
    folder = Path(shutil.copytree(thinned(None), tmp_path / "c.sonde"))
    with closing(Catalog.open(folder / "catalog.db")) as catalog, catalog.transaction():
        before = catalog.counts()
        assert compact(folder).removed == before[2] > 0
        assert catalog.counts() == before
        assert opened(folder).info().tombstones == 0
    assert catalogs(folder) > 300_000
    opened(folder).compact()
    assert catalogs(folder) < 300_000 and problems(folder) == []


class FullDisk(Catalog):
    """A catalog on a disk that has no space for another copy."""

    def vacuum(self) -> None:
        raise sqlite3.OperationalError("database or disk is full")


def test_without_space_for_another_catalog_the_rest_is_compacted(
    thinned: Callable[[int | None], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, told = Path(shutil.copytree(thinned(None), tmp_path / "c.sonde")), list[object]()
    with monkeypatch.context() as patched:
        patched.setattr("sonde.indexer.upkeep.delete.Catalog", FullDisk)
        report = compact(folder, notify=told.append)
    assert report.removed > 0 and report.bytes < report.bytes_before
    [message] = [event for event in told if isinstance(event, str) and "catalog" in event]
    assert message.startswith("the catalog keeps the space of deleted documents, because it cannot be ")
    assert problems(folder) == [] and catalogs(folder) > 300_000
    assert compact(folder).removed == 0
    assert problems(folder) == [] and catalogs(folder) < 300_000


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from sonde.indexer.store.catalog import Catalog
from sonde.indexer.upkeep.delete import compact
def vacuum(self):
    left = int(sys.argv[2])
    def step():
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0
    self.connection.set_progress_handler(step, 1000)
    self.connection.execute("VACUUM")
    self.connection.set_progress_handler(None, 0)
    if left < 1000:
        os.kill(os.getpid(), signal.SIGKILL)
Catalog.vacuum = vacuum
compact(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("steps", [5, 900])
def test_killed_while_the_catalog_is_rewritten(
    thinned: Callable[[int | None], Path], tmp_path: Path, steps: int
) -> None:
    folder = Path(shutil.copytree(thinned(None), tmp_path / "c.sonde"))
    ran = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(steps)], env=os.environ)
    assert ran.returncode == -9
    assert problems(folder) == []
    with closing(opened(folder)) as collection:
        assert len(collection) == LEFT and collection.info().tombstones == 0
        assert collection.compact().removed == 0
    assert catalogs(folder) < 300_000 and problems(folder) == []


def test_the_parts_are_all_that_is_on_disk(either: Path) -> None:
    with closing(opened(either)) as collection:
        collection.tag("some", ids=[next(collection.rows())["id"]])
        (either / "models" / ("0" * 16)).mkdir(parents=True)
        (either / "models" / ("0" * 16) / "leftover").write_bytes(b"x" * 1_000)
        info = collection.info()
        assert sum(info.bytes.values()) == info.disk == info.to_dict()["disk"] == on_disk(either)
        assert quick_look(either).bytes == info.disk
        assert info.bytes["unused_models"] == 1_000
        kept = {"earlier_generation", "runs"} if info.shards else set()
        assert set(info.bytes) == {"catalog", "vectors", "ann", "lexical", "other", "unused_models"} | kept


SECRET = b"xylophone"


def corpus_rows(**changed: str) -> list[dict[str, str]]:
    """Return documents; those named `dN` in `changed` have that text."""
    texts = {each.key: each.text for each in corpus(60)}
    return [{"id": f"d{key}", "text": changed.get(f"d{key}", text)} for key, text in texts.items()]


def collection_of(folder: Path, source: list[dict[str, str]], encoder: Any, shards: int | None) -> Collection:
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
    collection = collection_of(tmp_path / "c.sonde", corpus_rows(**secret), FakeEncoder(), shards)
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
    expected = [each for each in corpus_rows(d8="Only a river now.") if each["id"] != "d7"]
    fresh = collection_of(tmp_path / "fresh.sonde", expected, FakeEncoder(), shards)
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


@pytest.mark.long
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
    fresh = collection_of(
        tmp_path / "fresh.sonde", [each for each in corpus_rows() if each["id"] not in gone], FakeEncoder(), 3
    )
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

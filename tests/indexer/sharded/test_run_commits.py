"""How runs of a sharded collection are stored: what a commit writes, who sees it, and what is refused."""

import errno
import json
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import themes
from fake_encoder import FakeEncoder
from resealed import replaced
from stored_runs import stored_runs
from two_ways import TwoWays, rows

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import in_turn, index_sharded
from sonde.indexer.sharded.generations import REMEMBERED, newest_generation
from sonde.indexer.sharded.layout import ShardedGeneration
from sonde.indexer.sharded.objects import LocalTruth
from sonde.indexer.sharded.runs import runs_catalog
from sonde.indexer.store.lock import Patience, patience


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sharded collection of 40 documents."""
    TwoWays(tmp_path, shards=3).index(themes.rows(10))
    return tmp_path / "sharded.sonde"


def opened(folder: Path) -> Collection:
    return Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]


def run(folder: Path, given: list[dict[str, Any]], **options: Any) -> None:
    encoder: Any = options.pop("encoder", FakeEncoder())
    index_sharded(given, folder, settings=BuildSettings(**options), encoder=encoder)


def newest(folder: Path) -> ShardedGeneration:
    found = newest_generation(LocalTruth(folder), folder)
    assert found is not None
    return found


def files(folder: Path) -> dict[str, int]:
    """The files of a folder with their inodes, apart from those of SQLite's readers and of the lock."""
    return {
        str(path.relative_to(folder)): path.stat().st_ino
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm", ".lock"))
    }


def test_a_run_writes_one_small_catalog_and_a_generation(folder: Path):
    before, shards = files(folder), newest(folder).shards
    opened(folder).tag("late", where="stars <= 1")
    added = sorted(set(files(folder)) - set(before))
    version = newest(folder).runs.version  # type: ignore[union-attr]
    assert added == ["generations/000002.json", f"runs/{version}/catalog.db", f"runs/{version}/shard.json"]
    assert {name: inode for name, inode in files(folder).items() if name in before} == before
    assert (newest(folder).number, newest(folder).indexed, newest(folder).shards) == (2, 1, shards)
    with closing(sqlite3.connect(runs_catalog(folder, newest(folder).runs))) as catalog:  # type: ignore[arg-type]
        assert catalog.execute("SELECT count(*) FROM documents").fetchone() == (0,)
        assert catalog.execute("SELECT count(*) FROM run_documents").fetchone() == (16,)


def test_runs_do_not_change_what_depends_on_documents(folder: Path):
    collection = opened(folder)
    with collection.stored.view() as view:
        generation = view.generation
    before = collection.generation, collection.documents_state(), collection.state()
    collection.tag("late", where="stars <= 1")
    with collection.stored.view() as view:
        assert view.generation is generation  # nothing is loaded again
    assert (collection.generation, collection.documents_state()) == before[:2]
    assert collection.state() != before[2]
    run(folder, [{"id": "new", "text": "a new parcel"}])
    assert collection.generation == 3
    assert collection.documents_state() != before[1]


def test_a_reader_keeps_the_runs_that_it_began_with(folder: Path):
    one, other = opened(folder), opened(folder)
    one.tag("late", where="stars <= 1")
    with one.stored.view():
        other.tag("good", where="stars >= 3")
        assert [each.name for each in one.runs()] == ["late"]
        assert len(one.search("parcel", k=40, where='"tag:late"')) == 16
        with pytest.raises(UsageError, match="there is no tag 'good'"):
            one.search("parcel", where='"tag:good"')
    assert [each.name for each in one.runs()] == ["late", "good"]
    assert len(one.search("parcel", k=40, where='"tag:good" OR "tag:late"')) == 32


def test_a_run_may_be_written_inside_a_view(folder: Path):
    collection = opened(folder)
    collection.tag("late", where="stars <= 1")
    with collection.stored.view():
        collection.tag("later", where='"tag:late" AND stars = 1')
        assert [each.name for each in collection.runs()] == ["late"]
    assert [(each.name, each.documents) for each in collection.runs()] == [("late", 16), ("later", 8)]


def test_threads_that_read_and_write(folder: Path):
    collection = opened(folder)
    collection.cluster("k", k=4)
    problems: list[BaseException] = []

    def reading() -> None:
        try:
            for _ in range(20):
                names = [each.name for each in collection.runs()]
                assert names[0] == "k"
                assert len(collection.search("parcel", k=40, where='"cluster:k" >= 0')) == 40
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=reading) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(5):
        collection.tag(f"t{number}", where=f"stars = {number}")
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(collection.runs()) == 6


def test_what_changes_nothing_commits_nothing(folder: Path):
    collection = opened(folder)
    collection.cluster("k", k=4)
    collection.make_taxonomy("k", name="tree")
    before = newest(folder).number
    assert collection.edit_taxonomy("rename", groups=["0"], name=collection.taxonomy("tree")[0].name) is None
    with pytest.raises(UsageError, match="nothing is left for the tag 'x'"):
        collection.tag("x", where="stars > 99")
    with pytest.raises(SondeError, match="there is no run 'no'"):
        collection.delete_run("no")
    assert newest(folder).number == before
    assert not (folder / "work").exists()


def test_documents_that_change_meanwhile_are_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """As in one collection: what was computed of an old text is not said of the new one."""
    from sonde.pipelines.cluster import clustering

    real = clustering.write_run

    def meanwhile(*given: Any, **options: Any) -> int:
        monkeypatch.setattr(clustering, "write_run", real)
        run(folder, [{"id": "parcel-3", "text": "another text"}])
        opened(folder).delete(["screen-4"])
        return real(*given, **options)

    monkeypatch.setattr(clustering, "write_run", meanwhile)
    opened(folder).cluster("k", k=4)
    stored = stored_runs(opened(folder))["cluster:k"]
    assert stored["documents"] == 38
    assert {"parcel-3", "screen-4"} & {id for id, _, _ in stored["assignments"]} == set()
    assert opened(folder).verify() == []


def test_of_two_writers_one_waits_and_the_other_gets_one_line(folder: Path):
    collection = opened(folder)

    def beside(tasks: Any, encoder: Any, notify: Any) -> Any:
        with patience(Patience(0)), pytest.raises(WriterBusyError, match="is being written to by another thread"):
            collection.tag("late", where="stars <= 1")
        yield from in_turn(tasks, encoder, notify)

    index_sharded([{"id": "x", "text": "first"}], folder, encoder=FakeEncoder(), runner=beside)  # type: ignore[arg-type]
    assert collection.tag("late", where="stars <= 1").documents == 16
    assert newest(folder).number == 3


def test_a_commit_that_comes_too_late_changes_nothing(folder: Path):
    """No lock holds the other up, as on a file system without locks."""
    collection = opened(folder)
    with (
        pytest.raises(WriterBusyError, match=r"another command committed generation 2 .* run the same command again"),
        collection.stored.writing() as catalog,
    ):
        catalog.set("search_defaults", {"weight": 0.3, "found": None})
        generation = newest(folder)
        overtaking = ShardedGeneration(2, generation.shards, generation.fields, generation.read, 1)
        assert LocalTruth(folder).create(overtaking.name, overtaking.to_bytes())
    assert opened(folder).search_defaults().chosen == {}
    assert opened(folder).tag("late", where="stars <= 1").documents == 16
    assert len(list((folder / "runs").iterdir())) == 1


def test_a_disk_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No sharded collection could be made on it."""

    def link(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(source), None, str(target))

    monkeypatch.setattr(os, "link", link)
    encoder: Any = FakeEncoder()
    index_sharded(themes.rows(2), tmp_path / "c.sonde", 2, encoder=encoder)
    run(tmp_path / "c.sonde", [{"id": "new", "text": "a new document"}])
    assert (len(opened(tmp_path / "c.sonde")), newest(tmp_path / "c.sonde").number) == (9, 2)
    truth = LocalTruth(tmp_path)
    assert (truth.create("a/1.json", b"one"), truth.create("a/1.json", b"two")) == (True, False)
    assert (truth.read("a/1.json"), [path.name for path in (tmp_path / "a").iterdir()]) == (b"one", ["1.json"])


def test_a_stopped_index_run_goes_on_after_a_tag(folder: Path):
    """A run of clustering and so on has another generation, and keeps what an index run has done so far."""
    given, encoder = rows(60, seed=5), FakeEncoder()

    def stopped(tasks: Any, given: Any, notify: Any) -> Any:
        yield from in_turn(tasks[:2], given, notify)
        raise KeyboardInterrupt("stopped here")

    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        index_sharded(given, folder, encoder=encoder, runner=stopped)  # type: ignore[arg-type]
    done = encoder.embedded
    opened(folder).tag("late", where="stars <= 1")
    run(folder, given, encoder=encoder)
    assert encoder.embedded - done < done
    assert (len(opened(folder)), newest(folder).number) == (100, 3)
    assert [(each.name, each.documents) for each in opened(folder).runs()] == [("late", 16)]
    assert opened(folder).verify() == []
    kept = {f"{name}/{state.version}" for name, state in newest(folder).folders.items()}
    assert kept <= {str(path.relative_to(folder)) for path in folder.glob("*/*/*")} | {
        str(path.relative_to(folder)) for path in folder.glob("runs/*")
    }


def test_two_versions_of_the_runs_and_the_last_generations_stay(folder: Path):
    collection = opened(folder)
    for number in range(4):
        collection.tag(f"t{number}", where=f"stars = {number}")
    assert sorted(path.name[:6] for path in (folder / "runs").iterdir()) == ["000004", "000005"]
    content = newest(folder)
    for number in range(6, 6 + REMEMBERED):
        later = ShardedGeneration(number, content.shards, content.fields, content.read, 1, content.runs)
        LocalTruth(folder).create(later.name, later.to_bytes())
    opened(folder).tag("last", where="stars = 0")
    names = sorted(path.name for path in (folder / "generations").iterdir())
    assert (names[0], names[-1], len(names)) == ("000007.json", "000106.json", REMEMBERED)


def test_damaged_runs_are_found_and_repaired(folder: Path):
    collection = opened(folder)
    collection.tag("late", where="stars <= 1")
    collection.cluster("k", k=4)
    path = runs_catalog(folder, newest(folder).runs)  # type: ignore[arg-type]
    with closing(sqlite3.connect(path)) as catalog, catalog:
        catalog.execute("UPDATE run_documents SET item = 1 - item WHERE run = 2 AND item IN (0, 1)")
    said = [f"{each.part}: {each.problem}" for each in opened(folder).verify()]
    assert said == [
        "runs: runs/catalog.db is missing or has changed since it was published",
        "runs: the cluster run 'k' has changed since it was written: create it again under the same name, or delete it",
    ]
    with pytest.raises(SondeError, match="the cluster run 'k' has changed since it was written"):
        opened(folder).repair()
    opened(folder).delete_run("k")
    assert opened(folder).verify() == []
    path = runs_catalog(folder, newest(folder).runs)  # type: ignore[arg-type]
    path.write_bytes(path.read_bytes() + bytes(4096))
    assert opened(folder).repair() == ["published the runs again"]
    assert opened(folder).verify() == []
    assert [each.name for each in opened(folder).runs()] == ["late"]


def test_runs_of_documents_that_do_not_exist_are_found(folder: Path):
    opened(folder).tag("late", where="stars <= 1")
    with opened(folder).stored.writing() as catalog:
        from sonde.indexer.store.checksums import assignment_sum, change, results_part

        connection = catalog.runs.connection
        connection.execute("INSERT INTO run_documents VALUES (1, 999999, 0, NULL)")
        change(connection, results_part(1), added=assignment_sum([999999], [0], [None]))
    assert [each.problem for each in opened(folder).verify()] == ["runs refer to 1 missing document"]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"SQLite format 3\0" + bytes(5000)])
def test_a_catalog_of_runs_that_is_none_is_one_line(folder: Path, content: bytes):
    opened(folder).tag("late", where="stars <= 1")
    path = runs_catalog(folder, newest(folder).runs)  # type: ignore[arg-type]
    path.write_bytes(content)
    for ask in (lambda c: c.runs(), lambda c: c.tag("more", where="stars = 1"), lambda c: c.repair()):
        with pytest.raises(SondeError) as raised:
            ask(opened(folder))
        assert "\n" not in str(raised.value)
        assert str(path.parent) in str(raised.value) or "runs" in str(raised.value)
    assert any(each.part == "runs" for each in opened(folder).verify())
    shutil.rmtree(path.parent)
    with pytest.raises(SondeError, match=r"runs/.* is missing: restore .* from a backup"):
        opened(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": "000002-', '"version": "../../'),
        ('"indexed": 1', '"indexed": "x"'),
        ('"runs": {', '"runs": 3, "x": {'),
    ],
)
def test_a_generation_from_a_stranger(folder: Path, old: str, new: str):
    opened(folder).tag("late", where="stars <= 1")
    path = folder / newest(folder).name
    replaced(path, old, new)
    with pytest.raises(SondeError, match=r"000002.json is damaged \("):
        opened(folder).runs()


def test_an_older_format_says_what_to_do(folder: Path):
    path = folder / "collection.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with pytest.raises(SondeError, match="has format 1, and this Sonde reads 2: index the sources into a new folder"):
        opened(folder)

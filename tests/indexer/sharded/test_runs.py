"""Runs over a sharded collection: what is touched, what is refused, and what readers and other runs see."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from resealed import replaced, resealed
from two_ways import TwoWays, rows

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import in_turn, index_sharded
from sonde.indexer.sharded.generations import newest_generation
from sonde.indexer.sharded.layout import ShardedGeneration, Sharding
from sonde.indexer.sharded.objects import LocalTruth


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sharded collection of 80 documents."""
    TwoWays(tmp_path).index(rows(80))
    return tmp_path / "sharded.sonde"


def run(folder: Path, given: list, **options):
    return index_sharded(given, folder, settings=BuildSettings(**options), encoder=FakeEncoder())  # type: ignore[arg-type]


def newest(folder: Path) -> ShardedGeneration:
    found = newest_generation(LocalTruth(folder), folder)
    assert found is not None
    return found


def sharding(folder: Path) -> Sharding:
    found = Sharding.read(folder)
    assert found is not None
    return found


def test_a_run_that_changes_nothing_commits_nothing(folder: Path):
    report = run(folder, rows(80))
    assert (report.unchanged, report.changed, report.embedded) == (80, False, 0)
    assert newest(folder).number == 1
    assert not (folder / "work").exists()


def test_only_the_shard_of_a_changed_document_gets_a_version(folder: Path):
    before = newest(folder)
    assert run(folder, [{"id": "d5", "text": "changed", "stars": 1}]).replaced == 1
    after, concerned = newest(folder), sharding(folder).shard_of("d5")
    assert (before.number, after.number) == (1, 2)
    assert [s for s in range(4) if before.shards[s] != after.shards[s]] == [concerned]
    assert Collection.open(folder, encoder=FakeEncoder()).delete(["d6"]) == 1  # type: ignore[arg-type]
    concerned = sharding(folder).shard_of("d6")
    assert [s for s in range(4) if newest(folder).shards[s] != after.shards[s]] == [concerned]


def test_sync_deletes_in_every_shard(folder: Path):
    before = newest(folder)
    with pytest.raises(UsageError, match="79 of the 80 documents of the collection are not in the source"):
        run(folder, rows(1), sync=True)
    assert newest(folder) == before
    report = run(folder, rows(1), sync=True, delete_most=True)
    assert (report.unchanged, report.deleted) == (1, 79)
    opened = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert [row["id"] for row in opened.rows()] == ["d0"]
    assert opened.verify() == []


def test_a_version_of_a_shard_never_changes(folder: Path):
    version = next((folder / "shards").glob("*/*"))
    part = Collection.open(version, encoder=FakeEncoder())  # type: ignore[arg-type]
    held = [row["id"] for row in part.rows()]
    with pytest.raises(SondeError, match="is a part of a sharded collection and never changes: name the whole"):
        part.delete(held[:1])
    with pytest.raises(SondeError, match="is a part of a sharded collection and never changes: name the whole"):
        part.put([{"id": "x", "text": "astray"}])
    opened = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert (len(opened), opened.verify()) == (80, [])


def test_a_reader_sees_a_new_generation_at_its_next_request(folder: Path):
    opened = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    with opened.stored.view() as view:
        assert view.catalog.counts()[0] == 80
        run(folder, [{"id": "new", "text": "a new one"}])
        assert view.catalog.counts()[0] == 80
        assert opened.search("a new one", k=1)[0].id != "new"
    assert len(opened) == 81
    assert opened.search("a new one", k=1)[0].id == "new"


def test_old_versions_stay_for_one_more_generation(folder: Path):
    first = newest(folder)
    for number in range(3):
        run(folder, [{"id": "d5", "text": f"changed {number}", "stars": 1}])
    shard = sharding(folder).shard_of("d5")
    there = sorted(path.name[:6] for path in (folder / "shards" / f"{shard:02d}").glob("0*"))
    assert there == ["000003", "000004"]
    assert first.shards[shard] != newest(folder).shards[shard]


def test_another_run_that_commits_first_wins(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The second run began before the first had committed, as it may where no lock holds it up."""

    def overtaken(tasks, encoder, notify):
        new = ShardedGeneration(2, newest(folder).shards, {"stars": "integer"}, 80, 2)
        assert LocalTruth(folder).create(new.name, new.to_bytes())
        yield from in_turn(tasks, encoder, notify)

    with pytest.raises(WriterBusyError, match=r"another command committed generation 2 .* run the same command again"):
        index_sharded([{"id": "x", "text": "late"}], folder, encoder=FakeEncoder(), runner=overtaken)  # type: ignore[arg-type]
    assert len(Collection.open(folder, encoder=FakeEncoder())) == 80  # type: ignore[arg-type]
    assert run(folder, [{"id": "x", "text": "late"}]).unchanged == 0
    assert newest(folder).number == 3
    assert len(Collection.open(folder, encoder=FakeEncoder())) == 81  # type: ignore[arg-type]


def test_a_second_run_at_the_same_time_is_refused(folder: Path):
    def beside(tasks, encoder, notify):
        with pytest.raises(WriterBusyError, match="is being written to by another thread of this program"):
            run(folder, rows(1), wait=0)
        yield from in_turn(tasks, encoder, notify)

    index_sharded([{"id": "x", "text": "first"}], folder, encoder=FakeEncoder(), runner=beside)  # type: ignore[arg-type]
    assert len(Collection.open(folder, encoder=FakeEncoder())) == 81  # type: ignore[arg-type]


def test_a_stopped_run_goes_on_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch):
    given, encoder = rows(60, seed=5, start=500), FakeEncoder()

    def stopped(tasks, given, notify):
        yield from in_turn(tasks[:2], given, notify)
        raise KeyboardInterrupt("stopped here")

    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        index_sharded(given, folder, encoder=encoder, runner=stopped)  # type: ignore[arg-type]
    assert len(Collection.open(folder, encoder=FakeEncoder())) == 80  # type: ignore[arg-type]
    before = encoder.embedded
    assert 0 < before < 60
    report = index_sharded(given, folder, encoder=encoder)  # type: ignore[arg-type]
    distinct = len({row["text"] for row in given})
    assert (report.added + report.unchanged, newest(folder).number) == (60, 2)
    assert 0 < report.added < 60, "what the stopped run did is not this run's work"
    assert encoder.embedded <= distinct + 3 * before
    assert encoder.embedded - before < 60
    assert Collection.open(folder, encoder=FakeEncoder()).verify() == []  # type: ignore[arg-type]


def test_another_run_drops_what_a_stopped_one_left(folder: Path):
    def stopped(tasks, given, notify):
        yield from in_turn(tasks[:2], given, notify)
        raise KeyboardInterrupt("stopped here")

    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        index_sharded(rows(60, start=500), folder, encoder=FakeEncoder(), runner=stopped)  # type: ignore[arg-type]
    run(folder, [{"id": "other", "text": "another source"}])
    opened = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert len(opened) == 81
    assert opened.verify() == []
    assert {path.name for path in (folder / "shards").glob("*/0*")} == {
        state.version for each in (newest(folder), _first(folder)) for state in each.shards if state
    }


def _first(folder: Path) -> ShardedGeneration:
    return ShardedGeneration.load(LocalTruth(folder), folder, "generations/000001.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shards": 3}, "has 4 shards, not 3"),
        ({"settings": BuildSettings(language="de")}, "was built with language 'en', not 'de'|language None, not 'de'"),
        ({"settings": BuildSettings(max_tokens=8)}, "was built with max_tokens 64, not 8"),
    ],
)
def test_a_run_that_contradicts_the_collection_is_refused(folder: Path, options: dict, message: str):
    with pytest.raises(UsageError, match=message):
        index_sharded(rows(3), folder, encoder=FakeEncoder(), **options)  # type: ignore[arg-type]
    assert newest(folder).number == 1


def test_one_collection_cannot_be_divided(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(5))
    with pytest.raises(UsageError, match="is not a sharded collection: to divide it, index its sources"):
        index_sharded(rows(5), tmp_path / "one.sonde", 2, encoder=FakeEncoder())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"shards.* is 0: give a whole number from 1 to 1,000"):
        index_sharded(rows(5), tmp_path / "new.sonde", 0, encoder=FakeEncoder())  # type: ignore[arg-type]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(SondeError, match="mine is not a Sonde collection: it holds other files, such as letter"):
        index_sharded(rows(5), tmp_path / "mine", 2, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_a_source_without_documents_leaves_nothing(tmp_path: Path):
    with pytest.raises(SondeError, match=r"there is nothing to index: no usable documents \(1 skipped; the first: "):
        index_sharded([{"id": "1", "text": "  "}], tmp_path / "new.sonde", 2, encoder=FakeEncoder())  # type: ignore[arg-type]


def test_a_first_run_that_was_stopped(tmp_path: Path):
    folder = tmp_path / "new.sonde"

    def stopped(tasks, given, notify):
        raise KeyboardInterrupt("stopped here")
        yield

    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        index_sharded(rows(9), folder, 2, encoder=FakeEncoder(), runner=stopped)  # type: ignore[arg-type]
    with pytest.raises(SondeError, match=r"is unfinished: its first `sonde index` was stopped; run it again"):
        Collection.open(folder)
    assert run(folder, rows(9)).added == 9
    assert len(Collection.open(folder, encoder=FakeEncoder())) == 9  # type: ignore[arg-type]


def test_a_run_over_a_collection_with_a_lost_shard_is_refused_before_it_embeds(folder: Path):
    """It embedded for hours, and then said that there is no collection."""
    state = newest(folder).shards[1]
    assert state is not None
    shutil.rmtree(folder / "shards" / "01")
    said = rf"shards/01/{state.version} is missing: restore .*sonde from a backup, or rebuild the shard with"
    with pytest.raises(SondeError, match=said):
        Collection.open(folder)
    encoder = FakeEncoder()
    encoder.encode = None  # type: ignore[assignment]
    with pytest.raises(SondeError, match=said) as raised:
        index_sharded(rows(90), folder, settings=BuildSettings(), encoder=encoder)  # type: ignore[arg-type]
    assert raised.value.code == "damaged"
    assert not (folder / "work").exists()


def test_progress_has_the_number_of_the_shards_folder(tmp_path: Path):
    """A shard was called by its place among those of the run, and by its number in what was repaired."""
    told: list[str] = []
    encoder: Any = FakeEncoder()
    index_sharded(rows(60), tmp_path / "new.sonde", 3, encoder=encoder, notify=lambda each: told.append(str(each)))
    for shard in range(3):
        assert any(f"shard {shard:02d} ({shard + 1} of 3): " in each for each in told)


def test_a_search_says_how_many_passages_of_all_shards_it_scans(folder: Path):
    collection = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    passages = sum(state.passages for state in newest(folder).shards if state)
    assert f"4 shards: exact scan of {passages} passages" in collection.search("text", mode="dense").strategy
    [id, *_] = [each.id for each in collection.search("text", k=3)]
    found = collection.search("text", mode="dense", where=f"id = '{id}'")
    assert "4 shards: exact scan of 1 passage" in found.strategy


def test_verify_names_the_shard_that_changed(folder: Path):
    state = newest(folder).shards[2]
    assert state is not None
    [path, *_] = (folder / "shards" / "02" / state.version / "vectors").iterdir()
    path.write_bytes(path.read_bytes()[:-2] + b"\0\1")
    found = [f"{each.part}: {each.problem}" for each in Collection.open(folder, encoder=FakeEncoder()).verify()]  # type: ignore[arg-type]
    assert found[0] == f"vectors: shard 02: vectors/{path.name} is missing or has changed since it was published"
    assert all(": shard 02: " in line for line in found)
    assert any(line.startswith("vectors: shard 02: ") for line in found)


def test_verify_finds_a_document_in_the_wrong_shard(folder: Path):
    name = newest(folder).name
    stored = json.loads((folder / name).read_bytes())
    state = newest(folder).shards[0]
    assert state is not None
    shutil.copytree(folder / "shards" / "00" / state.version, folder / "shards" / "01" / "000001-c0b1")
    stored["shards"][1] = stored["shards"][0] | {"version": "000001-c0b1"}
    resealed(folder / name, shards=stored["shards"])
    found = [each.problem for each in Collection.open(folder, encoder=FakeEncoder()).verify()]  # type: ignore[arg-type]
    assert found == [f"shard 01: {state.documents} documents should be in other shards"]


def test_a_missing_shard_is_one_line(folder: Path):
    shutil.rmtree(folder / "shards" / "03")
    with pytest.raises(
        SondeError, match=r"shards/03/.* is missing: restore .* from a backup, or rebuild the shard with"
    ):
        Collection.open(folder)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x93NUMPY\x01\x00"])
def test_a_damaged_order_is_one_line(folder: Path, content: bytes):
    [path, *_] = folder.glob("shards/02/*/order.npy")
    path.write_bytes(content)
    with pytest.raises(
        SondeError, match=r"shards/02/.*/order.npy is damaged \(.*\): restore the collection from a backup"
    ):
        Collection.open(folder)


def test_an_order_of_another_shard_is_one_line(folder: Path):
    [path, *_], [other, *_] = (list(folder.glob(f"shards/{shard}/*/order.npy")) for shard in ("02", "03"))
    assert path.stat().st_size != other.stat().st_size
    path.write_bytes(other.read_bytes())
    said = r"shards/02/.* has \d+ passages, but order.npy lists \d+: restore|order.npy is damaged \(its places are not"
    with pytest.raises(SondeError, match=said):
        Collection.open(folder, encoder=FakeEncoder()).search("red apple")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["collection.json", "generations/000001.json"])
@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 3}', b'{"format": 2, "shards": [1]}', b"\xff"])
def test_a_damaged_file_of_the_whole_is_one_line(folder: Path, name: str, content: bytes):
    (folder / name).write_bytes(content)
    with pytest.raises(SondeError, match=r"json (is damaged \(|has format 3, and this Sonde reads 2: update Sonde)"):
        Collection.open(folder)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("generations/000001.json", '"version": "000001-', '"version": "../../'),
        ("generations/000001.json", '"stars": "integer"', '"stars": "blob"'),
        ("collection.json", '"shards": 4', '"shards": -4'),
        ("collection.json", '"seed": 0', '"seed": "x"'),
    ],
)
def test_a_collection_from_a_stranger(folder: Path, name: str, old: str, new: str):
    replaced(folder / name, old, new)
    with pytest.raises(SondeError) as raised:
        Collection.open(folder, encoder=FakeEncoder()).search("red apple")  # type: ignore[arg-type]
    assert "is damaged (" in str(raised.value)


def test_a_generation_of_another_number_of_shards(folder: Path):
    path = folder / "generations" / "000001.json"
    stored = json.loads(path.read_text())
    resealed(path, shards=stored["shards"][:3])
    with pytest.raises(SondeError, match=r"000001.json is damaged: it has 3 shards, not 4: restore the collection"):
        Collection.open(folder)


def test_skipped_rows_are_listed_once(tmp_path: Path):
    given = [*rows(10), {"id": "empty", "text": ""}]
    report = index_sharded(given, tmp_path / "c.sonde", 3, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert (report.added, report.skipped, report.skipped_rows[0].reason) == (10, 1, "no text and no title: empty")
    assert report.skipped_file and report.skipped_file == tmp_path / "c.sonde" / "skipped.jsonl"
    assert json.loads(report.skipped_file.read_text())["reason"] == "no text and no title: empty"


def test_a_shard_needs_no_documents(tmp_path: Path):
    folder = tmp_path / "c.sonde"
    index_sharded(rows(2), folder, 40, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert sum(state is not None for state in newest(folder).shards) in (1, 2)
    opened = Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert {hit.id for hit in opened.search("red apple", collapse=False)} == {"d0", "d1"}
    assert opened.delete(["d0", "d1"]) == 2
    assert [*opened.search("red apple")] == []
    assert (len(opened), opened.verify(), opened.info().documents) == (0, [], 0)


def test_routing_is_fixed():
    """A change of the hash would send documents of existing collections to other shards."""
    fixed = Sharding(8, 4711, {}, None, None)
    assert [fixed.shard_of(key) for key in ("a", "b", "4711", "ü", "\udcff")] == [0, 2, 0, 7, 2]

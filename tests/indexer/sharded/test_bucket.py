"""Collections in an object store: the same hits from any machine, one commit, nothing uploaded twice, no half state.

The store here is obstore's own over a local folder, so that a test can damage objects. `test_s3.py` uses S3 by HTTP.
"""
# ruff: noqa: F811  (a fixture that is imported)

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import obstore
import pytest
from fake_encoder import FakeEncoder
from machines import ADDRESS, Killed, Machines, machines  # noqa: F401  (machines: a fixture)
from obstore.exceptions import GenericError, UnauthenticatedError
from other_encoder import OtherEncoder
from resealed import resealed
from thinned import thinned
from two_ways import QUERIES, TwoWays, rows

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.sharded import address_of
from sonde.indexer.sharded.bucket import Bucket, bucket_of, local_folder
from sonde.indexer.sharded.generations import files_in


def hits(collection: Collection) -> list[list[tuple[str, float]]]:
    return [[(hit.id, hit.score) for hit in collection.search(query, k=20)] for query in QUERIES]


def test_an_address_is_told_from_a_path() -> None:
    assert address_of("s3://b/c.sonde") == address_of(Path("s3://b/c.sonde")) == "s3://b/c.sonde"
    assert address_of("s3://b/some/c.sonde/") == "s3://b/some/c.sonde"
    assert [address_of(path) for path in ("s3.sonde", "a/s3:/b/c", "s3://b", "gs://b/c", "/s3:/b/c")] == [None] * 5


def test_another_machine_finds_the_same(machines: Machines, tmp_path: Path) -> None:
    ways = TwoWays(tmp_path)
    ways.index(rows(80))
    assert machines.index(rows(80), shards=4).report.added == 80  # type: ignore[union-attr]
    machines.use("two")
    assert hits(machines.open()) == hits(ways.one)
    assert machines.open().verify() == []


def test_another_model_is_that_of_all_machines(machines: Machines, tmp_path: Path) -> None:
    ways, encoder = TwoWays(tmp_path), OtherEncoder()
    ways.index(rows(80))
    machines.index(rows(80), shards=3)
    changed: Any = encoder
    for each in (ways.one, machines.open()):
        assert each.change_model(encoder=changed, anyway=True).switched
    assert machines.open().info().other_models[0]["previous"]
    machines.use("two")
    there = Collection.open(ADDRESS, encoder=changed)
    ways.encoder = encoder
    assert (there.model, hits(there), there.verify()) == ("other", hits(ways.one), [])
    with pytest.raises(SondeError, match="keeps no previous model"):
        there.undo_model()


def test_without_a_number_there_is_one_shard(machines: Machines) -> None:
    machines.index(rows(5))
    assert machines.open().info().shards == 1


def test_a_second_run_uploads_nothing(machines: Machines) -> None:
    machines.index(rows(80), shards=4)
    machines.calls.clear()
    report = machines.index(rows(80)).report
    assert report and (report.unchanged, report.embedded) == (80, 0)
    assert machines.calls == []
    machines.use("two")  # a machine without a copy takes it from the store, and changes nothing either
    report = machines.index(rows(80)).report
    assert report and (report.unchanged, report.embedded) == (80, 0)
    assert machines.calls == []


def test_a_changed_document_uploads_no_segment_again(machines: Machines) -> None:
    machines.index(rows(80), shards=4)
    old = {path.relative_to(machines.objects).as_posix() for path in machines.objects.rglob("vectors/*")}
    machines.calls.clear()
    machines.use("two")
    machines.index([{"id": "d5", "text": "changed", "stars": 1}])
    changed = {name.split("/")[1] for call, name in machines.calls if name.startswith("shards/")}
    assert len(changed) == 1
    segments = {path.rsplit("/", 1)[1] for path in old if path.split("/")[1] in changed}
    copied = {name.rsplit("/", 1)[1] for call, name in machines.calls if call == "copy" and "/vectors/" in name}
    uploaded = {name.rsplit("/", 1)[1] for call, name in machines.calls if call == "put" and "/vectors/" in name}
    assert segments and segments <= copied
    assert not uploaded & segments
    machines.use("one")
    assert machines.open().get("d5").text == "changed"


def test_deleting_is_a_commit_in_the_store(machines: Machines) -> None:
    machines.index(rows(20), shards=2)
    assert machines.open().delete(["d3", "d4"]) == 2
    machines.use("two")
    assert len(machines.open()) == 18
    assert machines.generation() == 2


def test_of_two_runs_one_wins(machines: Machines) -> None:
    machines.index(rows(20), shards=2)
    machines.use("slow")
    machines.open()

    def other(call: str) -> None:
        """Commit from another machine at the first upload of the slow one."""
        machines.before = lambda _: None
        machines.use("fast")
        machines.index([{"id": "fast", "text": "a good phone", "stars": 5}])
        machines.use("slow")

    machines.before = other
    with pytest.raises(
        WriterBusyError, match=r"another command committed generation 2 of s3://shop/reviews.sonde first"
    ):
        machines.index([{"id": "slow", "text": "a bad phone", "stars": 1}])
    assert machines.generation() == 2
    assert {hit.id for hit in machines.open().search("phone", k=30)} >= {"fast"}
    machines.index([{"id": "slow", "text": "a bad phone", "stars": 1}])
    machines.use("third")
    collection = machines.open()
    assert (len(collection), machines.generation()) == (22, 3)
    assert collection.verify() == []


def turns(calls: list[tuple[str, str]]) -> list[int]:
    """The calls at and after each one that makes something count, and some, or with `make soak` all, of the others."""
    whole = [n for n, (call, name) in enumerate(calls) if call == "delete" or name.endswith(".json")]
    near = {n + step for n in whole for step in (0, 1)} | set(thinned(range(len(calls)), 12))
    return sorted(near & set(range(len(calls))))


@pytest.mark.long
def test_stopped_at_any_upload(machines: Machines, tmp_path: Path) -> None:
    ways = TwoWays(tmp_path, shards=2)
    ways.index(rows(12))
    machines.index(rows(12), shards=2)
    more = rows(6, seed=3, start=12)
    ways.index(more)
    expected, kept = hits(ways.one), machines.objects.with_name("kept")
    shutil.copytree(machines.objects, kept)
    machines.calls.clear()
    machines.use("whole")
    machines.index(more)
    stops = turns(machines.calls)
    for stop in stops:
        shutil.rmtree(machines.objects)
        shutil.copytree(kept, machines.objects)
        machines.use(f"writer {stop}")
        left = [stop]

        def kill(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed("in the middle")

        machines.before = kill
        with pytest.raises(Killed, match="in the middle"):
            machines.index(more)
        machines.before = lambda _: None
        machines.use(f"reader {stop}")
        assert len(machines.open()) in (12, 18)  # a whole generation, the old one or the new one
        machines.use(f"writer {stop}")
        machines.index(more)
        machines.use(f"other {stop}")
        assert hits(machines.open()) == expected
        assert machines.open().verify() == []
    assert len(stops) > 8


def test_a_commit_whose_answer_is_lost_is_a_commit(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is sent again, and the store says that the object is there already: this run has written it."""
    put = obstore.put

    def twice(store: object, name: str, content: bytes, **options: Any) -> Any:
        put(store, name, content, **options)  # type: ignore[arg-type]
        if options.get("mode") == "create":
            put(store, name, content, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(obstore, "put", twice)
    assert len(machines.index(rows(5), shards=1)) == 5
    assert not Bucket(ADDRESS).create("generations/000001.json", b"of another run")
    assert machines.generation() == 1


def test_what_cannot_be_removed_after_the_commit_is_left(machines: Machines) -> None:
    def refuse(call: str) -> None:
        if call == "delete":
            raise GenericError("denied")

    machines.before = refuse
    for number in range(4):
        machines.index([{"id": "same", "text": f"number {number}"}], shards=1)
    versions = machines.objects / "shards" / "00"
    assert (machines.generation(), len(list(versions.glob("*/shard.json")))) == (4, 4)
    machines.before = lambda _: None
    machines.index([{"id": "same", "text": "last"}], shards=1)
    assert len(list(versions.glob("*/shard.json"))) == 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (GenericError("Error performing PUT http://169.254.169.254/latest/api/token"), "there are no credentials: set"),
        (UnauthenticatedError("403"), "the store refuses access; check AWS_ACCESS_KEY_ID"),
        (GenericError("<Error><Code>NoSuchBucket</Code>\n</Error>"), "there is no bucket 'shop': create it first"),
        (GenericError("HTTP error: no\nanswer"), "the store gives no usable answer; check AWS_ENDPOINT_URL"),
    ],
    ids=("none", "refused", "no-bucket", "unreachable"),
)
def test_what_a_store_answers_is_one_line(machines: Machines, error: Exception, said: str) -> None:
    def refuse(call: str) -> None:
        raise error

    machines.index(rows(5), shards=1)
    machines.before = refuse
    with pytest.raises(SondeError, match=f"^{ADDRESS}: {said}[^\n]*$"):
        machines.index([{"id": "new", "text": "one more"}], shards=1)
    machines.before = lambda _: None
    assert machines.generation() == 1


@pytest.mark.parametrize("manifest", [b"[]", b"{}", b'{"files": 3}', b"[" * 100_000, b"\xff"])
def test_a_manifest_that_is_none_is_said(manifest: bytes) -> None:
    with pytest.raises(SondeError, match=r"shards/00/x/shard.json is damaged"):
        files_in(manifest, "shards/00/x")


def test_damage_is_told_and_not_taken(machines: Machines) -> None:
    machines.index(rows(20), shards=2)
    victim = min(machines.objects.rglob("vectors/*"))
    victim.write_bytes(victim.read_bytes()[:-4] + b"\0\1\2\3")
    machines.use("two")
    with pytest.raises(SondeError, match=r"vectors/.* in s3://shop/reviews.sonde is damaged"):
        machines.open()
    assert not list(local_folder(ADDRESS).rglob("catalog.db"))
    victim.unlink()
    with pytest.raises(SondeError, match=r"s3://shop/reviews.sonde lacks shards/.*vectors/"):
        machines.open()


@pytest.mark.parametrize("name", ["../../outside", "/etc/outside", "a/../../../outside", "shard.json"])
def test_a_hostile_store_writes_nothing_outside(machines: Machines, tmp_path: Path, name: str) -> None:
    machines.index(rows(5), shards=1)
    generation = machines.objects / "generations" / "000001.json"
    stored = json.loads(generation.read_text())
    [manifest] = machines.objects.rglob("shard.json")
    listed = json.loads(manifest.read_text())
    listed["files"][name] = hashlib.sha256(b"x").hexdigest()
    manifest.write_text(json.dumps(listed))
    stored["shards"][0]["sha256"] = hashlib.sha256(manifest.read_bytes()).hexdigest()
    place = manifest.parent.with_name(f"{stored['shards'][0]['version']}-{stored['shards'][0]['sha256'][:12]}")
    manifest.parent.rename(place)
    resealed(generation, shards=stored["shards"])
    before = {path for path in tmp_path.rglob("*") if "two" not in path.parts}
    machines.use("two")
    with pytest.raises(SondeError, match=r"is outside its folder: restore the collection"):
        machines.open()
    assert {path for path in tmp_path.rglob("*") if "two" not in path.parts} == before


def test_a_copy_follows_a_store_that_was_made_again(machines: Machines) -> None:
    machines.index(rows(20), shards=2)
    machines.use("two")
    assert len(machines.open()) == 20
    shutil.rmtree(machines.objects)
    with pytest.raises(SondeError, match=r"there is no collection at s3://shop/reviews.sonde"):
        machines.open()
    machines.use("one")
    machines.index(rows(7, seed=9), shards=3)
    machines.use("two")
    assert (len(machines.open()), machines.open().info().shards) == (7, 3)


def test_other_objects_beside_the_generations_change_nothing(machines: Machines) -> None:
    """What the newest generations name was removed as if nothing named it."""
    machines.index(rows(20), shards=2)
    for name in ("Copy of 000001.json", "notes.txt", "zz.json"):
        (machines.objects / "generations" / name).write_text("mine")
    for number in range(3):
        machines.index([{"id": f"n{number}", "text": "another document"}])
    machines.use("two")
    assert (len(machines.open()), machines.open().verify()) == (23, [])


def test_a_store_that_lost_its_generations_is_not_taken_for_a_new_one(machines: Machines) -> None:
    machines.index(rows(20), shards=2)
    machines.index([{"id": "new", "text": "another document"}])
    shutil.rmtree(machines.objects / "generations")
    before = sorted(machines.objects.rglob("*"))
    for machine in ("one", "two"):
        machines.use(machine)
        with pytest.raises(SondeError, match=r"reviews.sonde has lost its generations, but not shards/.*: restore"):
            machines.open()
        with pytest.raises(SondeError, match=r"reviews.sonde has lost its generations, but not shards/.*: restore"):
            machines.index(rows(3))
    assert sorted(machines.objects.rglob("*")) == before


def test_the_store_keeps_two_generations(machines: Machines) -> None:
    for number in range(4):
        machines.index([{"id": "same", "text": f"number {number}", "stars": 1}], shards=1)
    versions = {path.parent.name[:6] for path in (machines.objects / "shards" / "00").glob("*/shard.json")}
    assert versions == {"000003", "000004"}


def test_only_the_cache_names_stores(machines: Machines, tmp_path: Path) -> None:
    """A collection that was received cannot make a run write to a store of the sender's."""
    machines.index(rows(5), shards=1)
    received = tmp_path / "received" / "0123456789abcdef" / "reviews.sonde"
    shutil.copytree(local_folder(ADDRESS).parent, received.parent)
    assert bucket_of(local_folder(ADDRESS)) is not None
    assert bucket_of(received) is None
    machines.calls.clear()
    index(rows(3, start=50), received, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert machines.calls == []


def test_a_stopped_first_run_is_said(machines: Machines) -> None:
    machines.before = lambda _: (_ for _ in ()).throw(Killed("at once")) if machines.calls else None
    with pytest.raises(Killed, match="at once"):
        machines.index(rows(5), shards=2)
    machines.before = lambda _: None
    machines.use("two")
    with pytest.raises(SondeError, match=r"s3://shop/reviews.sonde is unfinished: its first `sonde index` was stopped"):
        machines.open()
    machines.index(rows(5))
    assert len(machines.open()) == 5


def test_other_addresses_are_refused(machines: Machines) -> None:
    with pytest.raises(UsageError, match=r"give a folder on this machine, or s3://BUCKET/NAME.sonde"):
        index(rows(3), "gs://shop/reviews.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert not Path("gs:").exists()

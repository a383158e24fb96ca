"""Runs of a collection in an object store: one commit, no shard uploaded again, no half state."""
# ruff: noqa: F811  (a fixture that is imported)

import shutil
from pathlib import Path

import pytest
from machines import Killed, Machines, machines  # noqa: F401  (machines: a fixture)
from stored_runs import stored_runs
from two_ways import TwoWays, rows

from sonde.indexer.errors import SondeError, UsageError, WriterBusyError


def test_runs_are_a_commit_in_the_store(machines: Machines, tmp_path: Path) -> None:
    ways = TwoWays(tmp_path)
    ways.index(rows(80))
    machines.index(rows(80), shards=4)
    machines.calls.clear()
    machines.open().tag("good", where="stars >= 4")
    assert {name.split("/")[0] for _, name in machines.calls} == {"runs", "generations"}  # no shard is uploaded again
    ways.one.tag("good", where="stars >= 4")
    machines.use("two")
    assert stored_runs(machines.open()) == stored_runs(ways.one)
    machines.open().cluster("k", k=3)
    ways.one.cluster("k", k=3)
    ways.one.delete(["d3", "d4"])
    assert machines.open().delete(["d3", "d4"]) == 2
    machines.use("three")
    assert stored_runs(machines.open()) == stored_runs(ways.one)
    assert machines.open().verify() == []
    assert machines.generation() == 4
    assert len(list(machines.objects.glob("runs/*/shard.json"))) == 2


def test_a_run_on_a_copy_that_is_behind(machines: Machines) -> None:
    """A service may hold a copy open for long: before it writes, it takes what others have committed."""
    machines.index(rows(20), shards=2)
    served = machines.open()
    machines.use("two")
    machines.open().tag("two", where="stars >= 2")
    machines.index([{"id": "new", "text": "a good phone", "stars": 5}])
    machines.use("one")
    assert [run.name for run in served.runs()] == []
    served.tag("one", where="stars >= 1")
    assert [(run.name, run.documents) for run in served.runs()][1] == ("one", 21)
    assert served.delete(["new"]) == 1
    machines.use("two")
    machines.open().tag("three", where="stars >= 3")
    machines.use("one")
    assert served.put([{"id": "put", "text": "a bad phone"}]).added == 1
    assert (machines.generation(), len(served), len(served.runs())) == (7, 21, 3)


def test_of_two_tags_one_wins(machines: Machines) -> None:
    machines.index(rows(20), shards=2)

    def other(call: str) -> None:
        machines.before = lambda _: None
        machines.use("fast")
        machines.open().tag("fast", where="stars >= 1")
        machines.use("slow")

    machines.use("slow")
    slow = machines.open()
    machines.before = other
    with pytest.raises(
        WriterBusyError, match=r"another command committed generation 2 of s3://shop/reviews.sonde first"
    ):
        slow.tag("slow", where="stars >= 1")
    assert [run.name for run in machines.open().runs()] == ["fast"]
    slow.tag("slow", where="stars >= 1")
    assert [run.name for run in machines.open().runs()] == ["fast", "slow"]


def test_a_run_stopped_at_any_upload(machines: Machines) -> None:
    machines.index(rows(12), shards=2)
    machines.open().tag("old", where="stars >= 1")
    before, kept = stored_runs(machines.open()), machines.objects.with_name("kept")
    shutil.copytree(machines.objects, kept)
    machines.calls.clear()
    machines.use("whole")
    machines.open().cluster("k", k=3)
    after, calls = stored_runs(machines.open()), list(machines.calls)
    assert [name for _, name in calls][-1] == "generations/000003.json"
    for stop in range(len(calls)):
        shutil.rmtree(machines.objects)
        shutil.copytree(kept, machines.objects)
        machines.use(f"writer {stop}")
        left = [stop]

        def kill(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed("in the middle")

        collection = machines.open()
        machines.before = kill
        with pytest.raises(Killed, match="in the middle"):
            collection.cluster("k", k=3)
        machines.before = lambda _: None
        machines.use(f"reader {stop}")
        assert stored_runs(machines.open()) in (before, after)
        machines.use(f"writer {stop}")
        machines.open().cluster("k", k=3, replace=True)
        machines.use(f"other {stop}")
        assert stored_runs(machines.open()) == after
        assert machines.open().verify() == []


def test_judgements_have_no_place_in_a_store(machines: Machines) -> None:
    machines.index(rows(5), shards=1)
    with pytest.raises(UsageError, match=r"s3://shop/reviews.sonde cannot keep judgements yet: use a collection on"):
        machines.open().judge("red apple", ["d1"])


def test_damage_to_runs_is_told_and_not_taken(machines: Machines) -> None:
    machines.index(rows(20), shards=2)
    machines.open().tag("good", where="stars >= 4")
    victim = next(machines.objects.glob("runs/*/catalog.db"))
    victim.write_bytes(victim.read_bytes()[:-4] + b"\0\1\2\3")
    machines.use("two")
    with pytest.raises(SondeError, match=r"runs/.*/catalog.db in s3://shop/reviews.sonde is damaged"):
        machines.open()

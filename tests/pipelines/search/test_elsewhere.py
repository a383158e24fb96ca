"""Searches over shards that other processes hold give the hits of local ones, and say when a shard is missing."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replicas import FakeReplica, fakes, gathered
from two_ways import QUERIES, WAYS, TwoWays, rows, told

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError
from sonde.indexer.store.elsewhere import Way
from sonde.pipelines.search.candidates import _described
from sonde.pipelines.search.results import PARTIAL, Results
from sonde.pipelines.search.search import best_documents


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> TwoWays:
    made = TwoWays(tmp_path_factory.mktemp("elsewhere"))
    given = rows(300)
    made.index(given)
    made.delete([row["id"] for row in given[50:70]])
    return made


def differ(here: Collection, there: Collection) -> list[object]:
    found = [(q, w) for q in QUERIES for w in WAYS if told(here.search(q, **w)) != told(there.search(q, **w))]
    alike = [id for id in ("d0", "d7", "d45") if told(here.similar(id)) != told(there.similar(id))]
    many = zip(here.search_many(QUERIES), there.search_many(QUERIES), strict=True)
    return [*found, *alike, *(one.query for one, other in many if told(one) != told(other))]


def test_the_hits_are_those_of_a_local_search(both: TwoWays, tmp_path: Path):
    there = gathered(both.sharded, fakes(both.folder / "sharded.sonde"))
    assert differ(both.sharded, there) == []
    assert there.ask("late parcel", threshold=0.1) == both.sharded.ask("late parcel", threshold=0.1)
    assert told(there.like("a red car", where="stars > 3")) == told(both.sharded.like("a red car", where="stars > 3"))
    assert "4 shards elsewhere" in there.search("red").strategy


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        ([Way(1_500), Way(0), Way(1)], "3 shards: exact scan of 1,501 passages"),
        ([Way(1, where=" on cuda:0")], "1 shard: exact scan of 1 passage on cuda:0"),
        ([Way(0), Way(None, "hnsw"), Way(None, "hnsw")], "3 shards: hnsw"),
        ([Way(7), Way(None, "hnsw", " on cuda:0")], "2 shards, the first: exact scan of 7 passages"),
        ([], "0 shards"),
    ],
)
def test_how_all_shards_were_searched_is_one_sentence(ways: list[Way], said: str):
    assert _described(len(ways), ways) == said


def test_this_process_loads_no_faiss_index(both: TwoWays):
    there = gathered(both.sharded, fakes(both.folder / "sharded.sonde"))
    there.search("red apple", where="stars > 1", rerank=True)
    info = there.info()
    assert info == both.sharded.info()
    assert info.ann
    with there.stored.view() as view:
        assert [part for part, _ in view.parts if "ann" in vars(part.generation)] == []


@pytest.mark.long
def test_replicas_follow_the_generations(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(60))
    there = gathered(both.sharded, fakes(tmp_path / "sharded.sonde"))
    for turn in range(2):
        both.index(rows(20, seed=turn, start=1000 * turn))
        assert differ(both.sharded, there) == []


@pytest.mark.long
@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_with_one_living_replica_of_each_shard_nothing_is_missing(both: TwoWays, living: list[int]):
    replicas = fakes(both.folder / "sharded.sonde", count=4)
    for shard, place in enumerate(living):
        for each in replicas[shard]:
            each.how = "answers" if each is replicas[shard][place] else "dead"
    there = gathered(both.sharded, replicas)
    for way in WAYS:
        found = there.search("red apple", **way)
        assert told(found) == told(both.sharded.search("red apple", **way))
        assert not found.partial


def dead(replicas: dict[int, list[FakeReplica]], *shards: int) -> None:
    for shard in shards:
        for each in replicas[shard]:
            each.how = "dead"


def shards_of(found: Results, both: TwoWays) -> set[int]:
    return {both.sharded.stored.sharding.shard_of(hit.id) for hit in found}  # type: ignore[attr-defined]


def test_a_result_without_a_shard_says_so(both: TwoWays):
    replicas = fakes(both.folder / "sharded.sonde")
    there = gathered(both.sharded, replicas)
    dead(replicas, 1)
    found = there.search("red apple", mode="dense", k=100, collapse=False)
    assert (found.partial, found.missing_shards) == (True, (1,))
    assert (
        f"{PARTIAL}: shard 01 did not answer, so its documents are missing; try again in a few seconds" in found.notes
    )
    assert shards_of(found, both) == {0, 2, 3}
    whole = told(both.sharded.search("red apple", mode="dense", k=400, collapse=False))
    kept = [hit for hit in whole if both.sharded.stored.sharding.shard_of(hit[0]) != 1]  # type: ignore[attr-defined]
    assert [hit[:3] for hit in told(found)] == [hit[:3] for hit in kept[:100]]
    dead(replicas, 3)
    found = there.search("red apple", k=100, collapse=False)
    assert found.missing_shards == (1, 3)
    assert any(
        "shards 01, 03 did not answer, so their documents are found by their words only" in n for n in found.notes
    )
    assert shards_of(found, both) == {0, 1, 2, 3}
    assert not there.search("red apple", mode="lexical").partial
    assert any(note.startswith(PARTIAL) for note in there.ask("red apple").notes)
    for some in replicas.values():
        for each in some:
            each.how = "answers"
    assert differ(both.sharded, there) == []


@pytest.mark.parametrize("way", WAYS)
def test_without_any_shard_a_search_still_ends(both: TwoWays, way: dict[str, object]):
    replicas = fakes(both.folder / "sharded.sonde")
    there = gathered(both.sharded, replicas)
    dead(replicas, 0, 1, 2, 3)
    found = there.search("red apple", **way)  # type: ignore[arg-type]
    assert found.partial == (way.get("mode") != "lexical")
    assert not any("no document" in note for note in found.notes)
    assert told(there.similar("d0")) == []


def test_what_cannot_say_that_it_is_partial_fails(both: TwoWays):
    replicas = fakes(both.folder / "sharded.sonde")
    there = gathered(both.sharded, replicas)
    dead(replicas, 2)
    with pytest.raises(SondeError, match="1 shard did not answer: try again in a few seconds"):
        best_documents(there.stored, "red apple", 5)
    dead(replicas, 3)
    with pytest.raises(SondeError, match="2 shards did not answer"):
        best_documents(there.stored, "red apple", 5)

"""The late index of a sharded collection: the tokens and the reranked scores of one collection."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from two_ways import QUERIES, TwoWays, differences, rows, told

from sonde.app.api import Collection, index
from sonde.indexer.sharded.generations import newest_generation
from sonde.indexer.sharded.objects import LocalTruth

COUNT = 600


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> TwoWays:
    made = TwoWays(tmp_path_factory.mktemp("late"))
    made.index(rows(COUNT))
    reports = [each.late() for each in (made.one, made.sharded)]
    assert reports[0].covered == reports[1].covered == reports[0].passages
    return made


def reranked(collection: Collection) -> list[Any]:
    return [told(collection.search(query, k=30, rerank=True, collapse=False)) for query in QUERIES]


def number(both: TwoWays) -> int:
    folder = both.folder / "sharded.sonde"
    found = newest_generation(LocalTruth(folder), folder)
    return found.number if found else 0


def test_reranked_scores_are_those_of_one_collection(both: TwoWays):
    assert differences(both) == []
    with both.sharded.stored.view() as view:
        assert view.late is not None
        assert view.late.covered(len(view.generation.alive)).all()
    assert both.sharded.verify() == []


def test_info_and_the_report_count_all_shards(both: TwoWays):
    one, sharded = both.one.info().late, both.sharded.info().late
    assert one and sharded
    assert [sharded[name] for name in ("passages", "covered")] == [one[name] for name in ("passages", "covered")]
    assert abs(sharded["bytes_per_passage"] - one["bytes_per_passage"]) <= 1
    before = number(both)
    assert both.sharded.late().embedded == 0
    assert number(both) == before


def test_later_runs_keep_it_up_to_date(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(COUNT))
    both.one.late()
    both.sharded.late()
    both.index(rows(80, seed=3, start=COUNT - 20))
    both.delete([f"d{n}" for n in range(5, 40)])
    assert reranked(both.one) == reranked(both.sharded)
    for each in (both.one, both.sharded):
        each.compact()
        found = each.info().late
        assert found
        assert found["covered"] == found["passages"]
    assert reranked(both.one) == reranked(both.sharded)
    assert both.sharded.verify() == []


def test_a_shard_that_gets_its_first_documents_learns_nothing_of_its_own(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(1))
    shard_of = both.sharded.stored.sharding.shard_of  # type: ignore[attr-defined]
    kept = [each for each in rows(2_000) if shard_of(each["id"]) != 2][:COUNT]
    both.index(kept)
    both.one.late()
    both.sharded.late()
    both.index([each for each in rows(2_000, seed=5) if shard_of(each["id"]) == 2][:50])
    assert reranked(both.one) == reranked(both.sharded)


def test_built_by_the_index_run_itself(tmp_path: Path):
    encoder: Any = FakeEncoder()
    one = index(rows(COUNT), tmp_path / "one.sonde", encoder=encoder, late=True)
    sharded = index(rows(COUNT), tmp_path / "s.sonde", encoder=encoder, late=True, shards=3)
    assert reranked(one) == reranked(sharded)


def test_removed(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(COUNT))
    both.sharded.late()
    before = number(both)
    assert both.sharded.late(remove=True).covered == 0
    assert number(both) == before + 1
    assert both.sharded.info().late is None
    assert not list((tmp_path / "sharded.sonde").glob(f"shards/*/{number(both):06d}-*/late"))
    assert reranked(both.one) == reranked(both.sharded)


def test_too_few_tokens(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(20))
    assert both.sharded.late().covered == 0
    assert both.sharded.info().late is None
    assert not (tmp_path / "sharded.sonde" / "work").exists()

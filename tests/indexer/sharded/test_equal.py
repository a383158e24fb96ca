"""A sharded collection gives the hits of one collection: ids, scores, relevance, excerpts, tokens reranked, ties."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from two_ways import QUERIES, TwoWays, differences, rows, told

from sonde.app.api import Collection, index
from sonde.indexer.sharded.collection import ShardedCollection
from sonde.indexer.sharded.generations import newest_generation
from sonde.indexer.sharded.objects import LocalTruth


@pytest.mark.long
def test_search_after_updates_and_deletes(tmp_path: Path):
    both = TwoWays(tmp_path)
    given = rows(300)
    both.index(given)
    assert isinstance(both.sharded.stored, ShardedCollection)
    assert len(both.sharded.stored.shards) == 4
    assert differences(both) == []
    for row in given[10:40]:
        row["text"] += " tree house"
    both.index(given[10:40] + rows(20, seed=1, start=1000))
    assert differences(both) == []
    both.delete([row["id"] for row in given[50:90]])
    assert differences(both) == []
    both.index(given[:200], sync=True)
    assert differences(both) == []
    assert len(both.sharded) == 200
    assert both.sharded.verify() == []


@pytest.mark.long
@settings(max_examples=5)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 2**16))
def test_search_in_any_small_collection(tmp_path_factory, count: int, shards: int, seed: int):
    chance = random.Random(seed)
    both = TwoWays(tmp_path_factory.mktemp("any"), shards)
    given = rows(count, seed)
    both.index(given)
    changed = chance.sample(given, max(1, count // 5))
    for row in changed:
        row["text"] = "new " + row["text"]
    both.index(changed)
    if count > 3:
        both.delete([row["id"] for row in chance.sample(given, count // 3)])
    assert differences(both, chance.sample(QUERIES, 3)) == []


def test_texts_without_ids_get_the_same_ids(tmp_path: Path):
    both = TwoWays(tmp_path, 3)
    texts = ["red apple", "red apple", "blue car", "red apple", "green tree"]
    both.index([{"text": text, "stars": place} for place, text in enumerate(texts)])
    assert {row["id"]: row["text"] for row in both.one.rows()} == {
        row["id"]: row["text"] for row in both.sharded.rows()
    }
    assert differences(both) == []


def test_similar_like_get_count_and_export(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(120))
    one, sharded = both.one, both.sharded
    for id in ("d0", "d7", "d119"):
        assert told(one.similar(id)) == told(sharded.similar(id))
        assert one.get(id).text == sharded.get(id).text
        assert one.best_passage(id, "apple") == sharded.best_passage(id, "apple")
    assert told(one.like("a red car", where="stars > 3")) == told(sharded.like("a red car", where="stars > 3"))
    assert one.count_by("stars", "stars > 1").values == sharded.count_by("stars", "stars > 1").values
    assert one.matching("stars = 3")[0] == sharded.matching("stars = 3")[0]
    assert one.fields() == sharded.fields() == {"stars": "integer"}
    assert one.counts() == sharded.counts()
    exported = [
        sorted(({**row, "vector": row["vector"].tolist()} for row in each.rows(vectors=True)), key=str)
        for each in (one, sharded)
    ]
    assert exported[0] == exported[1]
    assert one.export(tmp_path / "one.parquet") == sharded.export(tmp_path / "sharded.parquet") == 120


def test_a_column_whose_type_changes_in_one_shard_changes_in_all(tmp_path: Path):
    both = TwoWays(tmp_path)
    both.index(rows(80))
    both.index([{"id": "odd", "text": "odd one", "stars": "many", "colour": "red"}])
    assert both.one.fields() == both.sharded.fields() == {"stars": "text", "colour": "text"}
    for where in ("stars = '3'", "stars = 'many'", "colour = 'red'", "colour IS NULL"):
        assert both.one.matching(where)[0] == both.sharded.matching(where)[0]
    assert both.sharded.verify() == []


def test_embeddings_and_row_order_are_those_of_one_collection(tmp_path: Path):
    both = TwoWays(tmp_path)
    given = rows(150)
    both.index(given)
    for row in given[::7]:
        row["text"] += " again"
    both.index(given[::7])
    with both.one.stored.view() as one, both.sharded.stored.view() as sharded:
        every = np.arange(len(one.generation.owners))
        assert np.array_equal(one.generation.alive, sharded.generation.alive)
        assert np.array_equal(one.generation.segments.read(every), sharded.generation.segments.read(every))
        chunks = [vectors for _, vectors in sharded.generation.segments.chunks(64)]
        assert np.array_equal(np.concatenate(chunks), one.generation.segments.read(every))


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


@pytest.mark.long
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

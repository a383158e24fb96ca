"""Clusters, topics, labels and all other runs over shards are those of one collection of the same documents."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import themes
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_runs import both_say, disagreeing, stored_runs
from thinned import thinned
from two_ways import TwoWays

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.duplicates import pairs

LABELS = ("parcel", "battery", "screen", "refund")
Do = Callable[[Collection], Any]


@pytest.fixture
def both(tmp_path: Path) -> TwoWays:
    """100 documents of four themes, and two that repeat others."""
    ways = TwoWays(tmp_path, shards=3)
    given = themes.rows(25)
    ways.index([*given, {**given[3], "id": "copy"}, {**given[7], "id": "loud", "text": given[7]["text"].upper()}])
    return ways


def do(both: TwoWays, *actions: Do) -> None:
    """Do the same with both."""
    for action in actions:
        for collection in (both.one, both.sharded):
            action(collection)


RUNS: dict[str, Do] = {
    "cluster": lambda c: c.cluster("k", k=4),
    "choice of k": lambda c: c.cluster("auto", k="auto"),
    "density": lambda c: c.cluster("dense", method="density"),
    "labels": lambda c: c.label(LABELS, name="l"),
    "labels of some": lambda c: c.label(LABELS[:2], name="some", where="stars > 2"),
    "tag": lambda c: c.tag("late", where="stars <= 1"),
    "tag by id": lambda c: c.tag("two", ids=["parcel-3", "copy"]),
    "topics": lambda c: c.topics("t"),
    "map": lambda c: c.map("m"),
    "check": lambda c: c.check("look", label="theme"),
    "watch": lambda c: c.watch("2024-04-01", date="day"),
}


@pytest.mark.parametrize("name", thinned([*RUNS], 3))
def test_a_run_is_that_of_one_collection(both: TwoWays, name: str):
    do(both, RUNS[name])
    assert disagreeing(both.one, both.sharded) == []
    [run, *_] = stored_runs(both.sharded).values()
    assert run["documents"] > 1 or run["report"]["old"] == 78
    assert both.sharded.verify() == []


FOUR: tuple[Do, ...] = (RUNS["cluster"], RUNS["labels"], RUNS["tag"], RUNS["map"])


def test_filters_facets_counts_and_exports_know_the_runs(both: TwoWays, tmp_path: Path):
    do(both, *FOUR)
    one, sharded = both.one, both.sharded
    for where in (
        '"cluster:k" = 2', "\"label:l\" = 'parcel' AND stars > 1", '"tag:late"', 'NOT "tag:late"',
        "\"cluster:k name\" ILIKE '%parcel%'", "\"label:l\" IN ('screen', 'refund') OR \"cluster:k\" = 0",
    ):  # fmt: skip
        found = both_say(one, sharded, lambda c, where=where: [h.id for h in c.search("late", k=99, where=where)])
        assert 0 < len(found) < 102
    assert both_say(one, sharded, lambda c: c.count_by("cluster:k", "\"label:l\" = 'screen'")).documents == 25
    both_say(one, sharded, lambda c: c.facets())
    both_say(one, sharded, lambda c: c.explain_filter("\"label:l\" = 'parcels'"))
    assert list(one.rows()) == list(sharded.rows())
    for suffix in ("csv", "jsonl", "parquet"):
        paths = [tmp_path / f"{name}.{suffix}" for name in ("one", "sharded")]
        assert [c.export(path) for c, path in zip((one, sharded), paths, strict=True)] == [102, 102]
        assert paths[0].read_bytes() == paths[1].read_bytes()
    assert "label:l,label:l probability,tag:late,x,y" in (tmp_path / "sharded.csv").read_text().splitlines()[0]


@pytest.mark.long
def test_runs_after_updates_deletes_and_compact(both: TwoWays):
    do(both, *FOUR, RUNS["topics"])
    rows = themes.rows(25)
    for row in rows[5:15]:
        row["text"] += " money"
    both.index([*rows[3:20], *themes.rows(3, first=100)])
    assert disagreeing(both.one, both.sharded) == []
    assert stored_runs(both.sharded)["cluster:k"]["documents"] == 92
    both.delete([row["id"] for row in rows[20:30]])
    assert disagreeing(both.one, both.sharded) == []
    both.index(rows[:80], sync=True)
    assert disagreeing(both.one, both.sharded) == []
    removed = [collection.compact().removed for collection in (both.one, both.sharded)]
    assert removed[0] == removed[1] > 30
    assert both.sharded.info().tombstones == 0
    do(both, lambda c: c.update_clusters("k"), lambda c: c.update_map("m"), lambda c: c.topic_run("t").update())
    do(both, lambda c: c.cluster("again", k=3))
    assert disagreeing(both.one, both.sharded) == []
    assert list(both.one.rows(vectors=False)) == list(both.sharded.rows(vectors=False))
    assert both.sharded.verify() == both.one.verify() == []


def test_documents_have_the_order_of_one_collection(tmp_path: Path):
    """Also if some were replaced and others deleted and added again, in runs of different sizes."""
    both, chance = TwoWays(tmp_path, 3), random.Random(4)
    given = themes.rows(10)
    for number in range(3):
        some = chance.sample(given, 15)
        both.index([{**row, "text": f"{row['text']} {number}"} for row in some])
        both.delete([row["id"] for row in chance.sample(some, 3)])
    assert [row["id"] for row in both.one.rows()] == [row["id"] for row in both.sharded.rows()]


def test_runs_are_listed_renamed_and_deleted(both: TwoWays):
    do(both, *FOUR, RUNS["topics"])
    do(both, lambda c: c.rename_run("k", "first"), lambda c: c.rename_run("first", "lost ones", item=0))
    do(both, lambda c: c.delete_run("late"), lambda c: c.rename_run("t", "subjects"))
    assert disagreeing(both.one, both.sharded) == []
    names = both_say(both.one, both.sharded, lambda c: [(run.kind, run.name, run.documents) for run in c.runs()])
    assert names == [("cluster", "first", 102), ("label", "l", 102), ("map", "m", 102), ("topic", "subjects", 102)]
    for collection in (both.one, both.sharded):
        with pytest.raises(SondeError, match="there is no run 'late' in this collection"):
            collection.delete_run("late")
        with pytest.raises(UsageError, match="the cluster run 'first' already exists"):
            collection.cluster("first", k=2)


def duplicates(collection: Collection, **options: Any) -> list[Any]:
    """What a search for duplicates finds, without the time it took."""
    found = collection.duplicates(**options)
    return [found.groups, found.pairs, found.documents]


QUESTIONS: dict[str, Do] = {
    "members": lambda c: [(hit.id, hit.score) for hit in c.members("k", 1, k=50)],
    "members that pass a filter": lambda c: [hit.id for hit in c.members("k", 1, where="stars > 1", k=50)],
    "sizes that pass a filter": lambda c: c.item_sizes(c.newest_run("cluster").run, "stars > 1"),
    "breakdown of some": lambda c: c.breakdown("k", "day", where="stars > 1").counts.tolist(),
    "two columns": lambda c: c.cross_by("theme", "cluster:k", mean_of="stars"),
    "evaluate labels": lambda c: c.evaluate_labels("l", "theme"),
    "evaluate clusters": lambda c: c.evaluate_clusters("k", "theme"),
    "compare": lambda c: c.contrast(["stars <= 1", "stars > 1"]),
    "compare runs": lambda c: c.compare_runs("k", "t"),
    "breakdown": lambda c: c.breakdown("k", "day").counts.tolist(),
    "topics over time": lambda c: c.topic_run("t").over("day").counts.tolist(),
    "tree": lambda c: c.topic_run("t").tree(),
    "near": lambda c: [(item.name, cosine) for item, cosine in c.clusters_near("battery", "k")],
    "unsure": lambda c: c.unsure("l"),
    "to confirm": lambda c: c.to_confirm("l"),
    "try labels": lambda c: c.try_labels(LABELS, count=30).counts,
    "classify": lambda c: c.classify(["a late parcel", "money back"], LABELS),
    "duplicates": lambda c: duplicates(c),
    "newest": lambda c: duplicates(c, keep="newest", date="day"),
    "longest": lambda c: duplicates(c, keep="longest", pairs=3),
    "table": lambda c: [(column.name, column.values.tolist()) for column in c.table().columns],
    "selection": lambda c: len(c.select({"mode": "all", "parts": []})),
    "memberships": lambda c: [(each.run.name, each.name, each.score) for each in c.memberships("parcel-3")],
    "example queries": lambda c: c.example_queries(),
    "model warning": lambda c: c.model_warning(),
    "uncounted": lambda c: [run.name for run in c.uncounted_runs()],
}


def test_what_analysis_answers(both: TwoWays):
    do(both, *FOUR, RUNS["topics"])
    for name, ask in QUESTIONS.items():
        assert ask(both.one) == ask(both.sharded), name


def test_corrections_and_judgements(both: TwoWays):
    do(both, RUNS["labels"])
    do(both, lambda c: c.correct({"parcel-3": "battery", "parcel-4": "screen"}, "l"))
    do(both, lambda c: c.forget_corrections(["parcel-4"], "l"), lambda c: c.label(LABELS, name="l", replace=True))
    assert disagreeing(both.one, both.sharded) == []
    assert both_say(both.one, both.sharded, lambda c: [(each.id, each.labels) for each in c.corrections("l")])
    do(both, lambda c: c.judge("late parcel", ["parcel-1", "parcel-2"]))
    assert both_say(both.one, both.sharded, lambda c: c.judgements().qrels)
    assert both.sharded.verify() == []


def test_a_taxonomy_is_edited_undone_and_exported(both: TwoWays):
    do(both, RUNS["cluster"], lambda c: c.make_taxonomy("k", name="tree"))
    do(both, lambda c: c.edit_taxonomy("rename", groups=["0"], name="parcels"))
    do(both, lambda c: c.edit_taxonomy("merge", groups=["1", "2"]), lambda c: c.undo_taxonomy())
    do(both, lambda c: c.edit_taxonomy("move", ids=["parcel-3"], to="1"), lambda c: c.refit_taxonomy())
    assert _apart_from_the_log(both.one) == _apart_from_the_log(both.sharded)
    assert both_say(both.one, both.sharded, lambda c: [entry.operation for entry in c.taxonomy_log()])
    assert "parcel-3" in both_say(both.one, both.sharded, lambda c: c.export_taxonomy("documents"))


def _apart_from_the_log(collection: Collection) -> dict[str, Any]:
    """The log has the time of each edit."""
    return {name: run for name, run in stored_runs(collection).items() if not name.startswith("edit:")}


def test_large_collections_ask_the_indexes_for_duplicates(both: TwoWays, monkeypatch: pytest.MonkeyPatch):
    """Here, these compare everything, so nothing is missed."""
    exact = duplicates(both.one, pairs=5)
    assert len(exact[0]) > 3
    monkeypatch.setattr(pairs, "EXACT_BELOW", 10)
    assert duplicates(both.sharded, pairs=5) == exact


def test_tuned_settings_are_stored_and_forgotten(both: TwoWays, tmp_path: Path):
    queries, qrels = tmp_path / "q.jsonl", tmp_path / "qrels.tsv"
    asked = [
        (f"q{number}", f"{theme} {word}") for number, theme in enumerate(themes.THEMES) for word in ("late", "bad")
    ]
    asked = [(f"{key}{place}", text) for place, (key, text) in enumerate(asked * 4)]
    queries.write_text("".join(f'{{"_id": "{key}", "text": "{text}"}}\n' for key, text in asked))
    lines = [f"{key}\t0\t{text.split()[0]}-{place % 25}\t1\n" for place, (key, text) in enumerate(asked)]
    qrels.write_text("".join(lines))
    do(both, lambda c: c.tune_search(queries=queries, qrels=qrels))
    tuned = both_say(both.one, both.sharded, lambda c: c.search_defaults().chosen)
    do(both, lambda c: c.forget_tuning())
    assert both_say(both.one, both.sharded, lambda c: c.search_defaults().chosen) == {}
    assert isinstance(tuned, dict)


@pytest.mark.long
@settings(max_examples=3)
@given(st.integers(5, 60), st.integers(1, 6), st.integers(0, 2**16))
def test_any_small_collection(tmp_path_factory, count: int, shards: int, seed: int):
    chance = random.Random(seed)
    both = TwoWays(tmp_path_factory.mktemp("any"), shards)
    given = chance.sample(themes.rows(15), count)
    both.index(given)
    do(both, lambda c: c.cluster("k", k=2), lambda c: c.tag("some", where="stars <= 2"))
    both.index([{**row, "text": f"new {row['text']}"} for row in chance.sample(given, count // 5)])
    if count > 10:
        both.delete([row["id"] for row in chance.sample(given, count // 3)])
    do(both, lambda c: c.compact(), lambda c: c.cluster("k", k=3, replace=True), lambda c: c.map("m"))
    assert disagreeing(both.one, both.sharded) == []
    assert list(both.one.rows()) == list(both.sharded.rows())
    assert both.sharded.verify() == []


def test_a_number_tells_the_shard_and_the_order(both: TwoWays):
    with both.one.stored.view() as one, both.sharded.stored.view() as sharded:
        keys = {id: one.document_number(id) for id in ("parcel-0", "screen-9", "loud")}
        numbers = {id: sharded.document_number(id) for id in keys}
        owners = sharded.generation.owners
        assert np.array_equal(sharded.generation.owned_by(np.array([numbers["loud"]])), owners == numbers["loud"])
    assert sorted(keys, key=keys.get) == sorted(numbers, key=numbers.get)  # type: ignore[arg-type]
    sharding = both.sharded.stored.sharding  # type: ignore[attr-defined]
    assert {id: number % 3 for id, number in numbers.items() if number is not None} == {
        id: sharding.shard_of(id) for id in numbers
    }

"""Levels of topics as runs: read under names of their own, updated and deleted with the topics."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Command, command, inject, problems
from extras import needs
from fake_encoder import FakeEncoder
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError
from sonde.indexer.store.kinds import COARSE, FINE, LEVELS, MIDDLE, TOPIC
from sonde.indexer.store.runs import Item, RunColumns, list_runs
from sonde.pipelines.evaluate.groups import evaluate_clusters
from sonde.pipelines.topics.fit import near_level
from sonde.pipelines.topics.levels import _names_inside

pytestmark = needs("bertopic", "evoc")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    made = collection(tmp_path_factory.mktemp("levels") / "shop.sonde", rows())
    made.topics()
    return made


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def test_a_run_has_three_levels_and_the_suggested_one_is_its_own(shop: Collection) -> None:
    topics = shop.topic_run()
    assert topics.suggested == topics.level == "coarse"
    assert topics.levels["coarse"] == 4 == len(topics)
    assert list(topics.levels) == ["coarse", "middle", "fine"]
    assert [run.kind for run in shop.runs()] == [TOPIC]  # one run; its levels are parts
    assert [(run.kind, run.name) for kind in LEVELS for run in shop.runs(kind)] == [
        (COARSE, "topics"), (MIDDLE, "topics"), (FINE, "topics")
    ]  # fmt: skip
    fine, middle = shop.topic_run("fine:topics"), shop.topic_run("middle:topics")
    assert sum(topic.size for topic in fine) == sum(topic.size for topic in topics) == 120
    for topic in fine:
        members = {found.id for found in fine.documents(topic.number, 200)}
        assert topic.parent is not None
        assert members <= {found.id for found in middle.documents(topic.parent, 200)}
    own = {topic.number: {found.id.split("-")[0] for found in topics.documents(topic.number, 200)} for topic in topics}
    assert sorted(len(themes) for themes in own.values()) == [1] * 4
    inside = topics.inside()
    assert all(sum(part.size for part in parts) == topics.topic(number).size for number, parts in inside.items())
    with pytest.raises(UsageError, match="fine:topics is a level of the topic run 'topics': change that run"):
        fine.merge([0, 1])


def test_levels_are_columns_of_filters_and_exports(shop: Collection) -> None:
    fine = shop.topic_run("fine:topics")
    wanted = {found.id for found in fine.documents(0, 200)}
    assert {hit.id for hit in shop.search("parcel battery screen refund", k=200, where='"fine:topics" = 0')} == wanted
    with shop.stored.view() as view:
        types = RunColumns(view.catalog).types
    assert {name: types[name] for name in ("topic:topics", "coarse:topics", "middle:topics name", "fine:topics")} == {
        "topic:topics": "integer", "coarse:topics": "integer", "middle:topics name": "text", "fine:topics": "integer"
    }  # fmt: skip
    assert {each.id for each in shop.assignments("fine:topics") if each.number == 0} == wanted
    assert {each.id for each in shop.members("topics", 0, "fine", k=200)} == wanted
    assert evaluate_clusters(shop.stored, "fine:topics", "theme").clusters == len(fine)
    over = fine.over("day", "month")
    assert over.counts.sum() == 120 and len(over.counts) == len(fine)


def test_levels_are_updated_renamed_replaced_and_deleted_with_their_run(tmp_path: Path) -> None:
    made = collection(tmp_path / "c.sonde", rows())
    made.topics()
    before = {each.id: each.number for each in made.assignments("fine:topics")}
    made.rename_run("topics", "my own name", kind="fine", item=0)
    collection(made.path, rows() + rows(5, first=100))
    assert made.topic_run().update().newer == 0
    after = {each.id: each.number for each in made.assignments("fine:topics")}
    assert len(after) == 140 and {key: after[key] for key in before} == before
    assert made.topic_run("fine:topics").topic(0).name == "my own name"
    assert {"clear", "equal"} <= made.topic_run().run.report.keys()
    merged = made.topic_run().merge([0, 1])
    assert not {"clear", "equal"} & merged.run.report.keys()  # they are about the number before
    assert repr(merged) == f"Topics('topics', 3 topics, {merged.run.documents} documents)"
    assert len(merged) == 3 and len(made.topic_run("coarse:topics")) == 4  # levels stay as they were found
    made.topics(replace=True, level="fine")
    assert len(made.topic_run()) == len(made.topic_run("fine:topics")) and made.topic_run().level == "fine"
    made.rename_run("topics", "subjects")
    assert made.topic_run("middle:subjects").name == "middle:subjects"
    for change in (lambda: made.delete_run("subjects", kind="fine"), lambda: made.rename_run("fine:subjects", "x")):
        with pytest.raises(UsageError, match="the fine run 'subjects' is a part of the topic run 'subjects'"):
            change()
    made.topics("subjects", replace=True, min_size=10)
    with pytest.raises(SondeError, match="there is no fine run 'subjects'"):
        made.topic_run("fine:subjects")
    made.delete_run("subjects")
    with made.stored.view() as view:
        assert list_runs(view.catalog) == []
    assert problems(made.path) == []


def test_copies_of_one_text_share_a_group_at_every_level(tmp_path: Path) -> None:
    same = [{"id": f"copy-{n}", "text": "battery voltage parcel refund", "theme": "", "stars": 0} for n in range(50)]
    made = collection(tmp_path / "c.sonde", rows() + same)
    made.topics(outliers="keep")
    for level in ("topics", "coarse:topics", "middle:topics", "fine:topics"):
        numbers = {each.number for each in made.assignments(level) if each.id.startswith("copy")}
        assert len(numbers) == 1


@pytest.mark.parametrize(("count", "distinct"), [(3, 3), (50, 1), (29, 29)])
def test_fewer_texts_than_evoc_needs_are_looked_at_for_dense_topics(
    tmp_path: Path, sonde: Command, count: int, distinct: int
) -> None:
    made = [{"id": str(n), "text": f"word{n % distinct} alone{n % distinct}"} for n in range(count)]
    ran = sonde("topics", collection(tmp_path / "c.sonde", made).path)
    assert ran.code == 0, ran.err
    assert "levels:" not in ran.err
    assert "Traceback" not in ran.err


def test_many_topics_end_with_the_command_for_the_coarse_level(
    sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = collection(tmp_path / "c.sonde", rows())
    assert "shorter list" not in sonde("topics", made.path).err
    sonde("topics", made.path, "--name", "a b")
    monkeypatch.setattr("sonde.app.cli.topic.MANY", 4)
    ran = sonde("runs", "show", made.path, "fine:a b")
    last = f"fine:a b: for a shorter list, see the coarse level: sonde runs show {made.path} 'coarse:a b' (4)"
    assert ran.err.splitlines()[-1] == last
    assert "shorter list" not in sonde("runs", "show", made.path, "coarse:a b").err


def test_a_level_above_the_suggested_one_does_not_get_its_names() -> None:
    named: Any = {(0,): Item(0, "lamp", {"leaves": [0]}), (1, 2): Item(1, "kettle", {"leaves": [1, 2]})}
    model: Any = SimpleNamespace(levels=SimpleNamespace(suggested=1))
    coarse: Any = SimpleNamespace(groups={0: (0, 1, 2)})
    assert _names_inside(coarse, model, 0, named) == {"lamp", "kettle"}
    same: Any = SimpleNamespace(groups={0: (0,), 1: (1, 2)})
    assert _names_inside(same, model, 0, named) == frozenset(), "the same texts may have the same name"
    assert _names_inside(coarse, model, 1, named) == frozenset()


def test_the_command_line_shows_levels(sonde: Command, tmp_path: Path) -> None:
    made = collection(tmp_path / "c.sonde", rows())
    ran = sonde("topics", made.path)
    assert "levels: coarse 4 (suggested), middle " in ran.err
    assert ran.out.startswith("number      size  share accuracy  name\n     0 ")
    assert "topics: the suggested level is coarse (4 topics); finer levels are stored too: sonde runs show " in ran.err
    assert f"{made.path} fine:topics ({made.topic_run().levels['fine']})" in ran.err
    assert "is coarse" not in sonde("runs", "show", made.path, "fine:topics").err
    fine = [json.loads(line) for line in sonde("runs", "show", made.path, "fine:topics", "--json").out.splitlines()]
    assert sum(topic["size"] for topic in fine) == 120
    assert {topic["parent"] for topic in fine} <= set(range(len(made.topic_run("middle:topics"))))
    assert [
        json.loads(line)
        for line in sonde("runs", "show", made.path, "topics", "--kind", "fine", "--json").out.splitlines()
    ] == fine
    said = f"--reduce-to 900 gives 4 topics: the level coarse has no more; --level fine has {len(fine)}"
    few = sonde("topics", made.path, "--reduce-to", 900, "--name", "few")
    assert (few.code, said in few.err) == (0, True)
    said = f"--reduce-to 900 gives {len(fine)} topics: the run has no more groups"
    assert said in sonde("runs", "merge", made.path, "few", "--reduce-to", 900).err
    sonde("runs", "merge", made.path, "fine:topics", 0, 1).refused("is a level of the topic run", code=2)
    sonde("runs", "delete", made.path, "fine:topics").refused("is a part of the topic run", code=2)
    sonde("topics", made.path, "--method", "levels", "--min-size", 3).refused("--min-size is for dense groups", code=2)
    sonde("topics", made.path, "--level", "fine", "--min-size", 3).refused("dense groups have no levels", code=2)
    sonde("topics", made.path, "--method", "magic").refused("--method is 'magic': use auto, levels, dense", code=2)
    sonde("topics", made.path, "--level", "x").refused("--level is 'x': use suggested, coarse, middle, fine", code=2)


def test_without_evoc_one_line_says_what_to_install(shop: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evoc", None)
    with pytest.raises(MissingExtraError, match=r"levels of topics needs EVoC, .* pip install 'sonde\[topics\]'"):
        shop.topics("other")
    assert shop.topic_run("fine:topics").documents(0, 1)  # what is stored needs no EVoC


def test_about_how_many_topics_can_be_asked_for(sonde: Command, tmp_path: Path) -> None:
    made = collection(tmp_path / "c.sonde", rows())
    levels = made.topics("suggested", names="terms").levels
    assert levels["coarse"] == 4 < 5 < levels["fine"]
    five = made.topics("five", names="terms", about=5)
    assert (len(five), five.levels) == (5, levels)
    assert [topic.number for topic in five] == [0, 1, 2, 3, 4] and sum(topic.size for topic in five) == 120
    assert [topic.size for topic in five] == sorted((topic.size for topic in five), reverse=True)
    coarse = {leaf: topic.number for topic in made.topic_run("coarse:five") for leaf in topic.leaves}
    assert all(len({coarse[leaf] for leaf in topic.leaves}) == 1 for topic in five), "inside the coarse ones"
    shown = sonde("taxonomy", made.path, "--from", "five", "--flat", "--name", "flat")
    assert (shown.code, len(made.taxonomy("flat").groups)) == (0, len(five))
    assert len(made.make_taxonomy("five", "deep").groups) > len(five)
    ran = sonde("topics", made.path, "--about", 900, "--name", "many")
    assert f"many: a taxonomy also gets the levels; for only these {levels['fine']} topics: sonde taxonomy " in ran.err
    assert f"--about 900 gives {levels['fine']} topics: even the fine level has no more groups" in ran.err
    said = "--about chooses the level and the number of topics: leave out --reduce-to"
    sonde("topics", made.path, "--about", 7, "--reduce-to", 3).refused(said, code=2)
    sonde("topics", made.path, "--about", 7, "--level", "fine").refused("leave out --level", code=2)
    sonde("topics", made.path, "--about", 0).refused("--about is 0: give a whole number from 1", code=2)


def test_a_level_with_about_as_many_groups_is_taken_as_it_is() -> None:
    sizes = {"coarse": 6, "middle": 136, "fine": 243}
    assert near_level(6, sizes, "coarse") == ("coarse", None)
    assert near_level(130, sizes, "coarse") == ("middle", None)
    assert near_level(20, sizes, "coarse") == ("middle", 20), "merged from the next finer level"
    assert near_level(3, sizes, "coarse") == ("coarse", 3)
    assert near_level(900, sizes, "coarse") == ("fine", 900), "as many as there are"
    assert near_level(6, {"coarse": 6, "middle": 6, "fine": 15}, "middle") == ("middle", None)

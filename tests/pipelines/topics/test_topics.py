"""Topics: found, asked again, kept in number, and what is refused."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from command_line import Command, command, contents, inject, problems
from extras import needs
from fake_encoder import FakeEncoder
from other_threads import other_threads
from themes import THEMES, collection, rows
from themes_run import digest

from sonde.app.api import Collection
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError
from sonde.indexer.store.kinds import TOPIC
from sonde.indexer.store.run_writing import delete_run, rename_item
from sonde.indexer.store.runs import array_of, assignments_of, find_run, list_runs
from sonde.pipelines.analysis.corpus import Corpus
from sonde.pipelines.topics import Topics

pytestmark = needs("bertopic")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    made = collection(tmp_path_factory.mktemp("topics") / "shop.sonde", rows())
    made.topics(min_size=10)
    return made


@pytest.fixture
def own(tmp_path: Path) -> Collection:
    """A collection that a test may change."""
    made = collection(tmp_path / "own.sonde", rows())
    made.topics(min_size=10)
    return made


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def themes_of(topics: Topics) -> dict[str, int]:
    """The topic of each theme, if its documents are in it but for one in ten."""
    found = {}
    for topic in topics:
        themes = Counter(member.id.split("-")[0] for member in topics.documents(topic.number, 10_000))
        [(theme, count)] = themes.most_common(1)
        assert count >= 0.9 * themes.total(), (topic.name, themes)
        found[theme] = topic.number
    return found


def by_id(topics: Topics) -> dict[str, int]:
    with topics.collection.view() as view:
        run = find_run(view.catalog, TOPIC, topics.name)
        docs, numbers, _ = assignments_of(view.catalog, run)
        keys = {doc: view.documents([doc])[doc].id for doc in docs.tolist()}
    return {keys[doc]: number for doc, number in zip(docs.tolist(), numbers.tolist(), strict=True)}


def test_topics_are_the_themes(shop: Collection) -> None:
    topics = shop.topic_run()
    assert set(themes_of(topics)) == set(THEMES)
    assert [(topic.number, topic.size, topic.share) for topic in topics] == [(n, 30, 0.25) for n in range(4)]
    for theme, number in themes_of(topics).items():
        topic = topics.topic(number)
        assert {term for term, _ in topic.terms} <= {theme, *THEMES[theme].split()}
        assert topic.terms == tuple(sorted(topic.terms, key=lambda pair: (-pair[1], pair[0])))
        assert len(topic.representatives) == 5
        assert all(key.startswith(theme) for key in topic.representatives)
        assert set(topic.name.replace(",", "").split()) <= {theme, *THEMES[theme].split()}
        assert topic.keywords
    assert topics.run.report["fitted"] + topics.run.report["carried"] == topics.run.report["distinct"]
    assert topics.run.parameters["seed"] == 0


def test_asking_again_gives_every_document_its_topic(shop: Collection) -> None:
    topics = shop.topic_run()
    with shop.stored.view() as view:
        corpus = Corpus.of(view)
        docs, numbers, scores = assignments_of(view.catalog, topics.run)
        kept = array_of(view.catalog, topics.run, "probabilities")
    again = topics.model.assign(corpus.vectors)
    assert docs.tolist() == corpus.snapshot.docs.tolist()
    assert again.topics[corpus.group].tolist() == numbers.tolist()
    np.testing.assert_array_equal(again.cosines[corpus.group], scores)
    np.testing.assert_allclose(again.probabilities[corpus.group], kept, atol=1e-6)
    for place in range(0, len(corpus.vectors), 17):  # alone as in company
        assert topics.model.assign(corpus.vectors[place : place + 1]).topics[0] == again.topics[place]
    known = by_id(topics)
    texts = {row["id"]: row["text"] for row in rows()}
    answers = topics.of(list(texts.values()))
    assert [answer.topic for answer in answers] == [known[key] for key in texts]


@pytest.mark.long
def test_the_same_topics_and_places_in_any_process_with_any_number_of_threads(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "support" / "themes_run.py"
    command = [sys.executable, script, tmp_path / "there.sonde"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=other_threads())
    here = [digest(tmp_path / "here.sonde"), digest(tmp_path / "again.sonde")]
    told = json.loads(started.communicate()[0].splitlines()[-1])
    assert {*here, told["digest"]} == {here[0]}
    assert (told["silenced"], told["handlers"], told["heavy"]) == ([], 0, False)
    assert told["parts"] == ["MultiModalBackend", "TextGeneration", "ZeroShotClassification"]


def test_new_documents_get_a_topic_and_nothing_else_changes(own: Collection) -> None:
    before, themes = by_id(own.topic_run()), themes_of(own.topic_run())
    collection(own.path, rows() + rows(5, first=100))
    assert own.topic_run().newer == 20
    after = own.topic_run().update()
    assert after.newer == 0
    assert {key: topic for key, topic in by_id(after).items() if key in before} == before
    assert all(by_id(after)[f"{theme}-{n}"] == topic for theme, topic in themes.items() for n in range(100, 105))
    assert [topic.size for topic in after] == [35] * 4


def test_numbers_stay_when_a_run_is_made_again_on_a_grown_collection(own: Collection) -> None:
    before = themes_of(own.topic_run())
    rename_item(own.stored, own.topic_run().run, before["refund"], "money back")
    grown = {"camera": "camera lens focus zoom shutter tripod photo"}
    collection(own.path, rows() + rows(60, grown) + rows(20, {"battery": THEMES["battery"]}, first=500))
    again = own.topics(min_size=10, replace=True)
    after = themes_of(again)
    assert {theme: after[theme] for theme in before} == before
    assert after["camera"] == 4
    assert again.topic(after["refund"]).name == "money back"
    other = own.topics("other", min_size=10, match="topics")
    assert themes_of(other) == after


def test_outliers_are_kept_apart_or_put_in_the_nearest_topic(tmp_path: Path, sonde: Command) -> None:
    made = collection(tmp_path / "c.sonde", [*rows(), {"id": "odd", "text": "zebra quantum", "theme": "", "stars": 1}])
    assert by_id(made.topics("near", min_size=10))["odd"] >= 0
    said: list[object] = []
    kept = made.topics("keep", min_size=10, outliers="keep", names="terms", reduce_to=9, progress=said.append)
    assert "reduce_to 9 gives 4 topics: there are no more dense groups (try a smaller min_size)" in said
    assert by_id(kept)["odd"] == -1
    assert kept.outliers == sum(number < 0 for number in by_id(kept).values()) < 20
    assert "odd" in {member.id for member in kept.documents(-1, 100)}
    assert kept.of(["zebra quantum"])[0].topic == -1
    ran = sonde("topic", made.path, -1, "--run", "keep", "-k", 100, "--json")
    assert "odd" in {json.loads(line)["id"] for line in ran.out.splitlines()}
    sonde("topic", made.path, "-1", "--nope").refused("Got unexpected extra argument(s) (--nope)", code=2)


def test_topics_are_merged_split_and_reduced(own: Collection) -> None:
    topics, themes = own.topic_run(), themes_of(own.topic_run())
    merged = topics.merge([themes["parcel"], themes["refund"]])
    assert [topic.number for topic in merged] == sorted({0, 1, 2, 3} - {themes["refund"]})
    assert merged.topic(themes["parcel"]).size == 60
    kept = {topic.number: topic.name for topic in topics}
    assert merged.topic(themes["screen"]).name == kept[themes["screen"]]
    parts = merged.split(themes["parcel"])
    assert sorted(topic.size for topic in parts) == [30] * 4
    two = parts.reduce(2)
    assert len(two) == 2
    assert sum(topic.size for topic in two) == 120
    assert len(two.reduce(10)) == 4
    assert [change.popitem()[0] for change in two.run.parameters["changes"]] == ["merge", "split", "reduce_to"]
    with pytest.raises(SondeError, match="there is no topic 9: there are"):
        two.merge([9, two[0].number])
    with pytest.raises(SondeError, match="single dense group"):
        two.reduce(4).split(two.reduce(4)[0].number)
    nodes = two.tree()
    assert [node.level for node in nodes] == [4, 3, 2]
    assert sorted(node.distance for node in nodes) == [node.distance for node in nodes]


def test_identical_texts_never_fall_apart(tmp_path: Path) -> None:
    same = [{"id": f"copy-{n}", "text": "battery voltage parcel refund", "theme": "", "stars": 0} for n in range(25)]
    made = collection(tmp_path / "c.sonde", rows() + same)
    for outliers in ("keep", "nearest"):
        found = by_id(made.topics(outliers, min_size=10, outliers=outliers, names="terms"))
        assert len({found[f"copy-{n}"] for n in range(25)}) == 1


def test_a_sample_is_fitted_and_the_rest_carried(tmp_path: Path) -> None:
    made = collection(tmp_path / "c.sonde", rows(60))
    topics = made.topics(min_size=8, sample=100, names="terms")
    assert topics.run.report["fitted"] == 100
    assert topics.run.report["carried"] == topics.run.report["distinct"] - 100
    assert set(themes_of(topics)) == set(THEMES)


def test_seed_words_bring_texts_together(own: Collection) -> None:
    guided = own.topics("guided", min_size=10, seed_words=(("parcel", "refund"),), names="terms")
    assert guided.run.parameters["seed_words"] == [["parcel", "refund"]]
    assert sum(topic.size for topic in guided) == 120


def test_topics_are_named_by_candidate_labels(own: Collection) -> None:
    labels = ("parcel", "screen: display glass", "battery")
    named = own.topics("named", min_size=10, labels=labels)
    themes = themes_of(named)
    names = {theme: named.topic(number).name for theme, number in themes.items()}
    assert {theme: names[theme] for theme in ("parcel", "screen", "battery")} == {
        "parcel": "parcel", "screen": "screen", "battery": "battery"
    }  # fmt: skip
    assert "refund" in names["refund"].replace(",", "").split()  # no label fits: its own terms
    items = {item.number: item.data for item in own.run("named").items}
    assert items[themes["parcel"]]["label"] == "parcel" and items[themes["parcel"]]["label_share"] >= 0.5
    assert items[themes["refund"]]["label"] is None
    parts = named.merge([themes["parcel"], themes["refund"]]).split(themes["parcel"])
    assert {"parcel", "screen", "battery"} < {topic.name for topic in parts} and len({t.name for t in parts}) == 4
    assert own.topics("plain", min_size=10).run.parameters.keys().isdisjoint({"labels", "engine"})


def test_topics_with_the_same_label_are_told_apart(own: Collection) -> None:
    named = own.topics("named", min_size=10, labels=("parcel refund", "battery screen"))
    assert sorted(topic.name.split(": ")[0] for topic in named) == ["battery screen"] * 2 + ["parcel refund"] * 2
    assert len({topic.name for topic in named}) == 4


def test_a_query_finds_its_topic(shop: Collection) -> None:
    topics = shop.topic_run()
    [(topic, cosine), *rest] = topics.search("battery voltage charge")
    assert topic.number == themes_of(topics)["battery"]
    assert len(rest) == 3
    assert cosine > rest[0][1] >= rest[-1][1]
    with pytest.raises(UsageError, match="the query is empty"):
        topics.search(" ")


def test_topics_over_time_and_by_class(shop: Collection) -> None:
    topics = shop.topic_run()
    over = topics.over("day", "month")
    assert over.parts == ("2024-01", "2024-02", "2024-03", "2024-04")
    assert over.counts.sum(axis=0).tolist() == [32, 32, 28, 28] == over.totals.tolist()
    assert over.rows()[0].keys() == {"topic", "name", "period", "documents", "share", "terms"}
    by = topics.by("theme")
    assert sorted(by.counts.max(axis=1).tolist()) == [30] * 4
    assert by.counts.sum() == 120
    with pytest.raises(
        UsageError, match=r"'theme' has no dates \('parcel' is not a date\); columns of dates here: day"
    ):
        topics.over("theme")
    with pytest.raises(UsageError, match="there is no metadata column 'date': there are theme, day, stars"):
        topics.over("date")
    with pytest.raises(UsageError, match=r"^period is .hour.: use year, quarter, month, week, day"):
        topics.over("day", "hour")  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "distinct"), [(3, 3), (40, 1)])
def test_too_few_texts_hold_no_topic(tmp_path: Path, sonde: Command, count: int, distinct: int) -> None:
    made = [{"id": str(n), "text": f"word{n % distinct} alone"} for n in range(count)]
    opened = collection(tmp_path / "c.sonde", made)
    ran = sonde("topics", opened.path)
    assert ran.code == 0, ran.err
    assert "texts lie close together: there is no topic" in ran.err
    assert set(by_id(opened.topic_run()).values()) == {-1}
    assert opened.topic_run().outliers == count
    assert sonde("topic", opened.path, "--tree").code == 0
    assert sonde("topic", opened.path, "--search", "word").code == 0
    sonde("topic", opened.path, 0).refused("there is no topic 0: there are none")


def test_an_interrupted_fit_leaves_nothing(own: Collection) -> None:
    before = contents(own.path)

    def interrupt(event: object) -> None:
        if "fitting" in str(event):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        own.topics("other", progress=interrupt)
    assert contents(own.path) == before
    assert problems(own.path) == []


def test_a_missing_library(own: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "bertopic"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "bertopic", None)
    with pytest.raises(MissingExtraError, match=r"topics needs BERTopic, .* pip install 'sonde\[topics\]'"):
        own.topics("other")
    assert own.topic_run().documents(0, 1)  # what is stored needs no BERTopic


MISTAKES = {
    "unknown outliers": (("topics", "--outliers", "drop"), ("'drop'", "keep, nearest")),
    "min size": (("topics", "--min-size", 1), ("--min-size is 1",)),
    "seed words": (("topics", "--seed-words", "a,;b"), ("seed words are empty",)),
    "update and replace": (("topics", "--update", "topics", "--replace"), ("--update",)),
    "one label": (("topics", "--name", "n", "--labels", "refund"), ("'refund' is the only label",)),
    "unknown engine": (("topics", "--labels", "a,b", "--engine", "magic"), ("'magic'", "similarity, nli")),
    "engine without labels": (("topics", "--engine", "nli"), ("--labels",)),
    "update and settings": (("topics", "--update", "topics", "--min-size", 9), ("--update",)),
    "two wishes": (("topic", "--tree", "--by", "theme"), ("one thing at a time: --tree or --by",)),
    "merge of one": (("topic", "--merge", "3"), ("two topics or more",)),
    "merge of words": (("topic", "--merge", "a,b"), ("'a,b'",)),
    "drawing nothing": (("topic", "--to", "x.png"), ("--tree",)),
    "drawing a pdf": (("topic", "--tree", "--to", "x.pdf"), ("'x.pdf'", ".html, .png or .svg")),
    "no dates": (("topic", "--over", "stars"), ("'stars' has no dates", "day")),
    "no class": (("topic", "--by", "nothing"), ("no metadata column 'nothing'", "theme, day, stars")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_changes_nothing(sonde: Command, shop: Collection, name: str) -> None:
    (first, *rest), words = MISTAKES[name]
    before = contents(shop.path)
    sonde(first, shop.path, *rest).refused(*words, code=2)
    assert contents(shop.path) == before


def test_what_is_not_there(sonde: Command, shop: Collection) -> None:
    sonde("topic", shop.path, 7).refused("there is no topic 7: there are 0, 1, 2, 3")
    sonde("topic", shop.path, "--run", "other").refused("there is no topic run 'other'", "topics")
    sonde("topics", shop.path, "--update", "other").refused("there is no topic run 'other'", "topics")
    sonde("topics", shop.path, "--name", "new", "--match", "other").refused("there is no topic run 'other'")


def test_the_command_line(sonde: Command, own: Collection) -> None:
    delete_run(own.stored, TOPIC, "topics")
    found = [json.loads(line) for line in sonde("topics", own.path, "--min-size", 10, "--json").out.splitlines()]
    assert [topic["number"] for topic in found] == [0, 1, 2, 3]
    assert {
        "run",
        "number",
        "name",
        "size",
        "share",
        "terms",
        "keywords",
        "representatives",
        "leaves",
        "parent",
        "name_accuracy",
    } == found[0].keys()
    ran = sonde("topic", own.path, 0, "-k", 3, "--json")
    assert [json.loads(line)["rank"] for line in ran.out.splitlines()] == [1, 2, 3]
    asked = (["--tree"], ["--over", "day"], ["--by", "theme"], ["--search", "battery"], ["--text", "parcel"], [0])
    for words in asked:
        assert sonde("topic", own.path, *words).out.strip(), words
    assert "4 topics · 120 documents" in sonde("topic", own.path).err
    assert sonde("topic", own.path, "--merge", "0,1").code == 0
    assert len(sonde("topic", own.path, "--json").out.splitlines()) == 3
    with own.stored.view() as view:
        assert [run.name for run in list_runs(view.catalog, TOPIC)] == ["topics"]
    assert problems(own.path) == []


def test_a_split_gives_merged_topics_back_with_their_numbers_and_names(own: Collection) -> None:
    own.rename_run("topics", "given by hand", item=1)
    before = {topic.number: (topic.name, topic.leaves, topic.size) for topic in own.topic_run()}
    merged = own.topic_run().merge([0, 1])
    assert 1 not in {topic.number for topic in merged}
    again = merged.merge([2, 0])  # a merged topic inside another one
    assert {topic.number for topic in again.split(2)} == {0, 2, 3}
    back = own.topic_run().split(0)
    assert {topic.number: (topic.name, topic.leaves, topic.size) for topic in back} == before
    merged = back.merge([0, 1]).update()  # what was merged is remembered when documents are added
    assert {topic.number: topic.name for topic in merged.split(0)} == {n: name for n, (name, *_) in before.items()}

"""Levels of topics: nested, the same whatever the number of threads, suggested by rule, read under their own names."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command_line import Command, command, inject, problems
from extras import needs
from fake_encoder import FakeEncoder
from other_threads import other_threads
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError
from sonde.indexer.store.kinds import COARSE, FINE, LEVELS, MIDDLE, TOPIC
from sonde.indexer.store.runs import Item, RunColumns, list_runs
from sonde.pipelines.analysis.describe import centroids
from sonde.pipelines.cluster.kmeans import nearest
from sonde.pipelines.evaluate.groups import evaluate_clusters
from sonde.pipelines.topics import adapter, layers
from sonde.pipelines.topics.grain import ALIKE, Contest, Grain, Suggestion
from sonde.pipelines.topics.layers import Layer, evoc_layers
from sonde.pipelines.topics.level_runs import _names_inside
from sonde.pipelines.topics.levels import _between, nested_levels, refined
from sonde.pipelines.topics.model import Levels, nearest_leaf, nested_leaves

pytestmark = needs("bertopic", "evoc")

SUBJECTS, KINDS, EACH = 6, 4, 40


def clouds(seed: int = 0, each: int = EACH) -> tuple[np.ndarray, np.ndarray]:
    """Directions of 24 kinds in 6 subjects, float32 [n, 32], and the kind of each, int64 [n]; subject = kind // 4."""
    random = np.random.default_rng(seed)
    subjects = random.normal(size=(SUBJECTS, 32))
    kinds = np.repeat(subjects, KINDS, axis=0) + 0.55 * random.normal(size=(SUBJECTS * KINDS, 32))
    labels = np.repeat(np.arange(len(kinds)), each)
    vectors = kinds[labels] + 0.35 * random.normal(size=(len(labels), 32))
    mixed = random.permutation(len(labels))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)[mixed], labels[mixed]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    made = collection(tmp_path_factory.mktemp("levels") / "shop.sonde", rows())
    made.topics()
    return made


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def test_levels_are_nested_and_find_the_subjects_and_their_kinds() -> None:
    from sklearn.metrics import adjusted_rand_score

    vectors, kinds = clouds()
    found = nested_levels(vectors, seed=0)
    coarse, middle, fine = (row[found.leaves] for row in found.levels)
    for finer, coarser in ((fine, middle), (middle, coarse)):
        parents = {(one, other) for one, other in zip(finer.tolist(), coarser.tolist(), strict=True)}
        assert len(parents) == len(set(finer.tolist()))  # a group has one parent
    best = max(adjusted_rand_score(kinds, level) for level in (coarse, middle, fine))
    assert best > 0.9
    assert adjusted_rand_score(kinds // KINDS, coarse) > 0.9
    assert found.why.clear
    assert found.why.grain.k in (SUBJECTS, SUBJECTS * KINDS)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_below_two_to_four_groups_the_middle_level_has_5_to_12(count: int) -> None:
    """It had more than 12, so that no level had 5 to 12."""
    vectors, kinds = clouds(each=12)
    contest = Contest(vectors, evoc_layers(vectors, 0), 0)
    parents = np.arange(SUBJECTS * KINDS) // KINDS % count
    middle = _between(contest, kinds, parents, count)
    assert 5 <= len(set(middle.tolist())) <= 12
    assert all(len(set(parents[middle == group].tolist())) == 1 for group in range(int(middle.max()) + 1))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_of_two_or_three_groups_the_middle_level_is_suggested(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """arXiv abstracts fell in two topics, images and language, which told nobody anything."""
    vectors, _ = clouds(each=12)

    def suggest(contest: Contest) -> Suggestion:
        return Suggestion(next(grain for grain in contest.grains if grain.k == count), count, count)

    monkeypatch.setattr(Contest, "suggest", suggest)
    found = nested_levels(vectors, seed=0)
    sizes = [int(row.max()) + 1 for row in found.levels]
    assert sizes[0] == count and 5 <= sizes[1] <= 12
    assert (found.suggested, found.why.grain.k) == ((1, sizes[1]) if count < 4 else (0, count))


def test_the_same_levels_twice_and_with_any_number_of_threads(tmp_path: Path) -> None:
    script = (
        "import sys, hashlib; sys.path[:0] = sys.argv[1:]\n"
        "from test_levels import clouds\n"
        "from sonde.pipelines.topics.levels import nested_levels\n"
        "found = nested_levels(clouds()[0], seed=3)\n"
        "print(hashlib.sha256(found.leaves.tobytes() + found.levels.tobytes()).hexdigest())\n"
    )
    here = Path(__file__).parent
    folders = [str(here), str(here.parents[1] / "support")]
    command = [sys.executable, "-c", script, *folders]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=other_threads())
    found = nested_levels(clouds()[0], seed=3)
    here = hashlib.sha256(found.leaves.tobytes() + found.levels.tobytes()).hexdigest()
    assert started.communicate()[0].strip() == here


def test_a_layer_groups_by_the_nearest_mean_and_numba_keeps_its_threads() -> None:
    numba = pytest.importorskip("numba")
    before = numba.get_num_threads()
    vectors, _ = clouds()
    finest, *coarser = evoc_layers(vectors, seed=0)
    assert numba.get_num_threads() == before
    assert finest.persistence == 0
    assert all(finest.k > layer.k > 1 and layer.persistence > 0 for layer in coarser)
    naive = np.argmax(vectors @ finest.means.T, axis=1)
    assert finest.labels(vectors).tolist() == naive.tolist()
    assert evoc_layers(vectors[: layers.FEWEST - 1], seed=0) == []


def grains(scores: dict[int, float], stability: float = 0.7, **silhouettes: float) -> list[Grain]:
    """Grains of these scores by k; `k31=0.3` gives one another silhouette than its score."""
    return [Grain(k, score, silhouettes.get(f"k{k}", score), stability) for k, score in scores.items()]


@pytest.fixture(scope="module")
def contest() -> Contest:
    vectors, _ = clouds()
    return Contest(vectors, evoc_layers(vectors, 0), 0)


@pytest.mark.parametrize("count", [30, 35, 64, 100])
@pytest.mark.parametrize("spread", [1e-4, 1.0])
def test_vectors_without_groups_are_nested_all_the_same(count: int, spread: float) -> None:
    vectors = 1 + spread * np.random.default_rng(count).normal(size=(count, 384))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    found = nested_levels(vectors, 0)
    sizes = [len(set(row.tolist())) for row in found.levels]
    assert sizes == sorted(sizes) == [int(row.max()) + 1 for row in found.levels]
    assert not found.why.clear
    assert len(found.leaves) == count and found.leaves.max() + 1 == found.levels.shape[1]


def test_a_score_that_leads_clearly_decides_alone(contest: Contest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "persistent", 10)
    scores = {4: 0.40, 7: 0.37, 12: 0.38, 20: 0.2, 31: 0.9}
    monkeypatch.setattr(contest, "grains", grains(scores))
    found = contest.suggest()
    assert (found.grain.k, found.low, found.high, found.clear) == (31, 31, 31, True)
    monkeypatch.setattr(contest, "grains", grains(scores, k31=0.3))  # its silhouette is not the best
    found = contest.suggest()  # 31 lies outside of a third to three times 10
    assert (found.grain.k, found.low, found.high, found.clear) == (12, 4, 12, False)
    assert Suggestion(Grain(30, 0.3, 0.3, 0.6), 15, 30).clear
    assert not Suggestion(Grain(30, 0.3, 0.3, 0.9), 14, 30).clear  # from 14 to 30 are equally good
    assert not Suggestion(Grain(30, 0.3, 0.3, 0.5), 30, 30).clear  # other seeds give other groups


def test_among_equal_scores_a_layer_counts_as_one_step_nearer(
    contest: Contest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contest, "persistent", 10)
    layer = Layer(np.zeros((8, 32), np.float32), 5.0)
    for k, chosen in ((11, 8), (10, 10)):  # 8 is 1.28 steps of a fifth below 10, and 11 half a step above
        own = [*grains({4: 0.40, k: 0.38}, 0.5), Grain(8, 0.37, 0.37, 0.5, layer)]
        monkeypatch.setattr(contest, "grains", sorted(own, key=lambda grain: grain.k))
        assert contest.suggest().grain.k == chosen


def test_two_groups_need_a_layer_and_a_lead(contest: Contest, monkeypatch: pytest.MonkeyPatch) -> None:
    two, ten = (Layer(np.zeros((k, 32), np.float32), persistence) for k, persistence in ((2, 9.0), (10, 5.0)))
    monkeypatch.setattr(contest, "persistent", 10)
    monkeypatch.setattr(contest, "layers", [ten, two])
    monkeypatch.setattr(contest, "grains", grains({2: 0.43, 12: 0.4}))
    assert contest.suggest().grain.k == 12  # it leads by less than a tenth
    monkeypatch.setattr(contest, "grains", grains({2: 0.45, 12: 0.4}))
    assert contest.suggest().grain.k == 2
    monkeypatch.setattr(contest, "layers", [ten])
    assert contest.suggest().grain.k == 12  # no layer is for it


def test_persistence_is_the_median_of_three_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = clouds()
    made = {seed: [Layer(np.zeros((k, 32), np.float32), 1.0)] for seed, k in ((1, 24), (2, 3))}
    monkeypatch.setattr(layers, "evoc_layers", lambda vectors, seed, most: made[seed])
    first = [Layer(np.zeros((k, 32), np.float32), float(k != 20)) for k in (20, 6, 2)]
    assert layers.persistent_size(vectors, first, seed=0) == 15  # 6 and 24; three groups do not count


def test_scores_of_layers_and_of_kmeans_are_silhouette_times_root_of_stability(contest: Contest) -> None:
    for grain in contest.grains:
        assert grain.score == pytest.approx(max(grain.silhouette, 0) * max(grain.stability, 0) ** 0.5)
    winner = contest.winner(max(contest.grains, key=lambda grain: grain.score))
    own = contest.silhouette(winner.labels)
    assert own >= ALIKE * max(grain.silhouette for grain in contest.grains if grain.k == len(winner.centroids))


def test_parts_stay_in_their_group_and_small_ones_are_given_up() -> None:
    from sklearn.metrics import adjusted_rand_score

    vectors, kinds = clouds()
    groups = kinds // KINDS
    means = centroids(vectors, kinds, SUBJECTS * KINDS)
    parts, parents = refined(vectors, groups, means, least=5)
    assert parents[parts].tolist() == groups.tolist()
    assert adjusted_rand_score(kinds, parts) > 0.9
    assert np.bincount(parts).min() >= 5
    whole, alone = refined(vectors, groups, means, least=len(vectors))
    assert whole.tolist() == groups.tolist() and alone.tolist() == list(range(SUBJECTS))


def test_a_text_gets_the_nearest_leaf_of_its_suggested_group() -> None:
    vectors, _ = clouds()
    found = nested_levels(vectors, 0)
    leaves, thresholds, _, levels = nested_leaves(vectors, found.leaves, found.levels, found.suggested, False)
    assert (thresholds == -2).all()
    got, cosines = nearest_leaf(vectors, leaves, levels)
    parents = levels.groups[levels.suggested]
    for row in range(0, len(vectors), 7):
        group = int(np.argmax(levels.means @ vectors[row]))
        own = np.flatnonzero(parents == group)
        assert got[row] == own[np.argmax(leaves[own] @ vectors[row])]
        assert cosines[row] == pytest.approx(float(leaves[got[row]] @ vectors[row]), abs=1e-6)
    alone = Levels(levels.groups, levels.suggested, levels.means[:1])
    assert nearest_leaf(vectors, leaves, alone)[0].tolist() == nearest(vectors, leaves)[0].tolist()


def test_bertopic_counts_the_words_of_given_groups() -> None:
    texts = ["apple pie"] * 3 + ["car fuel"] * 9
    labels = np.array([0] * 3 + [1] * 9)
    vectors = np.eye(2, dtype=np.float32)[labels]
    counts = adapter.count_words(texts, vectors, labels, str.split)
    found = [dict(zip(one.terms[one.columns], one.values, strict=True)) for one in map(counts.of, np.array([[0], [1]]))]
    assert found == [{"apple": 3, "pie": 3}, {"car": 9, "fuel": 9}]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [(["fee 1", "fee 2", "fee"], [{"fee": 2}, {"fee": 1}]), (["1", "2", "3"], [{"": 1}, {"": 1}])],
)
def test_a_single_word_and_none_at_all_are_counted(texts: list[str], expected: list[dict[str, int]]) -> None:
    """BERTopic ended in a traceback."""
    vectors = np.eye(3, 8, dtype=np.float32)
    counts = adapter.count_words(texts, vectors, np.array([0, 0, 1]), lambda text: re.findall("[a-z]+", text))
    found = [dict(zip(one.terms[one.columns], one.values, strict=True)) for one in map(counts.of, np.array([[0], [1]]))]
    assert found == expected


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

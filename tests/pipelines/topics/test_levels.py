"""Levels of topics: nested, the same with any number of threads, suggested by rule; names apart from the parent's."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import needs
from other_threads import other_threads

from sonde.pipelines.analysis.describe import centroids
from sonde.pipelines.analysis.naming.choice import NameAccuracy
from sonde.pipelines.cluster.kmeans import nearest
from sonde.pipelines.topics import adapter, layers
from sonde.pipelines.topics.grain import ALIKE, Contest, Grain, Suggestion
from sonde.pipelines.topics.items import _apart
from sonde.pipelines.topics.layers import Layer, evoc_layers
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


@pytest.mark.long
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


PARENTS = [(0, "kettle, toaster"), (0, "kettle, toaster"), (1, "lamp"), (1, "lamp")]
APART = ["sent", "bread", "bright", "pieces"]
FREE = ["kettle", "toaster, bread", "Lamp", "glass shade"]


class Naming:
    """Gives one list of names with a ban on the parents' words and another without."""

    def __init__(self, accuracies: dict[str, float]) -> None:
        self.accuracies = accuracies

    def choose(
        self, kept: Mapping[int, str], parents: Sequence[tuple[int, str]], taken: Collection[str] = ()
    ) -> list[str]:
        assert [number for number, _ in parents] == [number for number, _ in PARENTS]
        return APART if parents[0][1] else FREE

    def compare(self, names: Sequence[str]) -> NameAccuracy:
        return NameAccuracy(None, tuple(self.accuracies.get(name) for name in names), {}, 9)


def names(**accuracies: float) -> list[str]:
    naming: Any = Naming(accuracies)
    return _apart(naming, {}, PARENTS)


def test_a_word_of_the_parent_is_used_only_where_readers_need_it() -> None:
    assert names(sent=0.1, kettle=0.9, bread=0.5) == ["kettle", "bread", "bright", "pieces"]
    assert names(sent=0.85, kettle=0.9) == APART, "not for a little"


def test_no_name_is_that_of_the_parent_and_none_comes_twice() -> None:
    assert names(Lamp=1.0) == APART
    FREE[1] = "sent"
    assert names(sent=1.0, bread=0.0)[:2] == ["sent", "bread"]
    FREE[1] = "toaster, bread"

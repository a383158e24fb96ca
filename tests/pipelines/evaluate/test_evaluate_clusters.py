"""How good a clustering is: every measure against its naive formula."""

import json
from collections import Counter
from itertools import combinations
from math import comb, log
from pathlib import Path

import numpy as np
import pytest
from cluster_corpus import made
from command_line import Command, contents

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError
from sonde.indexer.store.kinds import CLUSTER, LABEL, LEVELS
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item
from sonde.pipelines.analysis.statistics import agreement
from sonde.pipelines.evaluate.groups import coherence, diversity, evaluate_clusters

LABELS = [0, 0, 0, 0, 1, 1, 1, 2, 2, -1, -1, 2]
CLASSES = ["x", "x", "x", "y", "y", "y", "z", "z", "z", "x", None, "z"]


@pytest.fixture
def judged(tmp_path: Path) -> Collection:
    opened = made(
        [{"id": str(n), "text": f"{k} word{n}", "kind": k, "tags": ["a", "b"]} for n, k in enumerate(CLASSES)],
        tmp_path / "t.sonde",
    )
    with opened.stored.view() as view:
        snapshot = Snapshot.of(view)
    items = [
        Item(n, f"cluster {n}", {"stability": 0.5 + n / 10, "terms": [["x", 1.0], [f"t{n}", 0.5], ["two words", 0.4]]})
        for n in range(3)
    ]
    assigned = (snapshot.docs, np.array(LABELS), np.ones(12))
    for kind, name in ((CLUSTER, "run"), (LABEL, "labels"), (LEVELS[0], "topics")):
        new = NewRun(kind, name, {}, (), {}, 0.0, [Item(-1, "outliers", {}), *items], assigned)
        write_run(opened.stored, new, snapshot)
    return opened


def entropy(values: list[object]) -> float:
    return -sum(n / len(values) * log(n / len(values)) for n in Counter(values).values())


def naive(truth: list[str], labels: list[int]) -> dict[str, float]:
    both: list[object] = list(zip(truth, labels, strict=True))
    information = entropy([*truth]) + entropy([*labels]) - entropy(both)
    homogeneity, completeness = information / entropy([*truth]), information / entropy([*labels])
    pairs = [sum(comb(n, 2) for n in Counter(values).values()) for values in (both, truth, labels)]
    chance = pairs[1] * pairs[2] / comb(len(truth), 2)
    return {
        "nmi": information / ((entropy([*truth]) + entropy([*labels])) / 2),
        "ari": (pairs[0] - chance) / ((pairs[1] + pairs[2]) / 2 - chance),
        "v_measure": 2 * homogeneity * completeness / (homogeneity + completeness),
        "purity": sum(
            max(Counter(c for c, own in zip(truth, labels, strict=True) if own == label).values())
            for label in set(labels)
        ) / len(truth),
    }  # fmt: skip


def test_against_a_column(judged: Collection) -> None:
    found = evaluate_clusters(judged.stored, "run", "kind")
    known = [(kind, label) for kind, label in zip(CLASSES, LABELS, strict=True) if kind is not None]
    expected = naive([kind for kind, _ in known], [label for _, label in known])
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)
    assert (found.documents, found.clusters, found.classes, found.outlier_share) == (11, 3, 3, pytest.approx(1 / 11))
    assert found.purity == pytest.approx(9 / 11)


def test_without_one(judged: Collection) -> None:
    found = evaluate_clusters(judged.stored, "run")
    assert (found.documents, found.outlier_share, found.truth) == (12, pytest.approx(2 / 12), None)
    assert (found.nmi, found.ari, found.v_measure, found.purity, found.classes) == (None,) * 5
    assert found.stability == pytest.approx(0.6) and found.diversity == 4 / 6
    assert found.silhouette is not None and -1 < found.silhouette < 1


def test_perfect_and_useless_labels() -> None:
    classes = np.array([0, 0, 1, 1])
    assert agreement(classes, 1 - classes) == pytest.approx({"nmi": 1, "ari": 1, "v_measure": 1, "purity": 1})
    assert agreement(classes, 0 * classes) == pytest.approx({"nmi": 0, "ari": 0, "v_measure": 0, "purity": 0.5})


def test_coherence_and_diversity_are_the_formulas() -> None:
    texts = ["pear fig", "pear fig kiwi", "kiwi plum", "plum pear", "fig"]
    sets = [set(text.split()) for text in texts]

    def share(*words: str) -> float:
        return sum(set(words) <= some for some in sets) / len(sets)

    def npmi(a: str, b: str) -> float:
        both = share(a, b)
        return log(both / (share(a) * share(b))) / -log(both) if both else -1.0

    groups = [["pear", "fig", "kiwi"], ["plum", "fig", "absent"], ["kiwi"]]
    means = [np.mean([npmi(*pair) for pair in combinations(words, 2)]) for words in (groups[0], groups[1][:2])]
    assert coherence(texts, groups, []) == pytest.approx(np.mean(means))
    assert diversity(groups) == 5 / 7 and diversity([]) is None and coherence(texts, [], []) is None


def test_the_command_and_mistakes(judged: Collection, sonde: Command) -> None:
    before = contents(judged.path)
    ran = sonde("evaluate", "clusters", judged.path, "--run", "run", "--truth", "kind", "--json")
    assert json.loads(ran.out) == evaluate_clusters(judged.stored, "run", "kind").to_dict()
    assert json.loads(sonde("evaluate", "clusters", judged.path, "--json").out)["run"] == "run", "the newest by default"
    assert "coarse:topics" in sonde("evaluate", "clusters", judged.path, "--run", "coarse:topics").out.splitlines()[0]
    table = dict(
        line.split(maxsplit=1) for line in sonde("evaluate", "clusters", judged.path, "--run", "run").out.splitlines()
    )
    assert table["documents"] == "12" and "nmi" not in table
    for arguments, words, code in (
        (["--run", "nope"], ["'nope'", "run (cluster), labels (label)"], 1),
        (["--run", "labels"], ["'labels' is a label run"], 2),
        (["--run", "run", "--truth", "nope"], ["no column 'nope'", "kind, tags"], 2),
        (["--run", "run", "--truth", "tags"], ["'tags' holds lists"], 2),
    ):
        sonde("evaluate", "clusters", judged.path, *arguments).refused(*words, code=code)
    assert contents(judged.path) == before
    judged.delete([str(n) for n in range(12) if n != 10])
    with pytest.raises(SondeError, match="says nothing of any document with a kind"):
        evaluate_clusters(judged.stored, "run", "kind")
    judged.delete_run("run", kind="cluster")
    with pytest.raises(
        SondeError, match="there is no cluster, topic or taxonomy run in this collection: make one with `sonde cl"
    ):
        evaluate_clusters(judged.stored)

"""Clustering: KMeans, density, auto k, runs, updates, bad input, and what a kill leaves."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_corpus import COPY, collection, made, rows
from command_line import command, contents
from other_threads import other_threads

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.kinds import CLUSTER
from sonde.indexer.store.runs import array_of, assignments_of, find_run
from sonde.indexer.store.view import normalized
from sonde.pipelines.analysis.corpus import Corpus, distinct
from sonde.pipelines.analysis.describe import silhouettes, vote
from sonde.pipelines.analysis.neighbours import neighbours, one_thread
from sonde.pipelines.analysis.terms import best_terms, count_terms, tokenizer, weights
from sonde.pipelines.analysis.umap import project
from sonde.pipelines.cluster import choice, kmeans
from sonde.pipelines.cluster.choice import Point, best_jaccard, choose_k
from sonde.pipelines.cluster.density import belong, dense_groups, groups_by_size, limits, nearness
from sonde.pipelines.cluster.labelled import label_groups, label_names


@pytest.fixture
def themes(tmp_path: Path) -> Collection:
    return collection(tmp_path / "themes.sonde")


def labels_of(opened: Collection, name: str) -> dict[str, int]:
    with opened.stored.view() as view:
        run = find_run(view.catalog, CLUSTER, name)
        docs, items, _ = assignments_of(view.catalog, run)
        keys = dict(view.catalog.connection.execute("SELECT doc, key FROM documents"))
    return {keys[doc]: item for doc, item in zip(docs.tolist(), items.tolist(), strict=True)}


def unit(count: int, seed: int = 0, dimension: int = 8) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_kmeans_finds_the_themes_and_says_what_they_are(themes: Collection) -> None:
    found = themes.cluster(k=3)
    labels = labels_of(themes, "kmeans")
    assert {len({labels[f"{theme}-{n}"] for n in range(40)}) for theme in ("fruit", "cars", "music")} == {1}
    assert sorted(item.data["size"] for item in found.clusters) == [40, 40, 40]
    fruit = next(item for item in found.clusters if item.number == labels["fruit-1"])
    assert {term for term, _ in fruit.data["terms"]} & {"fruit", "fruit fruit"}
    assert all(key.startswith("fruit-") for key in fruit.data["representatives"])
    assert fruit.data["distinct"] == 37 and fruit.data["stability"] == 1.0 and 0.5 < fruit.data["cohesion"] <= 1
    assert "fruit" in fruit.name.split(", ") and fruit.data["name_accuracy"] == 1.0
    assert (found.report["documents"], found.report["clusters"], found.report["outliers"]) == (120, 3, 0)


def test_clusters_are_named_by_candidate_labels(themes: Collection) -> None:
    themes.cluster(k=3, refits=0, labels=("music", "fruit: apples and pears"))
    labels, names = labels_of(themes, "kmeans"), [item.name for item in themes.run("kmeans").items]
    assert (names[labels["fruit-1"]], names[labels["music-1"]]) == ("fruit", "music")
    assert names[labels["cars-1"]].startswith("cars")
    read: list[str] = []

    class Judge:
        def margins(self, texts: list[str], labels: Any, multi_label: bool, chosen: Any = None) -> np.ndarray:
            read.extend(texts)
            return np.array([[text.count(label.name) for label in labels] for text in texts], np.float32)

    with themes.stored.view() as view:
        corpus = Corpus.of(view)
    typical = [np.flatnonzero(corpus.group == row)[:1] for row in (0, 1, 2)]
    found = label_groups(
        themes.stored.encoder, corpus.vectors, typical, lambda rows: [f"text {row} fruit" for row in rows.tolist()],
        ("music", "fruit"), "nli", judge=Judge(),
    )  # fmt: skip
    assert [(each.label, each.share) for each in found] == [("fruit", 1.0)] * 3 and len(read) == 3
    assert label_names([*found[:2], None], ["a", "b", "c"]) == ["fruit: a", "fruit: b", "c"]


def test_k_is_chosen_and_the_curve_kept(themes: Collection) -> None:
    found = themes.cluster()
    assert found.report["k"] == 3 == len(found.clusters)
    curve = found.report["curve"]
    assert [point["k"] for point in curve] == choice.ks(117) and {"silhouette", "stability", "score"} <= set(curve[0])


def test_choose_takes_the_smallest_k_that_is_good_enough() -> None:
    points = [Point(2, 0.1, 0.5, 0.4), Point(4, 0.3, 0.97, 0.5), Point(9, 0.3, 1.0, 0.9)]
    assert choose_k(points) == 4
    assert choose_k([]) == choose_k([Point(2, -0.1, 0.5, 0.1)]) == 1


def test_choose_takes_two_or_three_only_where_they_are_clearly_better() -> None:
    two, three, many = Point(2, 0.2, 0.9, 0.4), Point(3, 0.21, 0.9, 0.4), Point(14, 0.2, 0.9, 0.7)
    assert choose_k([two, three, many]) == 14
    assert choose_k([two, three]) == 3
    assert choose_k([two, Point(3, 0.25, 0.9, 0.4), many]) == 3


@pytest.mark.parametrize("method", ["kmeans", pytest.param("density", marks=pytest.mark.long)])
def test_the_same_clusters_twice_and_in_another_process_with_other_threads(themes: Collection, method: str) -> None:
    settings: dict[str, Any] = {"method": method, "refits": 0} | ({"k": 5} if method == "kmeans" else {"min_size": 5})
    themes.cluster("a", **settings)
    themes.cluster("b", **settings)
    expected = labels_of(themes, "a")
    assert labels_of(themes, "b") == expected
    script = (
        "import sys; from sonde.app.api import Collection\n"
        "from fake_encoder import FakeEncoder\n"
        f"Collection.open({str(themes.path)!r}, encoder=FakeEncoder()).cluster(sys.argv[1], **{settings!r})"
    )
    environment = other_threads() | {"PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    subprocess.run([sys.executable, "-c", script, "there"], check=True, env=environment)
    assert labels_of(themes, "there") == expected
    with themes.stored.view() as view:
        stored = [array_of(view.catalog, find_run(view.catalog, CLUSTER, n), "centroids") for n in ("a", "b", "there")]
    assert len({array.tobytes() for array in stored}) == 1


def test_density_keeps_outliers_and_copies_together(themes: Collection) -> None:
    found = themes.cluster(method="density", min_size=8)
    labels = labels_of(themes, "density")
    assert len({labels[f"fruit-{n}"] for n in range(0, 40, 10)}) == 1
    assert found.report["outliers"] == sum(label < 0 for label in labels.values())
    assert sum(item.data["size"] for item in found.clusters) == 120
    assert found.report["clusters"] >= 3 and (found.report["fitted"], found.report["carried"]) == (117, 0)
    nearest = themes.cluster("n", method="density", min_size=8, outliers="nearest", refits=0)
    assert nearest.report["outliers"] == 0 and nearest.report["clusters"] == found.report["clusters"]
    again = themes.cluster("r", method="density", min_size=8, outliers="recluster", refits=0)
    assert again.report["outliers"] <= found.report["outliers"]
    carried = themes.cluster("c", method="density", min_size=8, sample=100, refits=0)
    assert (carried.report["fitted"], carried.report["carried"]) == (100, 17)


def test_a_run_says_how_well_its_names_tell(themes: Collection) -> None:
    found = themes.cluster(k=3, refits=0)
    assert found.report["name_accuracy"] == 1.0 and found.report["name_texts"] == 12
    assert found.report["name_readers"].keys() == {"BM25", "fake"}
    assert len({item.name for item in found.clusters}) == 3
    alone = themes.cluster("words", k=3, refits=0, names="terms")
    assert alone.report["name_readers"].keys() == {"BM25"}
    themes.rename_run("kmeans", "mine", item=0)
    data = {item.number: item.data for item in themes.run("kmeans").items}
    assert "name_accuracy" not in data[0] and data[1]["name_accuracy"] == 1.0  # it was that of the old name


@pytest.mark.parametrize("method", ["kmeans", "density"])
def test_new_documents_join_the_clusters_of_a_run(themes: Collection, method: str) -> None:
    settings: dict[str, Any] = {"k": 3} if method == "kmeans" else {"min_size": 8, "outliers": "nearest"}
    themes.cluster("r", method=method, refits=0, **settings)  # type: ignore
    before = labels_of(themes, "r")
    themes.rename_run("r", "mine", item=0)
    made([{"id": "new", "text": COPY}, {"id": "more", "text": "cars cars cars engine wheel"}], themes.path)
    assert (themes.update_clusters("r").added, themes.update_clusters("r").added) == (2, 0)
    after = labels_of(themes, "r")
    assert {key: after[key] for key in before} == before
    assert (after["new"], after["more"]) == (before["fruit-0"], before["cars-1"])
    found = themes.run("r")
    assert found.items[0].name == "mine" and sum(item.data["size"] for item in found.items) == 122
    assert found.run.report["updated"] == 2


@pytest.mark.parametrize("outliers", ["keep", "recluster"])
def test_a_far_off_text_becomes_an_outlier_and_a_near_one_does_not(themes: Collection, outliers: str) -> None:
    themes.cluster("r", method="density", min_size=8, refits=0, outliers=outliers)  # type: ignore
    before = labels_of(themes, "r")
    made([{"id": "far", "text": "zebra quantum"}, {"id": "near", "text": "cars cars cars cars engine"}], themes.path)
    assert themes.update_clusters("r").outliers == 1
    after = labels_of(themes, "r")
    assert (after["far"], after["near"]) == (-1, before["cars-1"])
    assert before["cars-1"] >= 0


def test_one_in_twenty_of_a_clusters_kind_is_strange_to_it() -> None:
    random = np.random.default_rng(0)
    centres = np.eye(8, dtype=np.float32)[:2]
    vectors = normalized(np.repeat(centres, 1_000, axis=0) + 0.1 * random.standard_normal((2_000, 8))).astype("f4")
    labels = np.repeat([0, 1], 1_000)
    fitted = np.arange(0, 2_000, 2)
    cosines = neighbours(vectors[fitted], vectors[fitted], 11)[1][:, 1:]
    least = limits(labels[fitted], nearness(cosines), 2)
    found, shares = belong(vectors[1::2], vectors[fitted], labels[fitted], least)
    assert 0.02 < np.mean(found < 0) < 0.1 and (found[found >= 0] == labels[1::2][found >= 0]).all()
    assert belong(np.eye(8, dtype=np.float32)[[0, 5]], vectors[fitted], labels[fitted], least)[0].tolist() == [0, -1]
    assert ((shares > 0) & (shares <= 1)).all()


def test_a_group_of_most_texts_is_parted_if_it_has_parts() -> None:
    pytest.importorskip("hdbscan")
    random = np.random.default_rng(0)
    cloud, small = random.standard_normal((400, 2)), 0.3 * random.standard_normal((40, 2)) + [40, 0]
    cloud[200:] += [3, 0]
    parted = dense_groups(np.vstack([cloud, small]), 20, 5)[0]
    assert len(set(parted[:400].tolist()) - {-1}) > 1 and len(set(parted[400:].tolist())) == 1
    assert np.bincount(parted + 1)[1:].max() <= 220
    ball = np.vstack([cloud[:60], small])  # too few places for two groups of 40
    assert sorted(np.bincount(dense_groups(ball, 40, 5)[0] + 1).tolist()) == [0, 40, 60]


def test_bad_input(themes: Collection, tmp_path: Path) -> None:
    before = contents(themes.path)
    with pytest.raises(UsageError, match="k is 200, and there are only 117 documents with different texts"):
        themes.cluster(k=200)
    for settings, words in (
        ({"k": 0}, "k is 0: give a whole number from 1, or auto"),
        ({"method": "dbscan"}, "^method is 'dbscan': use kmeans, density"),
        ({"method": "density", "k": 3}, "density finds the number of clusters itself"),
        ({"outliers": "nearest"}, "kmeans leaves no outliers"),
        ({"seed": -1}, "seed is -1"),
        ({"method": "density", "min_size": 1}, "min_size is 1: give a whole number from 2"),
    ):
        with pytest.raises(UsageError, match=words):
            themes.cluster(**settings)  # type: ignore[arg-type]
    assert contents(themes.path) == before
    themes.cluster("x", k=2, refits=0)
    before = contents(themes.path)
    with pytest.raises(UsageError, match="the cluster run 'x' already exists"):
        themes.cluster("x", k=3)
    with pytest.raises(SondeError, match="no cluster run 'y' in this collection: there is only x"):
        themes.update_clusters("y")
    assert contents(themes.path) == before and [run.name for run in themes.runs()] == ["x"]


def test_collections_too_small_for_clusters(tmp_path: Path) -> None:
    three = made(
        [{"id": str(n), "text": text} for n, text in enumerate(("apple", "engine", "violin"))], tmp_path / "3.sonde"
    )
    assert [item.data["size"] for item in three.cluster(k=3).clusters] == [1, 1, 1]
    assert three.cluster("auto").report["clusters"] in (1, 2)
    said: list[Any] = []
    assert three.cluster("d", method="density", progress=said.append).report["outliers"] == 3
    assert any("every document is an outlier" in str(line) for line in said)
    same = made([{"id": str(n), "text": COPY} for n in range(20)], tmp_path / "same.sonde")
    assert [item.data["size"] for item in same.cluster().clusters] == [20]
    assert same.cluster("d", method="density").report["outliers"] == 20
    with pytest.raises(UsageError, match="k is 2, and there is only 1 document with different texts"):
        same.cluster("two", k=2)
    same.delete([str(n) for n in range(20)])
    with pytest.raises(SondeError, match="holds no documents to cluster"):
        same.cluster("none")
    assert same.runs()[0].documents == 0  # the documents of an old run are deleted: it stays, empty
    assert same.update_clusters("kmeans").documents == 0


def test_a_cluster_whose_documents_are_all_deleted_is_empty_but_there(themes: Collection) -> None:
    themes.cluster(k=3, refits=0)
    themes.delete([f"cars-{n}" for n in range(40)])
    themes.update_clusters("kmeans")
    kept = themes.run("kmeans")
    assert sorted(item.data["size"] for item in kept.items) == [0, 40, 40] and kept.run.documents == 80


def test_one_thread_lasts_for_its_block_only() -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    with one_thread():  # loads the libraries whose limits are looked at
        pass

    def limits_now() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info()]

    with threadpool_limits(2):
        before = limits_now()
        with pytest.raises(KeyError), one_thread():
            assert set(limits_now()) == {1}
            raise KeyError
        assert limits_now() == before


def test_silhouettes_are_those_of_all_pairs() -> None:
    from sklearn.metrics import silhouette_samples

    vectors, labels = unit(60), np.arange(60) % 4
    expected = np.asarray(silhouette_samples(vectors.astype(np.float64), labels, metric="cosine"))
    np.testing.assert_allclose(silhouettes(vectors, labels), expected, atol=1e-6)
    labels[:7] = -1
    assert np.isnan(silhouettes(vectors, labels)[:7]).all()
    expected = np.asarray(silhouette_samples(vectors[7:].astype(np.float64), labels[7:], metric="cosine"))
    np.testing.assert_allclose(silhouettes(vectors, labels)[7:], expected, atol=1e-6)


def test_neighbours_are_the_naive_ones() -> None:
    vectors = unit(300)
    rows_, cosines = neighbours(vectors[:50], vectors, 7)
    products = vectors[:50].astype(np.float64) @ vectors.T.astype(np.float64)
    np.testing.assert_array_equal(rows_, np.argsort(-products, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(cosines, -np.sort(-products, axis=1)[:, :7], atol=1e-6)
    assert neighbours(vectors[:2], vectors[:3], 9)[0].shape == (2, 3)


def test_votes_weigh_cosines() -> None:
    fitted = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    labels, shares = vote(np.array([[1, 0], [0, 1], [0.8, 0.6]], np.float32), fitted, np.array([4, 4, -1]))
    assert labels.tolist() == [4, -1, 4]
    np.testing.assert_allclose(shares, [1, 1, 1.6 / 2.2], atol=1e-4)


def test_kmeans_has_no_empty_cluster_and_numbers_by_size() -> None:
    vectors = unit(40)
    fitted = kmeans.fit_kmeans(vectors, 40, seed=1)
    assert np.bincount(fitted.labels).tolist() == [1] * 40
    sizes = np.bincount(kmeans.fit_kmeans(vectors, 6, seed=1, restarts=2).labels)
    assert sizes.tolist() == sorted(sizes.tolist(), reverse=True) and len(sizes) == 6
    assert groups_by_size(np.array([2, -1, 0, 0, 5, 5, 5])).tolist() == [2, -1, 1, 1, 0, 0, 0]


def test_distinct_joins_equal_contents_and_equal_vectors() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0], [0.6, 0.8]], np.float32)
    group, first = distinct(vectors, [b"a", b"b", b"c", b"b"])
    assert (group.tolist(), first.tolist()) == ([0, 1, 0, 1], [0, 1])


def test_jaccard_of_the_best_match() -> None:
    found = best_jaccard(np.array([0, 0, 0, 1, 1, -1]), np.array([1, 1, 0, 0, 0, 0]), 3)
    np.testing.assert_allclose(found, [2 / 3, 2 / 4, 0])


def test_projections_are_the_same_and_small_ones_possible() -> None:
    pytest.importorskip("umap")
    vectors = unit(200)
    first = project(vectors, 2, seed=3)
    assert first.shape == (200, 2) and project(vectors, 2, seed=3).tobytes() == first.tobytes()
    assert project(vectors, 2, seed=4).tobytes() != first.tobytes()
    for few in (1, 2, 3, 4, 8):
        assert np.isfinite(project(vectors[:few], 2, seed=0)).all()


def test_terms_without_stop_words_numbers_and_repetitions() -> None:
    assert tokenizer(("en",))("The 12 cats don't eat a C3PO’s food") == ["cats", "eat", "c3po's", "food"]
    assert tokenizer(("de",))("Der Hund ist nicht im Garten") == ["hund", "garten"]
    assert tokenizer(("fr",))("L'Iran est comme l’État, et cela fait l'effet") == ["iran", "état", "effet"]
    assert tokenizer(("ar",))("إلى على حتى البطارية") == ["البطارية"]
    assert tokenizer(("el",))("για την μπαταρία") == ["μπαταρία"]
    assert tokenizer(("tr",))("çok bir telefon") == ["telefon"]
    assert tokenizer(("ja",))("電池が切れました。") == ["電池", "池が", "が切", "切れ"]
    assert tokenizer(("ko",))("정말 감사합니다") == ["정말", "감사", "사합"]
    assert tokenizer(("en",))("l'effet") == ["l'effet"], "no language of the collection elides"
    assert tokenizer(())("東京都") == ["東京", "京都"]
    mail = "Write to Anna.Schmidt@bank.example or see https://bank.example/help?x=1 and www.bank.example today"
    assert tokenizer(("en",))(mail) == ["write", "today"]
    counts = count_terms(["red apple", "red apple pie", "blue car", "blue car tyre"], ["en"])
    assert counts is not None
    found = best_terms(weights(counts, np.array([0, 0, 1, 1]), 2), most=2)
    assert [[term for term, _ in group] for group in found] == [["apple", "red"], ["blue", "car"]]
    assert count_terms(["the 1", "and 2"], ["en"]) is None


def test_class_based_tf_idf_is_the_formula() -> None:
    counts = count_terms(["apple apple pie", "apple car"], [], longest=1)
    assert counts is not None and counts.terms.tolist() == ["apple", "car", "pie"]
    mean = (3 + 2) / 2
    expected = [
        [2 / 3 * np.log1p(mean / 3), 0, 1 / 3 * np.log1p(mean / 1)],
        [1 / 2 * np.log1p(mean / 3), 1 / 2 * np.log1p(mean), 0],
    ]
    weighted, found = weights(counts, np.array([0, 1]), 2), np.zeros((2, 3))
    found[weighted.rows, weighted.columns] = weighted.values
    np.testing.assert_allclose(found, expected)


def test_the_corpus_has_copies() -> None:
    assert sum(row["text"] == COPY for row in rows()) == 4


def test_a_number_of_clusters_that_is_not_clear_is_said(
    themes: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = themes.cluster("auto")
    assert (found.report["clear"], found.report["equal"][0]) == (True, 3)
    assert "clear" not in themes.cluster("k3", k=3).report
    points = [Point(k, 0.1, 0.5, 0.5) for k in (4, 5, 9)]
    assert choice.clearness(points, 4) == {"clear": False, "equal": [4, 9]}
    assert choice.clearness([Point(4, 0.1, 0.7, 0.5)], 4)["clear"] and choice.clearness(points, 7) == {}
    monkeypatch.setattr(choice, "clearness", lambda points, k: {"clear": False, "equal": [3, 7]})
    ran = command(capsys, monkeypatch)("cluster", themes.path, "--name", "again")
    assert "again: the number of groups is not clear: 3 to 7 are about equally good" in ran.said
    themes.merge_clusters([0, 1], "again")
    assert "clear" not in themes.run("again").run.report

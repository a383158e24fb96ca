"""None of these: the chance that no label fits, refused texts, promised rates, and the next documents to confirm."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command, inject
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError
from sonde.indexer.store.kinds import LABEL
from sonde.indexer.store.runs import array_of, assignments_of, find_run
from sonde.indexer.store.view import document_vectors
from sonde.pipelines.label import LabelSettings, classify, make_labels
from sonde.pipelines.label.labels import NONE, Label
from sonde.pipelines.label.margins import EASE, Margins, eased
from sonde.pipelines.label.none import _towards_neighbours, chances, evidence, recalibrated, refused
from sonde.pipelines.label.outcome import beside_refusal, closeness, decide, doubtful
from sonde.pipelines.label.scores import adapted_margins, label_vectors
from sonde.pipelines.label.solvers import probabilities, softmax

WIDE = 24
THEMES = 5


def themes(each: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts around five directions, their themes, and names that lean towards the directions."""
    rng = np.random.default_rng(7)
    centres = np.linalg.qr(rng.normal(size=(WIDE, WIDE)))[0][:THEMES]
    truth = np.repeat(np.arange(THEMES), each)
    texts = centres[truth] + 0.12 * rng.normal(size=(len(truth), WIDE))
    names = 0.6 * centres + 0.15 * rng.normal(size=centres.shape)
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (texts, names)]
    return unit[0].astype(np.float32), truth, unit[1].astype(np.float32)


def test_texts_of_a_missing_label_have_the_highest_chances_of_none() -> None:
    texts, truth, names = themes()
    for missing in range(THEMES):
        found = chances(texts, np.delete(names, missing, axis=0))
        assert found[truth == missing].min() > found[truth != missing].max()
    whole = chances(texts, names)
    assert (whole < 0.5).all()
    assert np.array_equal(chances(texts, names), whole)


def test_smoothing_equals_the_naive_average_of_neighbours() -> None:
    texts, _, _ = themes(12)
    found = _towards_neighbours(texts, texts, texts)
    for place in (0, 17, 59):
        cosines = texts @ texts[place]
        cosines[place] = -1
        near = np.argsort(-cosines)[:10]
        weights = np.exp(cosines[near] / 0.1) / np.exp(cosines[near] / 0.1).sum()
        wanted = 0.3 * texts[place] + 0.7 * (weights[:, None] * texts[near]).sum(axis=0)
        assert np.allclose(found[place], wanted / np.linalg.norm(wanted), atol=1e-5)


def test_texts_beyond_the_sample_join_the_nearest_group(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, truth, names = themes()
    monkeypatch.setattr("sonde.pipelines.label.none.SAMPLE", 150)
    monkeypatch.setattr("sonde.pipelines.label.none.AT_ONCE", 64)
    found = evidence(texts, names[1:]).sum(axis=1)
    assert found[truth == 0].max() < found[truth != 0].min()


def test_few_texts_are_judged_by_their_best_cosine() -> None:
    names = np.eye(3, dtype=np.float32)
    near, far = np.array([[0.9, 0.1, 0.1]], np.float32), np.array([[-1, -1, -1]], np.float32)
    assert chances(near, names)[0] < 0.05 and chances(far, names)[0] > 0.9


def test_a_refused_text_has_no_label_and_its_own_chance() -> None:
    shares = np.array([[0.8, 0.2], [0.3, 0.7], [0.9, 0.1]])
    none = np.array([0.1, 0.75, 0.2])
    texts, labels, scores = decide(shares, False, 0.0, none, none >= 0.5)
    assert texts.tolist() == [0, 1, 2] and labels.tolist() == [0, -1, 0]
    assert np.allclose(scores, [0.8, 0.75, 0.9])


def test_a_promise_without_corrections_trusts_the_chances() -> None:
    none = np.array([0.9, 0.9, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1])  # 5.2 texts fit a label; 0.2 of them among the first two
    known, truth = np.empty(0, np.int64), np.zeros((0, 2))
    assert refused(none, 0.05, known, truth).tolist() == [True, True] + [False] * 6
    assert refused(none, 0.14, known, truth).tolist() == [True, True, True] + [False] * 5
    assert refused(none, None, known, truth).tolist() == [True, True, True] + [False] * 5


def test_a_promise_is_kept_with_fifty_corrections() -> None:
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(200):
        none, fits = rng.uniform(size=2_000) ** 2, rng.random(2_000) < 0.8
        known = rng.choice(2_000, 60, replace=False)
        truth = np.where(fits[known, None], [[1.0, 0.0]], [[0.0, 0.0]])
        out = refused(none, 0.1, known, truth)
        rates.append(out[fits].mean())
    assert 0.08 <= float(np.mean(rates)) <= 0.12


def test_corrections_recalibrate_the_chances() -> None:
    rng = np.random.default_rng(1)
    right = rng.uniform(0.02, 0.98, 4_000)
    none = rng.random(4_000) < right
    wrong = 1 / (1 + np.exp(-(np.log(right / (1 - right)) - 1.5)))
    known = rng.choice(4_000, 300, replace=False)
    truth = np.where(none[known, None], [[0.0, 0.0]], [[1.0, 0.0]])
    found = recalibrated(wrong, known, truth)
    assert abs(found.mean() - none.mean()) < 0.05 < abs(wrong.mean() - none.mean())
    assert recalibrated(wrong, known[:9], truth[:9]) is wrong
    few = [recalibrated(wrong, known[n : n + 20], truth[n : n + 20]) for n in range(0, 300, 20)]
    assert abs(np.mean(few) - none.mean()) < 0.05
    only_nones, only_labels = known[~truth.any(axis=1)], known[truth.any(axis=1)]
    assert recalibrated(wrong, only_nones, np.zeros((len(only_nones), 2))) is wrong, "they say nothing of the others"
    assert recalibrated(wrong, only_labels[:49], np.eye(2)[np.zeros(49, int)]) is wrong
    assert recalibrated(wrong, only_labels[:50], np.eye(2)[np.zeros(50, int)]).mean() < wrong.mean()


def test_corrections_show_how_sure_margins_are() -> None:
    rng = np.random.default_rng(2)
    margins = rng.normal(size=(400, 4)) * 4
    for ease in (1.0, 2.0, 5.0):
        shares = softmax(margins / ease)
        drawn = (rng.random((400, 1)) < shares.cumsum(axis=1)).argmax(axis=1)
        assert eased(margins, np.eye(4)[drawn]) == pytest.approx(ease, rel=0.25)
    assert eased(margins[:1], np.zeros((1, 4))) == pytest.approx(EASE, rel=0.03), "a prior keeps it"


def test_a_label_that_takes_a_third_by_narrow_margins_is_named() -> None:
    labels = [Label(name) for name in "abcd"]
    texts, numbers = np.arange(9), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    apart = np.array([0.1, 0.2, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1])
    assert doubtful(labels, numbers, texts, apart) == ("a",)
    assert doubtful(labels[:3], numbers, texts, apart) == ()


LABELS = ["apple", "river", "cloud"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents about four words; the labels name three of them."""
    rows = [
        {"id": str(n), "text": f"{word} {word} {word} {word} {('table', 'winter', 'music')[n % 3]} {n}"}
        for n in range(240)
        for word in [[*LABELS, "letter"][n % 4]]
    ]
    encoder: Any = FakeEncoder()
    index(rows, tmp_path / "c.sonde", text="text", id="id", encoder=encoder)
    return tmp_path / "c.sonde"


def opened(folder: Path) -> Collection:
    encoder: Any = FakeEncoder()
    return Collection.open(folder, encoder=encoder)


def test_probabilities_share_the_chance_that_a_label_fits(folder: Path) -> None:
    collection = opened(folder)
    collection.label(LABELS, name="plain")
    with collection.stored.view() as view:
        run = find_run(view.catalog, LABEL, "plain")
        docs, numbers, scores = assignments_of(view.catalog, run)
        vectors, none = document_vectors(view, docs), array_of(view.catalog, run, "none")
        other, gap = (array_of(view.catalog, run, name) for name in ("other_scores", "margins"))
    encoder: Any = FakeEncoder()
    margins = adapted_margins(vectors, label_vectors(encoder, make_labels(LABELS))) / 2
    shares = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True) * (1 - none[:, None])
    np.testing.assert_array_equal(numbers, shares.argmax(axis=1))
    np.testing.assert_allclose(scores, shares.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(scores - other, gap, atol=1e-6)
    assert np.allclose(shares.sum(axis=1) + none, 1)
    foreign = np.arange(240) % 4 == 3  # the documents about a letter, in the order of the rows
    assert scores[foreign].max() < 0.5 < scores[~foreign].min()


def test_a_judge_and_few_texts_keep_their_own_probabilities() -> None:
    margins = np.array([[3.0, 1.0]])
    kept = Margins(margins).probabilities(False, np.array([0.5]))
    np.testing.assert_allclose(kept, probabilities(margins, False))
    several = Margins(margins).probabilities(True)
    np.testing.assert_allclose(several, probabilities(margins, True))


def test_a_run_refuses_what_no_label_names(folder: Path) -> None:
    collection = opened(folder)
    plain = collection.label(LABELS, name="plain")
    assert "none of these" not in plain.counts and plain.likely_none == 60
    report = collection.label(LABELS, name="some", none=True)
    assert report.counts == {"apple": 60, "river": 60, "cloud": 60, "none of these": 60}
    rows = {row["id"]: row["label:some"] for row in collection.to_pandas().to_dict("records")}
    assert {id for id, name in rows.items() if name == "none of these"} == {str(n) for n in range(3, 240, 4)}
    with collection.stored.view() as view:
        chance = array_of(view.catalog, find_run(view.catalog, LABEL, "plain"), "none")
    assert chance.shape == (240,) and chance[3::4].min() > np.delete(chance, np.arange(3, 240, 4)).max()


def test_none_is_corrected_and_counted(folder: Path) -> None:
    collection = opened(folder)
    collection.label(LABELS, none=True)
    collection.correct({"3": "cloud", "0": "none of these"})
    report = collection.label(LABELS, none=True, replace=True)
    assert (report.corrected, report.counts["none of these"]) == (2, 60)
    rows = {row["id"]: row["label:labels"] for row in collection.to_pandas().to_dict("records")}
    assert (rows["3"], rows["0"]) == ("cloud", "none of these")


def test_texts_without_a_collection_have_a_chance_of_none() -> None:
    encoder: Any = FakeEncoder()
    near, far = classify(["apple apple", "letter"], LABELS, LabelSettings(none=True), encoder=encoder)
    assert near.label == "apple" and near.none is not None and near.none < 0.5
    assert far.label == "none of these" and far.none is not None and far.none > 0.5
    assert far.to_dict()["none"] == far.none and set(far.scores) == set(LABELS)
    [several] = classify(["apple"], LABELS, LabelSettings(multi_label=True), encoder=encoder)
    assert several.none is None


def test_the_next_documents_to_confirm_are_uncertain_and_not_corrected(folder: Path) -> None:
    collection = opened(folder)
    collection.label(LABELS)
    least = {each.id for each in collection.unsure(k=80)}
    found = collection.to_confirm(k=5)
    assert len({each.id for each in found}) == 5 and {each.id for each in found} <= least
    assert found == collection.to_confirm(k=5)
    collection.correct({found[0].id: "apple"})
    assert found[0].id not in {each.id for each in collection.to_confirm(k=240)}
    with pytest.raises(UsageError, match="k is 0"):
        collection.to_confirm(k=0)


def test_random_documents_to_correct_keep_their_order(folder: Path, sonde: Command) -> None:
    collection = opened(folder)
    collection.label(LABELS)
    found = collection.unsure(k=500, random=True)
    every, margins = [each.id for each in found], [each.margin for each in found]
    assert sorted(every) == sorted(each.id for each in collection.unsure(k=500))
    assert margins != sorted(margins) and every != sorted(every, key=int)
    collection.correct({every[1]: "apple"})
    assert [each.id for each in collection.unsure(k=3, offset=1, random=True)] == every[2:5]
    shown = sonde("runs", "correct", folder, "--random", "-k", "2").out
    assert f"  {every[0]}\n" in shown and f"  {every[2]}\n" in shown
    sonde("runs", "correct", folder, "--random", "--unsure").refused("--forget, --unsure and --random", code=2)
    sonde("runs", "correct", folder, "1", "--random").refused("--random takes no ids", code=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"none": True, "multi_label": True}, "none is for one label per text"),
        ({"promise": 0.1, "multi_label": True}, "promise is for one label per text"),
        ({"promise": 1.0}, "the promised rate 1.0 is not between 0 and 1"),
    ],
)
def test_settings_that_are_not_valid(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        LabelSettings(**options).check()


def test_the_command_line(folder: Path, sonde: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    inject(monkeypatch, FakeEncoder())
    shown = sonde("label", folder, "--labels", "apple,river,cloud")
    assert "note: 60 documents (25.0%) probably fit no label, and there may be more: see --none" in shown.err
    refusing = sonde("label", folder, "--labels", "apple,river,cloud", "--none", "--name", "some", "--json")
    assert json.loads(refusing.out)["counts"]["none of these"] == 60
    asked = sonde("label", folder, "--ask", "-k", 2, "--json")
    assert len(asked.out.splitlines()) == 2 and "margin" in json.loads(asked.out.splitlines()[0])
    sonde("label", folder, "--ask", "--labels", "a,b").refused("--ask needs a collection that has labels", code=2)
    sonde("label", folder, "--ask", "-k", 0).refused("-k is 0: show 1 document or more", code=2)


def test_refused_texts_are_reviewed_by_how_close_the_refusal_was() -> None:
    shares = np.array([[0.95, 0.05], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]])
    close = closeness(shares, False, 0.0)
    none, refused = np.array([0.95, 0.1, 0.6, 0.55]), np.array([True, False, True, False])
    found = beside_refusal(close, none, refused, shares)
    np.testing.assert_allclose(found["margins"], [0.35, 0.2, 0.0, 0.05], atol=1e-6)
    assert found["others"].tolist() == [0, 1, 1, NONE]
    np.testing.assert_allclose(found["other_scores"], [0.95, 0.4, 0.8, 0.55], atol=1e-6)
    assert beside_refusal(close, None, None, shares) is close

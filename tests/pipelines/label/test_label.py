"""Zero-shot labels: NLI as transformers computes it, templates, labels, thresholds, entailment, bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import TEXTS
from tiny_pairs import NLI, build_pairs, save_pairs
from transformers import pipeline

from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.label import (
    Label,
    LabelSettings,
    NliClasses,
    NliJudge,
    RerankerJudge,
    classify,
    engines,
    entail,
    make_labels,
    read_labels,
)
from sonde.pipelines.label.engines import TEMPERATURE, YES, LateJudge, load_judge, load_nli
from sonde.pipelines.label.labels import NONE
from sonde.pipelines.label.outcome import closeness, decide
from sonde.pipelines.label.settings import Budget
from sonde.pipelines.label.solvers import log_odds, probabilities, sigmoid
from sonde.pipelines.pairs import PairModel
from sonde.pipelines.search.rerank.late import LateInteraction, Rarity

NAMES = ["refund", "battery life", "garden plants", "money"]
FULL = [text for text in TEXTS if text]
ENCODER: Any = FakeEncoder()


@pytest.fixture(scope="module", params=["bart", "bert"])
def built(request: pytest.FixtureRequest) -> Any:
    return build_pairs(request.param)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("template", ["This example is {}.", "It is about {}, I think."])
def test_numbers_are_those_of_transformers_pipeline(built: Any, multi_label: bool, template: str) -> None:
    model, tokenizer = built
    peer = pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
    judge = NliJudge(PairModel(model, tokenizer))
    settings = LabelSettings(engine="nli", multi_label=multi_label, template=template)
    judge.template = template
    found = classify(FULL, NAMES, settings, encoder=ENCODER, judge=judge)
    for text, ours in zip(FULL, found, strict=True):
        theirs: Any = peer(text, NAMES, hypothesis_template=template, multi_label=multi_label)
        wanted = dict(zip(theirs["labels"], theirs["scores"], strict=True))
        assert ours.scores == pytest.approx(wanted, abs=1e-4)
        assert list(ours.scores) == theirs["labels"] and (ours.engine, ours.model) == ("nli", "model")
        assert multi_label or (sum(ours.scores.values()) == pytest.approx(1) and ours.labels == (theirs["labels"][0],))


def test_the_order_of_the_classes_is_read_from_the_configuration() -> None:
    """entailment first, contradiction in the middle: what transformers' pipeline takes for the wrong class."""
    model, tokenizer = build_pairs("bert", {0: "ENTAILMENT", 1: "Contradiction", 2: "neutral"})
    assert NliClasses.of(PairModel(model, tokenizer)) == NliClasses(0, 1, 2)
    model, tokenizer = build_pairs("bert", {0: "entailment", 1: "not_entailment"})
    assert NliClasses.of(PairModel(model, tokenizer)) == NliClasses(0, 1, None)
    assert NliClasses.of(PairModel(*build_pairs("bert", NLI))) == NliClasses(2, 0, 1)


def test_a_model_without_a_class_of_entailment() -> None:
    pairs = PairModel(*build_pairs("bert", {0: "negative", 1: "positive"}))
    with pytest.raises(
        SondeError, match=r"is no NLI model: none of its classes is entailment \(they are negative, pos"
    ):
        NliJudge(pairs)
    with pytest.raises(SondeError, match="gives 2 scores a pair, a reranker one"):
        RerankerJudge(pairs)


def test_only_the_shortlisted_labels_are_judged() -> None:
    judge = NliJudge(PairModel(*build_pairs("bert")))
    labels = make_labels(NAMES)
    chosen = np.array([[True, False, True, False]] * len(FULL))
    full, some = judge.margins(FULL, labels, False), judge.margins(FULL, labels, False, chosen)
    assert np.isnan(some[:, [1, 3]]).all()
    np.testing.assert_allclose(some[:, [0, 2]], full[:, [0, 2]], atol=1e-5)
    shares = probabilities(some, False)
    assert (shares[:, [1, 3]] == 0).all() and shares.sum(axis=1) == pytest.approx(1)


def test_a_reranker_reads_the_label_as_the_query() -> None:
    model, tokenizer = build_pairs("bert", {0: "score"})
    judge = RerankerJudge(PairModel(model, tokenizer))
    labels = make_labels(["refund: money back", "battery"])
    wanted = PairModel(model, tokenizer).logits([("refund: money back", FULL[0]), ("battery", FULL[0])], cut="longest")
    np.testing.assert_allclose(judge.margins(FULL[:1], labels, False)[0], wanted[:, 0], atol=1e-6)


def test_late_interaction_reranks_where_no_model_is_named() -> None:
    texts, names = ["a refund please", "the battery died", "garden"], ["refund", "battery: it died", "garden"]
    rarity = Rarity.of([tokens.ids for tokens in ENCODER.tokenize(texts)])
    judge, labels = LateJudge(ENCODER, rarity), make_labels(names)
    ranker = LateInteraction(ENCODER, rarity)
    wanted = np.stack([ranker.score(label.wording, texts) for label in labels], axis=1)
    np.testing.assert_allclose(judge.margins(texts, labels, False), wanted / TEMPERATURE, atol=1e-5)
    np.testing.assert_allclose(judge.margins(texts, labels, True), (wanted - YES) / TEMPERATURE, atol=1e-5)
    chosen = np.eye(3, dtype=bool)
    assert (np.isnan(judge.margins(texts, labels, False, chosen)) == ~chosen).all()
    for model in (None, "late"):
        found = classify(texts, names, LabelSettings(engine="reranker", model=model), encoder=ENCODER)
        assert [each.label for each in found] == ["refund", "battery", "garden"]
        assert {(each.engine, each.model) for each in found} == {("reranker", f"late, {ENCODER.spec.name}")}


def test_similarity_and_the_ensemble_of_one_text() -> None:
    [found] = classify(["a refund please"], ["refund", "praise"], LabelSettings(engine="similarity"), encoder=ENCODER)
    assert found.label == "refund" and sum(found.scores.values()) == pytest.approx(1) and found.engine == "similarity"
    judge = NliJudge(PairModel(*build_pairs("bert")))
    [nli] = classify(
        ["a refund please"], ["refund", "praise"], LabelSettings(engine="nli"), encoder=ENCODER, judge=judge
    )
    settings = LabelSettings(engine="ensemble")
    [both] = classify(["a refund please"], ["refund", "praise"], settings, encoder=ENCODER, judge=judge)
    root = {name: (found.scores[name] * nli.scores[name]) ** 0.5 for name in nli.scores}
    total = sum(root.values())
    assert both.scores == pytest.approx({name: value / total for name, value in root.items()}, abs=1e-6)


def test_a_threshold_leaves_none_of_these() -> None:
    settings = LabelSettings(engine="similarity", threshold=1.0)
    [found] = classify(["nothing known"], ["refund", "praise"], settings, encoder=ENCODER)
    assert (found.label, found.labels) == ("none of these", ())
    assert found.to_dict()["label"] == "none of these"


@given(
    st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), min_size=1, max_size=8), st.booleans(), st.floats(0, 1)
)
def test_every_text_gets_labels_or_none_of_these(rows: list[list[float]], multi_label: bool, least: float) -> None:
    margins = np.array(rows)
    shares = probabilities(margins, multi_label)
    texts, labels, scores = decide(shares, multi_label, least)
    assert sorted(set(texts.tolist())) == list(range(len(rows)))
    for text, label, score in zip(texts, labels, scores, strict=True):
        assert score == (shares[text, label] if label >= 0 else shares[text].max())
        assert score >= least if label >= 0 else score < max(least, 1e-12)
    if not multi_label:
        assert len(texts) == len(rows)
    np.testing.assert_allclose(probabilities(log_odds(shares, multi_label), multi_label), shares, atol=1e-6)


def test_labels_from_texts_mappings_and_files(tmp_path: Path) -> None:
    wanted = (Label("refund", "the customer wants money back"), Label("praise"))
    assert make_labels("praise, refund: the customer wants money back") == wanted[::-1]
    assert make_labels(["refund:  the customer wants money back", " praise "]) == wanted
    assert make_labels({"refund": "the customer wants money back", "praise": ""}) == wanted
    assert make_labels(wanted) == wanted and wanted[0].wording == "refund: the customer wants money back"
    file = tmp_path / "labels.txt"
    file.write_text('# what customers want\n"refund: the customer wants money back"\n\npraise\n')
    assert make_labels(read_labels(file)) == wanted
    assert len(make_labels([f"label {n}" for n in range(1_000)])) == 1_000


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("", "no labels given"),
        ([], "no labels given"),
        ("refund", "'refund' is the only label, so every text would get it: give two or more$"),
        ("a,,b", "label 2 of 3 is empty"),
        (["a", " "], "label 2 of 2 is empty"),
        ("Refund,praise,refund", "label 3 'refund' repeats label 1"),
        (
            "card: it is lost, stolen,praise",
            "^the comma before 'stolen' may be part of the description of 'card', or begin a label: for a description "
            "with commas, write \"card: it is lost, stolen\" in double quotes; for a label, put 'stolen' before the "
            "labels with a description$",
        ),
        ("none of these,a", "that no label fits: leave it out$"),
        (map(str, range(200_000)), "there are 200,000 labels; the maximum is 2,000: give fewer and broader ones, and"),
    ],
)
def test_labels_that_cannot_be(labels: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_labels(labels)


def test_one_label_with_several_per_text_is_yes_or_no() -> None:
    assert make_labels("refund", several=True) == (Label("refund"),)
    settings = LabelSettings(engine="similarity", multi_label=True)
    assert next(each.label for each in classify(["refund", "xyzzy"], "refund", settings, encoder=ENCODER)) == "refund"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"template": "no place"}, r"the template 'no place' must hold \{\} once"),
        ({"template": "{} and {}"}, r"must hold \{\} once"),
        ({"engine": "magic"}, "there is no engine 'magic': use nli, similarity, reranker, ensemble"),
        ({"threshold": 1.5}, "the threshold 1.5 is no probability"),
        ({"shortlist": 1}, "a shortlist of 1 leaves nothing to judge"),
        ({"budget": "soon", "engine": "nli"}, "the budget 'soon' is neither a number of judgements nor a time"),
        ({"budget": 100, "engine": "similarity"}, "similarity has none"),
        ({"model": "bundled", "engine": "similarity"}, "similarity has the collection's"),
        ({"model": "./gone", "engine": "nli"}, "there is no model './gone'"),
    ],
)
def test_settings_that_cannot_be(settings: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        classify(["a text"], ["a", "b"], LabelSettings(**settings), encoder=ENCODER)


def test_texts_that_cannot_be() -> None:
    settings = LabelSettings(engine="similarity")
    with pytest.raises(UsageError, match="text 2 of 2 is empty"):
        classify(["a", "  "], ["a", "b"], settings, encoder=ENCODER)
    assert classify([], ["a", "b"], settings, encoder=ENCODER) == []
    judge = NliJudge(PairModel(*build_pairs("bert")))
    [found] = classify(["word " * 20_000], ["a", "b"], LabelSettings(engine="nli"), encoder=ENCODER, judge=judge)
    assert sum(found.scores.values()) == pytest.approx(1)


def test_budgets() -> None:
    assert Budget.parse("5,000").calls == 5_000 and Budget.parse(7).calls == 7 and Budget.parse(None) == Budget()
    assert [Budget.parse(text).seconds for text in ("300ms", "90s", "5m", "2min", "1.5h")] == [0.3, 90, 300, 120, 5_400]
    assert not Budget.parse("1h").over()


def test_entailment_of_a_pair(tmp_path: Path) -> None:
    model, tokenizer = build_pairs("bert")
    found = entail(FULL[0], "a battery", PairModel(model, tokenizer))
    logits = PairModel(model, tokenizer).logits([(FULL[0], "a battery")])[0]
    wanted = np.exp(logits) / np.exp(logits).sum()
    assert [found.contradiction, found.neutral, found.entailment] == pytest.approx(wanted.tolist(), abs=1e-6)
    assert found.label == ("contradiction", "neutral", "entailment")[int(wanted.argmax())]
    with pytest.raises(UsageError, match="the hypothesis is empty"):
        entail("a", " ", PairModel(model, tokenizer))


def test_sonde_classify_and_entail_with_a_folder(tmp_path: Path) -> None:
    import sonde

    folder = str(save_pairs(tmp_path))
    assert sonde.entail("a", "b", model=folder).model == folder
    [found] = sonde.classify(["a text"], ["a", "b"], engine="nli", model=folder, encoder=ENCODER)
    assert found.model == folder and found.engine == "nli"


@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_the_bundled_nli_model_is_the_default_on_every_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, said = PairModel(*build_pairs("bert"), name="bundled"), list[object]()
    monkeypatch.setattr(engines, "resolve_devices", lambda _: [device])
    monkeypatch.setattr(engines, "load_bundled_nli", lambda *_: pairs)
    monkeypatch.setattr(engines, "load_pair_model", lambda *_, **__: pytest.fail("a model of the hub was loaded"))
    assert load_nli(notify=said.append) is pairs
    advice = "using the bundled NLI model; this machine has a GPU, and model facebook/bart-large-mnli is more accurate"
    assert said == ([advice] if device == "cuda:0" else [])
    judge = load_judge("nli", late=lambda: pytest.fail("not asked for"), notify=said.append)
    assert isinstance(judge, NliJudge) and (judge.model, judge.template) == ("bundled", "This text is about {}.")
    said.clear()
    assert load_nli("bundled", notify=said.append) is pairs
    assert said == []


def test_labels_with_commas_are_quoted() -> None:
    assert [label.name for label in make_labels('"a, b", linq,c')] == ["a, b", "linq", "c"]
    for text in ('"a, b', '"a"b,c'):
        with pytest.raises(UsageError, match="a double quote that is not closed, or text right after one"):
            make_labels(text)


def test_closeness_by_hand() -> None:
    shares = np.array([[0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.34, 0.33, 0.33]])
    one = closeness(shares, False, 0.0)
    assert one["margins"].tolist() == pytest.approx([0.1, 0.4, 0.01], abs=1e-6)
    assert one["others"].tolist() == [1, 0, 1]
    assert one["other_scores"].tolist() == pytest.approx([0.4, 0.2, 0.33], abs=1e-6)
    least = closeness(shares, False, 0.55)
    assert least["margins"].tolist() == pytest.approx([0.05, 0.05, 0.21], abs=1e-6)
    assert least["others"].tolist() == [0, NONE, 0]
    assert least["other_scores"].tolist() == pytest.approx([0.5, np.nan, 0.34], abs=1e-6, nan_ok=True)
    several = closeness(sigmoid(np.array([[0.0, 2.0], [3.0, -1.0]])), True, 0.5)
    assert several["margins"].tolist() == pytest.approx([0.0, 0.2310586], abs=1e-6)
    assert several["others"].tolist() == [0, 1]
    assert several["other_scores"].tolist() == pytest.approx([0.5, 0.2689414], abs=1e-6)

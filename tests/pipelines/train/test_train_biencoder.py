"""Tuning a bi-encoder: what examples are, which wrong passages are mined, that it learns, goes on and can be used."""
# ruff: noqa: F811  (fixtures that are imported)

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Command, command
from fake_encoder import FakeEncoder
from safetensors.torch import load_file
from tiny_training import base, one_thread  # noqa: F401  (fixtures)
from tuned_run import SETTINGS

import sonde as package
from sonde.indexer.document import Document
from sonde.indexer.encoder import load_encoder
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError
from sonde.pipelines.evaluate.search import gain, per_query
from sonde.pipelines.train.biencoder import BiencoderSettings, pairs, read_examples, train_biencoder
from sonde.pipelines.train.biencoder.batches import columns_of, mined, pairs_of_collection
from sonde.pipelines.train.biencoder.examples import HeldOut, divided, groups_of
from sonde.pipelines.train.biencoder.measure import corpus_of

pytest.importorskip("accelerate", reason="needs the extra train")
NOUNS = ("battery", "fan", "parcel", "tomatoes", "password", "profits", "basil", "frost")
VERBS = ("died", "like", "from", "week", "water")
FAST = replace(SETTINGS, save_every=60)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A passage has its query's verb, and for each noun always the same other one: before, it is found by nobody."""
    path = tmp_path / "answers.jsonl"
    rows = [
        {"query": f"how {noun} {verb}", "passage": f"The {verb} after the company; and {other} it does."}
        for noun, other in zip(NOUNS, NOUNS[3:] + NOUNS[:3], strict=True)
        for verb in VERBS
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_columns_say_what_examples_a_file_holds(tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "answer": f"a{n}", "negative_1": f"w{n}", "negative_2": ""} for n in range(8)]
    found = read_examples(write(tmp_path / "pairs.jsonl", rows))
    assert (found.kind, found.first[2], found.second[2], found.wrong[2]) == ("pairs", "q2", "a2", ("w2",))
    (tmp_path / "scores.csv").write_text("sentence1,sentence2,score\n" + "".join(f"a{n},b{n},{n}\n" for n in range(8)))
    assert read_examples(tmp_path / "scores.csv").scores[:3] == (0.0, 1.0, 2.0)
    (tmp_path / "labels.csv").write_text("text,category\n" + "".join(f"t{n},{'xy'[n % 2]}\n" for n in range(8)))
    assert read_examples(tmp_path / "labels.csv").labels == tuple("xyxyxyxy")
    chosen = read_examples(tmp_path / "scores.csv", "pairs", "sentence2,sentence1")
    assert (chosen.first[0], chosen.second[0]) == ("b0", "a0")


@pytest.mark.parametrize(
    ("name", "content", "options", "says"),
    [
        ("a.csv", "x,y\n" + "1,2\n" * 9, {}, "the roles of the columns"),
        ("a.csv", "query,passage\n" + "a,b\n" * 3, {}, "3 examples: at least 8"),
        ("a.csv", "query,passage\n" + "a,b\n" * 8 + "a,\n", {}, "'passage' must be a text"),
        ("a.csv", "text,label\n" + "a,same\n" * 9, {}, "every text has the label 'same'"),
        ("a.csv", "sentence1,sentence2,score\n" + "a,b,2\n" * 9, {}, "every pair has the score 2"),
        ("a.csv", "sentence1,sentence2,score\n" + "a,b,1\n" * 9 + "a,b,high\n", {}, "must be a number, not 'high'"),
        ("a.csv", "query,passage\n" + "a,b\n" * 9, {"columns": "query,pasage"}, "no column 'pasage'.*passage"),
        ("a.csv", "query,passage\n" + "a,b\n" * 9, {"kind": "triples"}, "no kind of examples 'triples'"),
        ("a.csv", "query,passage\n" + "a,b\n" * 9, {"kind": "scores"}, "no score column"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(
    tmp_path: Path, name: str, content: str, options: dict[str, Any], says: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SondeError, match=says) as raised:
        read_examples(tmp_path / name, **options)
    assert "\n" not in str(raised.value)


def test_texts_that_are_shared_bind_examples_together() -> None:
    groups = groups_of(("a", "A ", "b", "c"), ("x", "y", "y", "z"))
    assert len(set(groups[:3].tolist())) == 1
    assert groups[3] != groups[0]
    many = pairs([f"q{n // 2}" for n in range(200)], [f"a{n}" for n in range(200)])
    taught, held = divided(many, 0.1, seed=1)
    assert (len(taught), len(held)) == (180, 20)
    assert not set(taught.first) & set(held.first)
    judged = pairs([f"q{n // 12}" for n in range(240)], [f"a{n * 7 % 61}" for n in range(240)])
    assert len(set(judged.groups.tolist())) == 1, "as judgements: each query shares a passage with another one"
    taught, held = divided(judged, 0.1, seed=1)
    assert (len(taught), len(held), len(set(held.first))) == (216, 24, 2)
    assert not set(taught.first) & set(held.first)
    shared = len(set(taught.second) & set(held.second))
    tried = HeldOut.of(held, taught)
    assert (str(tried), tried.trained_on) == ("2 queries (24 pairs)", shared)
    assert tried.overlap == f"{shared} of the {len(set(held.second))} held-out passages were trained on too"
    assert (
        HeldOut.of(pairs(["q"], ["a"]), pairs(["r"], ["b"])).overlap == "none of the held-out passages was trained on"
    )
    assert HeldOut.of(pairs(["q"], ["A "]), pairs(["r"], ["b"], [["a"]])).trained_on == 1, "as a wrong passage"
    with pytest.raises(SondeError, match="none can be held out"):
        divided(pairs(["q"] * 40, [f"a{n}" for n in range(40)]), 0.1, seed=1)


class Planted(FakeEncoder):
    """Vectors put in by hand."""

    spec = replace(FakeEncoder.spec, digest="3" * 64)  # similarities of another scale, which is kept per model

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__()
        self.planted = vectors

    def tokenize(self, texts: Any, *, query: bool = False) -> Any:
        return texts

    def encode(self, tokens: Any, *, on_batch: Any = None) -> np.ndarray:
        return np.array([self.planted[text] for text in tokens], np.float32)


def test_mined_passages_are_near_and_those_that_may_be_answers_are_left_out() -> None:
    vectors = {
        "battery": [1.0, 0.0, 0.0],
        "right": [0.6, 0.8, 0.0],
        "nearly the same": [0.6, 0.79, 0.1],
        "nearer than the right one": [0.9, 0.0, 0.43],
        "wrong and near": [0.5, 0.0, 0.86],
        "wrong and far": [-0.5, 0.0, 0.86],
        "given": [0.0, 0.0, 1.0],
    }
    others = [text for text in vectors if text not in ("battery", "right", "given")]
    examples = pairs(["battery", *others], ["right", *others], [("given",), *[()] * len(others)])
    encoder: Any = Planted(vectors)
    found = mined(examples, encoder, 3)
    assert found.wrong[0] == ("given", "wrong and near", "wrong and far")
    assert all(row not in wrong for row, wrong in zip(found.second, found.wrong, strict=True))


def test_rows_without_enough_wrong_passages_are_filled_from_other_groups() -> None:
    examples = pairs([f"q{n}" for n in range(8)], [f"a{n}" for n in range(8)], [("w",), *[()] * 7])
    columns = columns_of(examples, BiencoderSettings(negatives=1))
    assert columns["negative_1"][0] == "w"
    assert all(text != f"a{n}" for n, text in enumerate(columns["negative_1"]))


def test_labelled_texts_become_as_many_equal_as_different_pairs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(f"t{n},{'xyz'[n % 3]}\n" for n in range(12)))
    examples = read_examples(tmp_path / "a.csv")
    columns = columns_of(examples, BiencoderSettings())
    label = dict(zip(examples.first, examples.labels, strict=True))
    assert sum(columns["label"]) == len(columns["label"]) / 2
    for first, second, same in zip(*columns.values(), strict=True):
        assert ((label[first] == label[second]), first != second) == (bool(same), True)


def test_a_tuned_model_is_better_on_held_out_queries_and_is_indexed_with(
    base: Path, data: Path, tmp_path: Path
) -> None:
    settings = replace(FAST, epochs=10, rate=5e-3)
    made = train_biencoder(data, tmp_path / "tuned", base=str(base), settings=settings, share=0.2, device="cpu")
    first = made.gains[0]
    assert (made.trained, made.held, first.measure, first.examples) == (32, 8, "ndcg@10", 8)
    assert first.after > first.before + 0.2
    card = (tmp_path / "tuned" / "README.md").read_text()
    assert "answers.jsonl" in card and "seed: 3" in card and f"| ndcg@10 | {first.before:.4f} |" in card
    facts = json.loads((tmp_path / "tuned" / "training.json").read_text())
    assert (facts["settings"]["seed"], facts["gains"][0]["after"]) == (3, first.after)
    assert not list(tmp_path.glob("*.training"))
    texts = [json.loads(line)["passage"] for line in data.read_text().splitlines()]
    indexed = package.index([Document(text) for text in texts], tmp_path / "c.sonde", model=str(tmp_path / "tuned"))
    encoder = load_encoder(str(tmp_path / "tuned"), device="cpu")
    hit = indexed.search("how frost died", k=1, mode="dense").hits[0]
    similar = encoder.encode_texts(texts) @ encoder.encode_texts(["how frost died"], query=True)[0]
    assert hit.passage.text == texts[int(similar.argmax())]
    assert hit.score == pytest.approx(float(similar.max()), abs=2e-3)


@pytest.mark.long
def test_a_run_killed_by_a_signal_ends_with_the_weights_of_an_undisturbed_one(
    base: Path, data: Path, tmp_path: Path
) -> None:
    runner = Path(__file__).parents[2] / "support" / "tuned_run.py"
    command = [sys.executable, str(runner), str(base), str(data), str(tmp_path / "torn"), "9"]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    half = tmp_path / "torn.training" / "checkpoint-99"  # what a kill in the middle of a checkpoint leaves
    half.mkdir()
    options: dict[str, Any] = {"base": str(base), "settings": SETTINGS, "share": 0.2, "device": "cpu"}
    with pytest.raises(SondeError, match="other data or settings"):
        train_biencoder(data, tmp_path / "torn", **{**options, "settings": replace(SETTINGS, rate=1e-3)})
    torn = train_biencoder(data, tmp_path / "torn", **options)
    whole = train_biencoder(data, tmp_path / "whole", **options)
    assert (torn.fit.resumed, torn.fit.steps, whole.fit.resumed) == (8, 16, 0)
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("torn", "whole"))
    assert [name for name in one if not torch.equal(one[name], other[name])] == []
    assert torn.gains == whole.gains


@pytest.mark.long
def test_lora_trains_little_and_leaves_an_ordinary_model(base: Path, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    settings = replace(FAST, epochs=10, lora=2, rate=3e-2)
    made = train_biencoder(data, tmp_path / "tuned", base=str(base), settings=settings, share=0.2, device="cpu")
    assert made.gains[0].after > made.gains[0].before
    before, after = (load_file(folder / "model.safetensors") for folder in (base, tmp_path / "tuned"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert set(before) == set(after)
    assert changed and all("dense" in name or "query" in name or "key" in name or "value" in name for name in changed)
    difference = after[sorted(changed)[0]] - before[sorted(changed)[0]]
    assert torch.linalg.matrix_rank(difference, rtol=1e-4) <= 2


def alike(one: str, other: str) -> bool:
    """A rule that no untrained model knows: the next noun of the first four means the same."""
    return NOUNS[(NOUNS.index(one) + 1) % 4] == other


@pytest.mark.long
def test_scores_and_labels_teach_too(base: Path, tmp_path: Path) -> None:
    rows = [
        {"sentence1": f"the {one} died {n}", "sentence2": f"a {other} died", "score": 5.0 * alike(one, other)}
        for one in NOUNS[:4] for other in NOUNS[:4] for n in range(3)
    ]  # fmt: skip
    scored = write(tmp_path / "scores.jsonl", rows)
    settings = replace(FAST, epochs=8, rate=5e-3)
    options: dict[str, Any] = {"base": str(base), "settings": settings, "device": "cpu"}
    with pytest.raises(SondeError, match="none can be held out"):
        train_biencoder(scored, tmp_path / "no", **options)
    held = write(tmp_path / "held.jsonl", [
        {"sentence1": f"{one} like", "sentence2": f"like {other}", "score": 5.0 * alike(one, other)}
        for one in NOUNS[:4] for other in NOUNS[:4]
    ])  # fmt: skip
    made = train_biencoder(scored, tmp_path / "scores", held_out=held, **options)
    assert (made.kind, made.gains[0].measure, made.held) == ("scores", "spearman", 16)
    assert made.gains[0].after > made.gains[0].before
    labelled = write(tmp_path / "labels.jsonl", [
        {"text": f"the {noun} {verb} {n}", "label": verb}
        for noun in NOUNS for verb in ("died", "like") for n in range(2)
    ])  # fmt: skip
    options["settings"] = replace(settings, epochs=4, batch=32)
    made = train_biencoder(labelled, tmp_path / "labels", share=0.25, **options)
    assert (made.kind, made.gains[0].measure) == ("labels", "accuracy")
    assert made.gains[0].after >= made.gains[0].before


def test_a_collection_gives_titles_and_neighbouring_passages(tmp_path: Path) -> None:
    long = " ".join(f"The battery of device {n} died after a week, and nobody answers." for n in range(60))
    rows = [{"id": n, "title": f"Title {n}", "text": f"Number {n}. " + long} for n in range(10)]
    encoder: Any = FakeEncoder()
    collection: Any = package.index(rows, tmp_path / "c.sonde", encoder=encoder).stored
    titles, both = (pairs_of_collection(collection, name) for name in ("titles", "both"))
    assert titles.first == tuple(f"Title {n}" for n in range(10))
    assert len(both) > len(titles)
    assert both.second[0].startswith("Number 0.")
    places = [place for place, group in enumerate(both.groups) if group == both.groups[0]]
    assert both.first[places[1]] == both.second[places[0]]  # the passage, then the one that follows it


def test_the_corpus_holds_every_held_out_passage_and_spreads_over_the_others() -> None:
    held, taught = pairs(["q"], ["right"]), pairs([f"q{n}" for n in range(100)], [f"a{n}" for n in range(100)])
    assert corpus_of(held, taught, 3) == ["right", "a0", "a99"]
    assert len(corpus_of(held, taught, 5_000)) == 101


def test_a_gain_is_paired_and_its_interval_is_that_of_the_difference() -> None:
    before, after = np.tile([0.0, 1.0], 50), np.tile([0.1, 1.1], 50)
    found = gain("ndcg@10", before, after)
    assert (found.before, found.after, found.sure) == (0.5, pytest.approx(0.6), True)
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))
    assert not gain("ndcg@10", before, before).sure


def test_measures_are_those_of_trec() -> None:
    truth = {"1": {"a": 1, "b": 1}, "2": {"c": 1}, "3": {"d": 1}}
    run = {"1": {"a": 3.0, "x": 2.0, "b": 1.0}, "2": {"x": 2.0, "c": 1.0}}
    found = per_query(run, truth)
    ideal = 1 + 1 / np.log2(3)
    assert found["ndcg@10"].tolist() == pytest.approx([(1 + 1 / 2) / ideal, 1 / np.log2(3), 0.0])
    assert found["mrr@10"].tolist() == [1.0, 0.5, 0.0]


def test_mistakes_are_found_before_anything_is_loaded(data: Path, tmp_path: Path) -> None:
    for options, says in (
        ({"settings": BiencoderSettings(batch=5)}, "even number of examples"),
        ({"settings": BiencoderSettings(epochs=0)}, "epochs must be above 0"),
        ({"settings": BiencoderSettings(negatives=11)}, "between 0 and 10"),
        ({"share": 0.9}, "at most 0.5"),
        ({"made_of": "poems"}, "not of 'poems'"),
        ({"base": "static"}, "static model has no layers"),
        ({"base": str(tiny_models.save_static(tmp_path)), "device": "cpu"}, "has no transformer to tune"),
    ):
        with pytest.raises(UsageError, match=says):
            train_biencoder(data, tmp_path / "no", **options)  # type: ignore[arg-type]


def test_a_missing_library_is_said_before_anything_is_computed(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "peft" else real(name, *rest))
    with pytest.raises(MissingExtraError, match=r"training with LoRA needs peft.*sonde\[train\]"):
        train_biencoder(data, tmp_path / "no", base=str(base), settings=BiencoderSettings(lora=4), device="cpu")
    assert not (tmp_path / "no.training").exists()


def test_the_command(
    base: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sonde: Command = command(capsys, monkeypatch)
    to = tmp_path / "tuned"
    options = ("--to", str(to), "--base", str(base), "--share", "0.2", "--max-tokens", "32", "--batch", "8")
    options += ("--cached", "4", "--logs", str(tmp_path / "logs"), "--device", "cpu")
    ran = sonde("train", "biencoder", str(data), *options, "--json")
    said = json.loads(ran.out)
    assert (ran.code, said["folder"], said["trained"], said["held_out"]) == (0, str(to), 32, 8)
    assert said["gains"]["mrr@10"]["examples"] == 8
    assert (said["held_out_queries"], said["held_out_texts"], said["held_out_texts_trained_on"]) == (8, 8, 0)
    assert "measured on 8 queries (8 pairs) only: the figures say little about others" in said["notes"]
    card = (to / "README.md").read_text()
    assert "8 queries (8 pairs) were held out; none of the held-out passages was trained on." in card
    assert list((tmp_path / "logs").glob("events.out.tfevents.*"))
    sonde("train", "biencoder", str(data), *options).refused("already exists", code=2)

"""Labelling a collection: runs, budgets, carried labels, killed runs, evaluation, the command line."""

import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder
from labelled_run import LABELS, SETTINGS, CountingJudge, label
from tiny_pairs import save_pairs

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.collection import StoredCollection as Stored
from sonde.indexer.store.kinds import LABEL
from sonde.indexer.store.runs import assignments_of, find_run, items_of
from sonde.indexer.upkeep.verify import verify
from sonde.pipelines.evaluate.labels import evaluate_labels
from sonde.pipelines.label import LabelSettings, label_collection
from sonde.pipelines.label.carry import carry, fit_linear, least_sure, spread
from sonde.pipelines.label.margins import AT_ONCE, shortlist
from sonde.pipelines.label.scores import adapted_margins
from sonde.pipelines.label.solvers import probabilities

RUNNER = Path(__file__).parents[2] / "support" / "labelled_run.py"
DOCUMENTS = 400


def documents() -> list[dict[str, Any]]:
    """Texts about one of three words each, with some others; their truth, a year, and two of several labels."""
    chance = random.Random(5)
    rows = []
    for n in range(DOCUMENTS):
        word = LABELS[n % 3]
        other = " ".join(chance.choices(["table", "winter", "letter", "music", "number"], k=2))
        rows.append(
            {
                "id": str(n),
                "text": f"{word} {word} {word} {word} {word} {other} {n}",
                "truth": word.title(),
                "year": 2000 + n % 20,
            }
        )
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels") / "c.sonde"
    encoder: Any = FakeEncoder()
    index(documents(), folder, text="text", id="id", encoder=encoder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "c.sonde"))


def results(folder: Path, name: str) -> tuple[dict[int, str], list[tuple[int, int, float]]]:
    """The run's items and what it says of each document."""
    stored = Stored.open(folder)
    with stored.view() as view:
        run = find_run(view.catalog, LABEL, name)
        names = {item.number: item.name for item in items_of(view.catalog, run)}
        found = list(zip(*(part.tolist() for part in assignments_of(view.catalog, run)), strict=True))
    stored.close()
    return names, found


def opened(folder: Path) -> Collection:
    encoder: Any = FakeEncoder()
    return Collection.open(folder, encoder=encoder)


def test_a_run_by_similarity(folder: Path) -> None:
    report = opened(folder).label(LABELS, engine="similarity")
    assert report.counts == {"apple": 134, "river": 133, "cloud": 133}
    assert (report.engine, report.model, report.calls, report.documents) == ("similarity", "fake", 0, DOCUMENTS)
    names, found = results(folder, "labels")
    assert names == dict(enumerate(LABELS)) and len(found) == DOCUMENTS
    quality = evaluate_labels(opened(folder).stored, "labels", "truth")
    assert (quality.accuracy, quality.macro_f1, quality.documents) == (1.0, 1.0, DOCUMENTS)
    assert opened(folder).to_pandas()["label:labels"].tolist() == [row["truth"].lower() for row in documents()]


def test_several_runs_stand_side_by_side(folder: Path) -> None:
    collection = opened(folder)
    collection.label(LABELS, engine="similarity", name="one")
    collection.label(["apple", "music"], engine="similarity", name="two", where="year >= 2010")
    assert len(results(folder, "one")[1]) == DOCUMENTS and len(results(folder, "two")[1]) == DOCUMENTS // 2
    with pytest.raises(UsageError, match="the label run 'one' already exists"):
        collection.label(LABELS, engine="similarity", name="one")
    assert collection.label(["a", "b"], engine="similarity", name="one", replace=True).documents == DOCUMENTS
    with pytest.raises(SondeError, match="no document passes the filter 'year > 3000'"):
        collection.label(LABELS, engine="similarity", name="three", where="year > 3000")


def test_several_labels_a_text_and_none_of_these(folder: Path, tmp_path: Path) -> None:
    settings = LabelSettings(engine="nli", multi_label=True, threshold=0.9, name="several")
    judge = CountingJudge(tmp_path / "log")
    report = label_collection(opened(folder).stored, ["apple", "music"], settings, judge=judge)
    names, found = results(folder, "several")
    texts = {n: row["text"] for n, row in enumerate(documents(), 1)}
    wanted = {
        doc: [n for n, name in enumerate(["apple", "music"]) if name in text] or [-1] for doc, text in texts.items()
    }
    assert {doc: sorted(n for each, n, _ in found if each == doc) for doc in texts} == wanted
    assert names[-1] == "none of these" and report.counts["none of these"] == sum(w == [-1] for w in wanted.values())
    column = opened(folder).to_pandas()["label:several"].tolist()
    assert all(set(cell) <= {"apple", "music", "none of these"} and cell for cell in column)


def test_a_budget_judges_a_sample_and_carries_the_rest(folder: Path, tmp_path: Path) -> None:
    report = label(folder, tmp_path / "log")
    assert (report.judged, report.calls, report.full_calls) == (120, 360, 3 * DOCUMENTS)
    assert len((tmp_path / "log").read_text().splitlines()) == 120
    assert report.held_back == 12 and report.agreement == 1.0
    assert evaluate_labels(opened(folder).stored, "judged", "truth").accuracy > 0.98
    assert not (folder / "labelling").exists() and verify(opened(folder).stored) == []


def test_a_budget_of_time(folder: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, budget="2s", name="timed")
    report = label(folder, tmp_path / "log", 0.1, settings)
    assert 16 <= report.judged < DOCUMENTS and report.documents == DOCUMENTS


def test_a_budget_for_all_judges_all(folder: Path, tmp_path: Path) -> None:
    report = label(folder, tmp_path / "log", settings=replace(SETTINGS, budget=10_000, name="all"))
    assert (report.judged, report.agreement) == (DOCUMENTS, None)


@pytest.mark.parametrize("after", [2, 5])
def test_a_killed_run_goes_on(folder: Path, tmp_path: Path, after: int) -> None:
    undisturbed = Path(shutil.copytree(folder, tmp_path / "u.sonde"))
    label(undisturbed, tmp_path / "undisturbed.log")
    log = tmp_path / "log"
    running = subprocess.Popen([sys.executable, str(RUNNER), str(folder), str(log), "0.3"])
    patience = time.monotonic() + 60
    while time.monotonic() < patience and (not log.exists() or len(log.read_text().splitlines()) < after * 16):
        time.sleep(0.02)
    running.kill()
    running.wait()
    before = len(log.read_text().splitlines())
    assert 0 < before < 120, "it was to be killed on its way"
    label(folder, log)
    times = Counter(log.read_text().splitlines())
    assert len(times) == 120 and sum(count - 1 for count in times.values()) <= AT_ONCE
    assert max(times.values()) <= 2
    assert results(folder, "judged") == results(undisturbed, "judged")
    assert not (folder / "labelling").exists()


def test_what_was_judged_under_other_settings_is_not_used(folder: Path, tmp_path: Path) -> None:
    class Broken(CountingJudge):
        def margins(self, texts: Any, labels: Any, *rest: Any, **more: Any) -> np.ndarray:
            if self.log.exists() and len(self.log.read_text().splitlines()) >= 2 * AT_ONCE:
                raise SondeError("the judge has gone")
            return super().margins(texts, labels, *rest, **more)

    settings = replace(SETTINGS, budget=None, name="broken")
    with pytest.raises(SondeError, match="the judge has gone"):
        label_collection(opened(folder).stored, LABELS, settings, judge=Broken(tmp_path / "log"))
    [journal] = (folder / "labelling").glob("*.jsonl")
    with journal.open("ab") as stream:
        stream.write(b'[["torn')  # what a kill in the middle of a line leaves
    second = CountingJudge(tmp_path / "second")
    said: list[Any] = []
    label_collection(opened(folder).stored, LABELS, settings, judge=second, notify=said.append)
    assert f"continuing: {2 * AT_ONCE} documents already judged" in said
    assert len(second.log.read_text().splitlines()) == DOCUMENTS - 2 * AT_ONCE
    third = CountingJudge(tmp_path / "third")
    with pytest.raises(SondeError, match="the judge has gone"):
        label_collection(opened(folder).stored, LABELS, replace(settings, name="x"), judge=Broken(tmp_path / "log2"))
    label_collection(opened(folder).stored, LABELS, replace(settings, name="x", multi_label=True), judge=third)
    assert len(third.log.read_text().splitlines()) == DOCUMENTS


def test_the_shortlist_is_the_most_similar_labels() -> None:
    similar = np.array([[0.1, 0.9, 0.5, 0.3], [0.8, 0.2, 0.1, 0.7]])
    found = shortlist(similar, LabelSettings(shortlist=2))
    assert found is not None and found.tolist() == [[False, True, True, False], [True, False, False, True]]
    assert shortlist(similar, LabelSettings(shortlist=0)) is None and shortlist(similar, LabelSettings()) is None


def test_a_thousand_labels(folder: Path, tmp_path: Path) -> None:
    many = [*LABELS, *(f"nonsense {n}" for n in range(997))]
    judge = CountingJudge(tmp_path / "log")
    settings = LabelSettings(engine="nli", name="many", where="year = 2003")
    report = label_collection(opened(folder).stored, many, settings, judge=judge)
    assert report.calls == 10 * report.documents and report.full_calls == 1_000 * report.documents
    assert evaluate_labels(opened(folder).stored, "many", "truth").accuracy == 1.0


def test_labels_adapt_to_the_corpus() -> None:
    """Names that lie a little beside their texts are drawn to them; a rare label keeps its texts."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((2, 8)).astype(np.float32)
    truth = np.array([0] * 190 + [1] * 10)
    texts = centres[truth] + 0.3 * rng.standard_normal((200, 8)).astype(np.float32)
    names = (centres + 0.9 * rng.standard_normal((2, 8))).astype(np.float32)
    names /= np.linalg.norm(names, axis=1, keepdims=True)
    found = adapted_margins(texts, names)
    assert (found.argmax(axis=1) == truth).all()
    np.testing.assert_array_equal(found, adapted_margins(texts, names))


def test_a_linear_model_of_probabilities() -> None:
    rng = np.random.default_rng(0)
    features, weights = rng.standard_normal((500, 6)), rng.standard_normal((6, 3))
    for multi_label in (False, True):
        shares = probabilities(features @ weights, multi_label)
        found = probabilities(fit_linear(features, shares, multi_label, 1e-6).margins(features), multi_label)
        np.testing.assert_allclose(found, shares, atol=0.01)


def test_samples_are_spread_then_unsure() -> None:
    rng = np.random.default_rng(0)
    vectors = np.repeat(np.eye(4, dtype=np.float32), [97, 1, 1, 1], axis=0)
    found = spread(vectors, 4, rng, np.empty(0, np.int64))
    assert sorted(vectors[found].argmax(axis=1).tolist()) == [0, 1, 2, 3]
    assert len(spread(vectors, 200, rng, np.array([3]))) == 99
    shares = np.array([[0.9, 0.1], [0.51, 0.49], [0.2, 0.8], [0.5, 0.5]])
    assert least_sure(shares, 1, rng, np.array([1, 2, 0])).tolist() == [3]
    assert least_sure(shares, 9, rng, np.array([1])).tolist() == [0, 2, 3]


def test_the_agreement_is_measured_on_texts_that_the_model_has_not_seen() -> None:
    """A judge that answers by chance: the model cannot agree with it beyond chance."""
    rng = np.random.default_rng(1)
    answers = rng.standard_normal((600, 2)).astype(np.float32) * 5
    vectors = rng.standard_normal((600, 16)).astype(np.float32)
    found = carry(lambda rows: answers[rows], vectors, np.zeros((600, 2)), 300, False)
    assert found.agreement is not None and 0.2 < found.agreement < 0.8 and found.held_back == 30
    assert len(found.judged) == 300 == len(set(found.judged.tolist()))
    assert (found.margins[found.judged].argmax(axis=1) == answers[found.judged].argmax(axis=1)).all()


def test_evaluation_against_a_column(folder: Path) -> None:
    collection = opened(folder)
    collection.label(["apple", "music"], engine="similarity", threshold=0.0)
    quality = evaluate_labels(collection.stored, None, "truth")
    assert quality.run == "labels" and quality.notes == (
        "the run has no label for these values of 'truth': cloud, river; documents with these values count as wrong",
    )
    true = [row["truth"].lower() for row in documents()]
    frame = collection.to_pandas()
    from sklearn.metrics import accuracy_score, f1_score

    assert quality.accuracy == pytest.approx(accuracy_score(true, frame["label:labels"]))
    assert quality.macro_f1 == pytest.approx(f1_score(true, frame["label:labels"], average="macro"))
    assert sum(count for _, _, count in quality.confusion) == DOCUMENTS
    with pytest.raises(
        UsageError, match="there is no column 'nothing' that could hold the truth: there are truth, year"
    ):
        evaluate_labels(collection.stored, None, "nothing")
    with pytest.raises(SondeError, match="no label run 'other'"):
        evaluate_labels(collection.stored, "other", "truth")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_evaluation_against_a_file(folder: Path, sonde: Command, tmp_path: Path, suffix: str) -> None:
    opened(folder).label(LABELS, engine="similarity", threshold=0.0)
    rows = [{"ID": n, "class": LABELS[n % 3].upper()} for n in range(300)] + [{"ID": 9000, "class": "x"}]
    frame, path = pd.DataFrame([*rows, {"ID": 399, "class": None}]), tmp_path / f"truth.{suffix}"
    write = {
        "csv": frame.to_csv,
        "parquet": frame.to_parquet,
        "jsonl": partial(frame.to_json, orient="records", lines=True),
    }
    write[suffix](path)
    ran = sonde("evaluate", "labels", folder, "--truth", path, "--json")
    quality = json.loads(ran.out)
    assert (quality["documents"], quality["accuracy"], quality["truth"]) == (300, 1.0, str(path))
    assert quality["notes"] == [
        f"1 id of 301 in '{path}' belongs to no document: '9000'; left out",
        f"100 documents without a value in '{path}' left out",
    ]


def test_a_file_of_true_labels_that_says_nothing(folder: Path, tmp_path: Path) -> None:
    collection = opened(folder)
    collection.label(LABELS, engine="similarity", threshold=0.0)
    for text, said in {
        "id,label\nx,apple\ny,apple\n": r"2 ids of 2 in '.*t.csv' belong to no document: 'x', 'y'$",
        "id,text\nx,apple\n": r"t.csv must have the columns id and label, not id, text$",
        "id,label\n1,apple\n1,river\n": r"rows 1 and 2 of .*t.csv give '1' different labels, apple and river",
        "id,label\n1,\n2,\n": r"no row of .*t.csv has a label in the column 'label'$",
        "id,label\n,apple\n2,\n": r"t.csv, .*: a label needs the id of a document$",
    }.items():
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(SondeError, match=said):
            collection.evaluate_labels(truth=tmp_path / "t.csv")


def test_a_mapping_of_true_labels_that_says_nothing(folder: Path) -> None:
    collection = opened(folder)
    collection.label(LABELS, engine="similarity", threshold=0.0)
    nothing: list[dict[str, str | list[str]]] = [{}, {"1": ""}, {"1": [], "2": " "}]
    for truth in nothing:
        with pytest.raises(UsageError, match="truth has no labels: give the id of at least one document with its"):
            collection.evaluate_labels(truth=truth)
    with pytest.raises(UsageError, match=r"^truth is \[1\]: give a column, a path, or labels by id, such as {'doc-1'"):
        collection.evaluate_labels(truth=[1])  # type: ignore[arg-type]
    assert collection.evaluate_labels(truth={"1": LABELS[1], "2": []}).documents == 1


def test_the_run_that_has_the_labels_of_the_column_is_evaluated(folder: Path) -> None:
    collection = opened(folder)
    collection.label(["apple", "music", "cloud", "river"], engine="similarity", threshold=0.0, name="truth run")
    collection.label(["angry", "calm", "music"], engine="similarity", threshold=0.0, name="mood")
    assert evaluate_labels(collection.stored, None, "truth").run == "truth run"
    with pytest.raises(UsageError, match="no value of 'truth' is a label of the run 'mood'"):
        evaluate_labels(collection.stored, "mood", "truth")


def test_a_column_that_has_none_of_the_labels_is_refused(sonde: Command, folder: Path) -> None:
    opened(folder).label(["music", "apple", "a" * 60, "zoo"], engine="similarity", threshold=0.0)
    said = "no value of 'year' is a label of the run 'labels': the values are '2000', '2001', '2002', …; "
    said += f"the labels are '{'a' * 40}…', 'apple', 'music', …; choose another "
    with pytest.raises(UsageError, match=re.escape(f"{said}truth or run")):
        evaluate_labels(opened(folder).stored, None, "year")
    sonde("evaluate", "labels", folder, "--truth", "year").refused(f"{said}--truth or --run", code=2)


def test_documents_without_a_value_are_left_out_and_none_of_these_is_wrong(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    truths = ["apple", "river", "none of these", None]
    rows = [{"id": str(n), "text": f"apple river {n}", "truth": truths[n % 4]} for n in range(12)]
    index(rows, tmp_path / "c.sonde", text="text", id="id", encoder=encoder)
    collection = Collection.open(tmp_path / "c.sonde", encoder=encoder)
    assert "none of these" not in collection.label(["apple", "river"]).counts
    quality = collection.evaluate_labels("labels", "truth")
    assert (quality.documents, quality.accuracy <= 6 / 9) == (9, True)
    assert {each.label: (each.recall, each.support) for each in quality.classes}["none of these"] == (0, 3)
    assert quality.notes == (
        "the run has no label for these values of 'truth': none of these; documents with these values count as wrong",
        "3 documents without a value in 'truth' left out",
    )


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def test_the_command_line(sonde: Command, folder: Path, tmp_path: Path) -> None:
    ran = sonde("label", folder, "--labels", "apple,river,cloud", "--engine", "similarity", "--json")
    report = json.loads(ran.out)
    assert report["counts"] == {"apple": 134, "river": 133, "cloud": 133} and report["engine"] == "similarity"
    ran = sonde("evaluate", "labels", folder, "--run", "labels", "--truth", "truth", "--json")
    assert {"accuracy": 1.0, "macro_f1": 1.0}.items() <= json.loads(ran.out).items()
    ran = sonde("evaluate", "labels", folder, "--truth", "truth")
    assert ran.out.startswith("run labels\n") and "accuracy 1.000, macro F1 1.000 over 400 documents" in ran.out
    ran = sonde("label", folder, "--labels", "apple,river", "--engine", "similarity", "--name", "b", "--threshold", 1)
    assert ran.out.splitlines()[0].startswith("none of these") and "similarity, fake" in ran.err
    model = save_pairs(tmp_path / "nli")
    ran = sonde("label", folder, "--labels", "apple,river", "--engine", "nli", "--model", model, "--name", "n",
                "--budget", 200)  # fmt: skip
    assert ran.code == 0 and "200 of 800 judgements, 100 documents judged" in ran.err
    assert "agreement with nli on 10 held out" in ran.err
    ran = sonde("entail", "a", "b", "--model", model, "--json")
    assert set(json.loads(ran.out)) == {"label", "entailment", "neutral", "contradiction", "model"}


def test_mistakes_on_the_command_line(sonde: Command, folder: Path, tmp_path: Path) -> None:
    labels = ("--labels", "a,b")
    sonde("label", *labels).refused("give a collection, or a text with --text", code=2)
    sonde("label", folder).refused("no labels given", code=2)
    sonde("label", folder, "--labels", "a,a").refused("'a' repeats label 1", code=2)
    sonde("label", folder, "--labels", "a: b, c,d").refused("the comma before 'c' may be part", code=2)
    sonde("label", folder, "--labels", "a,None of these").refused("fits: leave it out, and use --none", code=2)
    sonde("label", folder, *labels, "--labels-file", "x").refused("give one of --labels", code=2)
    sonde("label", folder, "--labels-file", tmp_path / "x").refused("cannot read the labels", "No such file")
    sonde("label", folder, *labels, "--engine", "nli", "--template", "none").refused("must hold {} once", code=2)
    sonde("label", folder, *labels, "--engine", "nli", "--model", "gone").refused("there is no model 'gone'", code=2)
    sonde("label", folder, *labels, "--engine", "nli", "--model", "org/gone").refused("not in the hub's cache")
    wrong = save_pairs(tmp_path / "wrong", "bert", {0: "bad", 1: "good"})
    sonde("label", folder, *labels, "--engine", "nli", "--model", wrong).refused("none of its classes is entailment")
    sonde("label", "--text", " ", *labels, "--engine", "similarity").refused("text 1 of 1 is empty", code=2)
    sonde("label", "--text", "x", *labels, "--budget", 5, "--engine", "nli").refused("--where and --budget", code=2)
    assert opened(folder).info().documents == DOCUMENTS

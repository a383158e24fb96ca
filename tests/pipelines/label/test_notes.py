"""Notes on a labelling: nothing refused, a label that takes most documents, labels that corrections empty."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command
from default_model import default_model
from fake_encoder import FakeEncoder
from themes import collection, rows

from sonde.app.api import Collection, index
from sonde.indexer.ingest import BuildSettings
from sonde.pipelines.label import Label, LabelReport, LabelSettings
from sonde.pipelines.label.notes import few_nones, losses, moved, notes_of

LABELS = ["parcel", "battery", "screen", "refund"]
REPORT = LabelReport("r", "similarity", "m", 100, {"a": 60, "b": 30, "c": 10}, 0, 300, 0, None, 0, 0, 0, 0.1, 0)
CORRECTING = "correct 20 random documents, to 'none of these' where no label fits, and label again"


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return collection(tmp_path / "shop.sonde", rows())


def test_nothing_refused_says_what_to_do(shop: Collection, sonde: Command) -> None:
    report = shop.label(LABELS, none=True)
    highest = max(each.none or 0 for each in shop.classify([row["text"] for row in shop.rows()], LABELS))
    said = f"no document was refused: the highest chance of none is {highest:.2f}, and "
    assert report.notes == (f"{said}none refuses from 0.5 on. If some fit no label, give promise 0.1, or {CORRECTING}",)
    assert report.to_dict()["notes"] == list(report.notes)
    ran = sonde("label", shop.path, "--labels", ",".join(LABELS), "--engine", "similarity", "--none", "--replace")
    rest = f"--none refuses from 0.5 on. If some fit no label, give --promise 0.1, or {CORRECTING}"
    assert f"note: {said}{rest}" in ran.said


def test_notes_on_refusals_by_hand() -> None:
    chances = np.array([0.1, 0.2])
    assert notes_of(REPORT, LabelSettings(), chances, False, ()) == ()
    [note] = notes_of(REPORT, LabelSettings(promise=0.01), chances, False, ())
    assert note == f"no document was refused: if some fit no label, give a larger promise, or {CORRECTING}"
    [note] = notes_of(replace(REPORT, likely_none=1), LabelSettings(), chances, False, ())
    assert note == "1 document (1.0%) probably fits no label, and there may be more: see none"
    refused = replace(REPORT, counts={**REPORT.counts, "none of these": 1})
    assert notes_of(refused, LabelSettings(none=True), chances, False, ()) == ()
    nearly = replace(REPORT, counts={"a": 9, "none of these": 91})
    [note] = notes_of(nearly, LabelSettings(none=True), chances, False, ())
    assert note == "91% of the documents were refused: correct some that fit a label, and label again"


def test_a_label_that_takes_most_documents_of_a_static_model_is_doubted() -> None:
    [note] = notes_of(REPORT, LabelSettings(), None, True, ())
    assert note.startswith("'a' takes 60% of all documents, which a static model often gets wrong: read some of them")
    assert notes_of(replace(REPORT, doubtful=("a",)), LabelSettings(), None, True, ()) == (note,)
    two = replace(REPORT, counts={"a": 60, "b": 40})
    assert notes_of(two, LabelSettings(), None, True, ()) == (), "one of two labels takes half in any case"
    refused = replace(REPORT, counts={"a": 20, "b": 20, "c": 0, "none of these": 60})
    assert notes_of(refused, LabelSettings(), None, True, ()) == ()


def test_a_static_collection_gets_the_note(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    encoder.spec = replace(FakeEncoder.spec, kind="static")
    texts = [{"id": str(n), "text": f"{('apple', 'river', 'cloud')[max(0, n % 10 - 7)]} {n}"} for n in range(60)]
    index(texts, tmp_path / "c.sonde", text="text", id="id", encoder=encoder)
    report = Collection.open(tmp_path / "c.sonde", encoder=encoder).label(["apple", "river", "cloud"])
    assert report.counts["apple"] == 48
    assert report.notes[0].startswith("'apple' takes 80% of all documents, which a static model often gets wrong")


def test_labels_that_lost_most_documents_by_hand() -> None:
    before = np.repeat([0, 1, 2, -1], [20, 20, 19, 5])
    after = np.repeat([0, 1, 2, -1], [4, 5, 0, 55])
    truth = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert losses([Label("a"), Label("b"), Label("c")], before, after, truth) == [
        "the corrections leave 'a' with 4 documents instead of 20, and only 1 correction names it: if 4 are too few, "
        "find more documents of this label and correct them"
    ]


def test_a_label_that_corrections_empty_is_named(shop: Collection) -> None:
    assert shop.label(LABELS).counts["refund"] == 30
    own = [row["id"] for row in shop.rows() if row["label:labels"] == "refund"]
    shop.correct(dict.fromkeys(own[:24], "parcel"))
    report = shop.label(LABELS, replace=True)
    left = report.counts["refund"]
    assert left < 8
    assert report.notes[-1].startswith(f"the corrections leave 'refund' with {left} document")
    assert "instead of 30, and no correction names it" in report.notes[-1]
    without = shop.label(LABELS, replace=True, corrections=False)
    assert not any("the corrections leave" in note for note in without.notes)


def test_a_language_that_the_model_does_not_know_is_told_until_there_are_corrections(tmp_path: Path) -> None:
    if not default_model():
        pytest.skip("the static model is made from the default model, whose package is not installed")
    texts = [f"Das Paket kam {'nie an' if n % 2 else 'doppelt an'}, Nummer {n}." for n in range(8)]
    rows = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    shop = index(rows, tmp_path / "c.sonde", id="id", settings=BuildSettings(model="static", language="de"))
    told = "the texts are in German, which the model static was not trained on: read some texts of each label"
    assert [told in note for note in shop.label(["verloren", "doppelt"], none=False).notes] == [True]
    shop.correct({"0": "doppelt"})
    assert not any(told in note for note in shop.label(["verloren", "doppelt"], none=False, replace=True).notes)


def test_a_note_says_how_many_other_documents_have_another_label_now() -> None:
    texts = np.arange(100)
    before, after = np.zeros(100, np.int64), np.zeros(100, np.int64)
    after[10:40] = 1
    after[40] = -1  # none
    known = np.array([10, 11, 12])
    said = "learning from 3 corrections changed the labels of {} other documents: read some of them, or correct more"
    assert moved((texts, before), (texts, after), np.array([10]), 2) == [
        said.replace("3 corrections", "1 correction").format(30)
    ]
    assert moved((texts, before), (texts, after), known, 2) == []  # 28 are not ten for each
    after[50:60] = 1
    assert moved((texts, before), (texts, after), known, 2) == [said.format(38)]
    several = np.concatenate([texts, texts[:35]]), np.concatenate([before, np.ones(35, np.int64)])  # two labels each
    assert moved((texts, before), several, known, 2) == [said.format(32)]


def test_too_few_corrections_to_none_are_said_to_teach_nothing() -> None:
    truth = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    ending = "Sonde learns from such corrections if a run has 10 corrections or more, one of them with a label"
    assert few_nones(truth) == (f"2 corrections to 'none of these' change only their own documents: {ending}",)
    assert few_nones(truth[:2]) == (f"1 correction to 'none of these' changes only its own document: {ending}",)
    assert few_nones(truth[:1]) == few_nones(np.tile(truth, (4, 1))) == few_nones(np.zeros((0, 2))) == ()
    assert few_nones(np.zeros((50, 2)))[0].startswith("50 corrections to 'none of these' change only")

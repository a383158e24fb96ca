"""Corrections that a labelling does not use, or that outlive their run: both are said."""

from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from themes import collection, rows

from sonde.app.api import Collection
from sonde.pipelines.label.examples import LabelledExample
from sonde.pipelines.label.settings import LabelSettings
from sonde.pipelines.train.few_shot import label_by_examples

LABELS = ["parcel", "battery", "screen", "refund"]


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return collection(tmp_path / "shop.sonde", rows())


def test_corrections_of_another_run_with_the_same_labels_are_named(shop: Collection) -> None:
    shop.label(LABELS)
    shop.label(LABELS, name="labels 2")
    shop.label(["good", "bad"], name="mood")
    shop.correct({"parcel-1": "battery", "screen-2": "none of these", "screen-3": "refund"}, "labels 2")
    shop.correct({"parcel-4": "good", "parcel-5": "none of these"}, "mood")

    def said(**options: Any) -> list[str]:
        return [note for note in shop.label(LABELS, replace=True, **options).notes if "not used here" in note]

    first = "3 corrections of 'labels 2' are not used here: to use them, label again with corrections_of 'labels 2'"
    assert said() == said(name="third") == [first]
    assert said(name="labels 2") == said(corrections=False) == said(where="\"id\" = 'parcel-9'") == []
    examples = [LabelledExample("parcel", id="parcel-9"), LabelledExample("battery", id="battery-9")]
    assert label_by_examples(shop.stored, examples, LabelSettings(name="taught")).notes == (), "refund is not a label"
    shop.correct({"parcel-1": "battery", "screen-3": "refund"})
    assert said() == [], "the correction that is left names no label"
    shop.correct({"parcel-2": "battery"}, "labels 2")
    assert [note.split(" are ")[0] for note in said()] == ["2 corrections of 'labels 2'"]


def test_the_corrections_of_another_run_are_used_on_request(shop: Collection, sonde: Command) -> None:
    shop.label(LABELS)
    shop.correct({"parcel-1": "battery", "screen-2": "none of these", "screen-3": "refund"}, "labels")
    other = sonde("label", shop.path, "--labels", ",".join(LABELS), "--name", "third")
    assert (
        "3 corrections of 'labels' are not used here: to use them, label again with --corrections-of labels"
        in other.err
    )
    made = sonde("label", shop.path, "--labels", ",".join(LABELS), "--name", "labels-2", "--corrections-of", "labels")
    assert "copied 3 corrections from 'labels' to 'labels-2'" in made.err and "using 3 corrections" in made.err
    assert shop.corrections("labels-2") == shop.corrections("labels"), "they stay in the other run"
    given = {each.id: each.name for each in shop.assignments("label:labels-2")}
    assert (given["parcel-1"], given["screen-3"]) == ("battery", "refund")
    shop.correct({"parcel-1": "screen"}, "labels-2")
    shop.label(LABELS, name="labels-2", replace=True, corrections_of="labels")
    assert {each.id: each.labels for each in shop.corrections("labels-2")}["parcel-1"] == ("screen",), "its own win"
    assert "corrections_of" not in shop.run("labels-2").run.parameters
    other = sonde("label", shop.path, "--labels", "good,bad", "--name", "mood", "--corrections-of", "labels")
    assert "copied 1 correction from 'labels' to 'mood'" in other.err, "none of these; the other labels are not its own"
    again = ("label", shop.path, "--labels", "a,b", "--name", "new", "--corrections-of")
    sonde(*again, "gone").refused("the run 'gone' has no corrections: there are labels, labels-2, mood")
    sonde(*again, "labels", "--no-corrections").refused("--corrections-of needs --corrections", code=2)


def test_corrections_stay_when_their_run_is_deleted_and_that_is_said(shop: Collection, sonde: Command) -> None:
    shop.label(LABELS, name="labels 2")
    shop.cluster("other", k=2, refits=0)
    shop.correct({"parcel-1": "battery", "screen-3": "refund"}, "labels 2")
    assert sonde("runs", "delete", shop.path, "other").said == ["deleted the run 'other'"]
    forget = f"sonde runs delete {shop.path} 'labels 2' --kind correction"
    assert sonde("runs", "delete", shop.path, "labels 2").said == [
        "deleted the run 'labels 2'",
        f"2 corrections of 'labels 2' are kept for the next labelling with this name; to delete them: {forget}",
    ]
    assert sonde("runs", "delete", shop.path, "labels 2", "--kind", "correction").said == ["deleted the run 'labels 2'"]
    assert shop.runs() == []

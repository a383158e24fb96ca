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

    advice = "run `sonde runs correct C --run 'labels 2' --to FILE.csv` and `sonde runs correct C --run {} --from "
    first = f"3 corrections of 'labels 2' are not used here: to use them, {advice}FILE.csv`, and label again"
    assert said() == [first.format("labels")]
    assert said(name="third") == [first.format("third")]
    assert said(name="labels 2") == said(corrections=False) == said(where="\"id\" = 'parcel-9'") == []
    examples = [LabelledExample("parcel", id="parcel-9"), LabelledExample("battery", id="battery-9")]
    assert label_by_examples(shop.stored, examples, LabelSettings(name="taught")).notes == (), "refund is not a label"
    shop.correct({"parcel-1": "battery", "screen-3": "refund"})
    assert said() == [], "the correction that is left names no label"
    shop.correct({"parcel-2": "battery"}, "labels 2")
    one = f"2 corrections of 'labels 2' are not used here: to use them, {advice.format('labels')}"
    assert [note.startswith(one) for note in said()] == [True]


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

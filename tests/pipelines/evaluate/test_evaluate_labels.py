"""Labels compared with the true ones: values that no label of the run is, several labels per text, kappa."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from sklearn.metrics import cohen_kappa_score
from themes import collection

from sonde.app.api import Collection, index
from sonde.pipelines.evaluate.labels import wilson


def test_a_value_that_is_nearly_a_label_is_asked_about(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    truths = ["topup", "river", "cloud"]
    rows = [{"id": str(n), "text": f"top-up river {n}", "truth": truths[n % 3]} for n in range(9)]
    index(rows, tmp_path / "c.sonde", text="text", id="id", encoder=encoder)
    collection = Collection.open(tmp_path / "c.sonde", encoder=encoder)
    collection.label(["Top-up", "river"])
    said = "the run has no label for these values of 'truth': cloud, topup (did you mean 'top-up'?); documents with "
    assert collection.evaluate_labels("labels", "truth").notes == (f"{said}these values count as wrong",)


@pytest.fixture
def coded(tmp_path: Path) -> Collection:
    """Six texts; the run "multi" gives each exactly the labels of GIVEN, the run "single" the first of them."""
    found = collection(tmp_path / "c.sonde", [{"id": id, "text": f"text {id}"} for id in GIVEN])
    for name in ("multi", "single"):
        several = name == "multi"
        codes = {id: (names if several else names[:1]) or "none of these" for id, names in GIVEN.items()}
        found.correct(codes, name)
        found.label(["late", "dirty", "rude"], name=name, multi_label=several)
        found.delete_run(name, kind="correction")  # texts corrected by hand would not count
    return found


GIVEN = {"1": ["late", "dirty"], "2": ["late"], "3": [], "4": [], "5": ["rude"], "6": ["dirty"]}


@pytest.mark.parametrize("nothing", ["none of these", []], ids=["words", "empty list"])
def test_no_label_is_right_where_the_run_gives_none(coded: Collection, tmp_path: Path, nothing: Any) -> None:
    truth: dict[str, Any] = {
        "1": ["dirty", "late"],
        "2": ["late"],
        "3": nothing,
        "4": ["late"],
        "5": nothing,
        "6": ["dirty"],
    }
    found = coded.evaluate_labels("multi", truth)
    assert (found.documents, found.accuracy, found.measure) == (6, 4 / 6, "exact match")
    each = {quality.label: quality for quality in found.classes}
    none = each["none of these"]
    assert (none.precision, none.recall, none.support) == (0.5, 0.5, 2)
    path = tmp_path / "truth.jsonl"
    path.write_text("".join(json.dumps({"id": id, "labels": names}) + "\n" for id, names in truth.items()))
    assert coded.evaluate_labels("multi", path).classes == found.classes
    single = coded.evaluate_labels("single", truth | {"1": "late"})
    assert (single.measure, single.accuracy) == ("accuracy", 4 / 6 if nothing else 3 / 4)
    assert coded.evaluate_labels("multi", truth | {"3": "", "5": ""}).documents == 4, "an empty label is no answer"


def test_kappa_and_intervals(coded: Collection, sonde: Command, tmp_path: Path) -> None:
    truth = {"1": "late", "2": "late", "3": "none of these", "4": "late", "5": "late", "6": "dirty"}
    found = coded.evaluate_labels("single", truth)
    assert found.kappa == pytest.approx(
        cohen_kappa_score([*truth.values()], [(GIVEN[id] or ["none of these"])[0] for id in truth])
    )
    assert found.interval == pytest.approx((0.29999, 0.90323), abs=1e-5)
    assert wilson(33, 60) == pytest.approx((0.42492, 0.66906), abs=1e-5) and wilson(0, 5)[0] == 0
    path = tmp_path / "truth.csv"
    path.write_text('id,label\n1,late; dirty\n2,"late,dirty"\n3,"[""none of these""]"\n4,\n5,rude\n6,dirty | rdue\n')
    several = coded.evaluate_labels("multi", path)
    assert (several.documents, several.accuracy, several.kappa) == (5, 3 / 5, None)
    assert several.notes[0].startswith(
        f"the run has no label for these values of {str(path)!r}: rdue (did you mean 'rude'?)"
    )
    each = {quality.label: quality for quality in several.classes}
    assert each["dirty"].kappa == pytest.approx(cohen_kappa_score([1, 1, 0, 0, 1], [1, 0, 0, 0, 1]))
    assert set(each) == {"late", "dirty", "rude", "rdue", "none of these"}
    ran = sonde("evaluate", "labels", coded.path, "--run", "multi", "--truth", path)
    assert "exact match 0.600, macro F1 " in ran.out
    assert "95 % interval of exact match (Wilson): 0.231 to 0.882; exact match: the share of documents" in ran.out
    told = json.loads(sonde("evaluate", "labels", coded.path, "--run", "multi", "--truth", path, "--json").out)
    assert told["several"] and told["classes"][0]["kappa"] == each["dirty"].kappa and len(told["interval"]) == 2

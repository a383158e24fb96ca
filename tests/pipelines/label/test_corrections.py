"""Corrections of labels: kept, applied by the next run, and learned from."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command, contents
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError, WriterBusyError
from sonde.indexer.store.lock import writer_lock
from sonde.pipelines.label import corrections, forget_corrections
from sonde.pipelines.label.carry import adjusted
from sonde.pipelines.label.correction_files import read_corrections
from sonde.pipelines.label.corrections import Corrected
from sonde.pipelines.label.examples import LabelledExample
from sonde.pipelines.label.outcome import apply_corrections
from sonde.pipelines.label.run import label_collection
from sonde.pipelines.label.settings import LabelSettings
from sonde.pipelines.train.few_shot import label_by_examples

LABELS = ["parcel", "battery", "screen", "refund"]


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return collection(tmp_path / "shop.sonde", rows())


def labels_of(shop: Collection, run: str = "labels") -> dict[str, Any]:
    return {row["id"]: row[f"label:{run}"] for row in shop.rows()}


def test_a_corrected_document_has_the_label_that_was_given_in_the_next_run(shop: Collection) -> None:
    shop.label(LABELS)
    before = labels_of(shop)
    assert before["parcel-1"] == "parcel"
    assert shop.correct({"parcel-1": "Battery", "screen-2": "none of these"}) == Corrected("labels", 2, 2)
    assert labels_of(shop) == before, "a correction changes the next run, not this one"
    report = shop.label(LABELS, replace=True)
    assert (report.corrected, report.documents) == (2, 120)
    after = labels_of(shop)
    assert (after["parcel-1"], after["screen-2"]) == ("battery", "none of these")
    assert report.counts["none of these"] == 1
    assert shop.run("labels", "label").run.report["corrected"] == 2
    assert shop.label(LABELS, replace=True, corrections=False).corrected == 0
    assert labels_of(shop) == before


def test_corrected_documents_do_not_count_as_right(shop: Collection) -> None:
    shop.label(LABELS)
    before = shop.evaluate_labels("labels", "theme")
    shop.correct({"parcel-1": "battery", "screen-2": "none of these"})
    assert shop.evaluate_labels("labels", "theme") == before, "this run has not applied them"
    shop.label(LABELS, replace=True)
    found = shop.evaluate_labels("labels", "theme")
    assert (before.documents, found.documents) == (120, 118)
    assert shop.evaluate_labels(truth="theme") == found, "the run that matches best, as on the command line"
    with pytest.raises(UsageError, match=r"^truth is missing: name the column with the true labels$"):
        shop.evaluate_labels()
    assert found.notes == (*before.notes, "2 documents with labels that you corrected left out")


def test_what_is_unsure_and_what_is_corrected_are_of_the_same_run(shop: Collection) -> None:
    shop.label(LABELS)
    shop.label(LABELS, name="second")
    assert shop.unsure(k=1) == shop.unsure("second", k=1)
    assert [found.run for found in (*shop.unsure(k=1), *shop.to_confirm(k=1))] == ["second", "second"]
    shop.correct({"parcel-1": "battery"})
    assert (
        [found.id for found in shop.corrections("second")] == [found.id for found in shop.corrections()] == ["parcel-1"]
    )
    assert shop.corrections("labels") == []
    assert shop.forget_corrections("parcel-1") == 0


def test_a_correction_goes_to_the_newest_run_that_has_its_label(shop: Collection, sonde: Command) -> None:
    shop.label(LABELS, name="goods")
    shop.label(["good", "bad"], name="mood")
    assert shop.corrected_run() == shop.corrected_run(labels=["none of these"]) == "mood"
    assert (shop.corrected_run(labels=["Battery"]), shop.corrected_run(labels=["bad"])) == ("goods", "mood")
    assert shop.corrected_run(labels=["battery", "bad"]) == "mood", "no run has both"
    assert shop.corrected_run("mood", ["battery"]) == "mood"
    shop.correct({"parcel-1": "battery"})
    assert [found.id for found in shop.corrections("goods")] == ["parcel-1"]
    ran = sonde("correct", shop.path, "parcel-2", "--label", "screen")
    assert (ran.code, ran.err) == (0, "goods: 1 document corrected, 2 corrections kept\n")


def test_a_name_means_the_run_and_not_its_corrections(shop: Collection) -> None:
    shop.label(LABELS)
    shop.correct({"parcel-1": "battery"})
    assert shop.run("labels").run.kind == "label"
    assert shop.run("labels", "correction").run.kind == "correction"
    shop.rename_run("labels", "parcels", item=0)
    assert [member.text for member in shop.members("labels", 0, k=2)] != []
    shop.delete_run("labels")
    assert [run.kind for run in shop.runs()] == ["correction"]
    assert shop.run("labels").run.kind == "correction"
    with pytest.raises(UsageError, match=r"only your corrections of 'labels' are left.* give kind correction"):
        shop.delete_run("labels")
    shop.delete_run("labels", kind="correction")
    assert shop.runs() == []


@pytest.mark.parametrize("budget", [None, "160"])
def test_a_judge_is_overruled_and_learned_from(shop: Collection, budget: str | None) -> None:
    class Wrong:
        """Says "parcel" of everything."""

        name, model, template = "nli", "wrong", ""

        def margins(self, texts: Any, labels: Any, *_: Any, **__: Any) -> np.ndarray:
            return np.tile([2.0, 0.0, 0.0, 0.0], (len(texts), 1)).astype(np.float32)

    settings = LabelSettings(engine="nli", budget=budget, replace=True)
    label_collection(shop.stored, LABELS, settings, judge=Wrong())
    assert set(labels_of(shop).values()) == {"parcel"}
    given = {f"screen-{n}": "screen" for n in range(8)}
    shop.correct(given)
    report = label_collection(shop.stored, LABELS, settings, judge=Wrong())
    after = labels_of(shop)
    assert {after[id] for id in given} == {"screen"} and report.corrected == 8
    others = [after[f"screen-{n}"] for n in range(8, 30)]
    assert others.count("screen") > 15, "the other texts about screens follow"
    if budget:
        assert report.judged == 40


def test_corrections_with_several_labels(shop: Collection) -> None:
    shop.label(LABELS, multi_label=True, name="m")
    shop.correct({"parcel-1": ["screen", "battery"], "parcel-2": ["none of these"]}, run="m")
    shop.label(LABELS, multi_label=True, name="m", replace=True)
    after = labels_of(shop, "m")
    assert (sorted(after["parcel-1"]), after["parcel-2"]) == (["battery", "screen"], ["none of these"])
    assert [(each.id, each.labels) for each in corrections(shop.stored, "m")] == [
        ("parcel-1", ("screen", "battery")), ("parcel-2", ()),
    ]  # fmt: skip


def test_corrections_are_kept_forgotten_and_renamed_with_their_run(shop: Collection, tmp_path: Path) -> None:
    shop.label(LABELS)
    shop.correct({"parcel-1": "battery", "parcel-2": "screen"})
    shop.correct({"parcel-1": "refund"})
    kept = [(each.id, each.labels) for each in corrections(shop.stored)]
    assert kept == [("parcel-1", ("refund",)), ("parcel-2", ("screen",))]
    assert {row["id"]: row["correction:labels"] for row in shop.rows() if row["correction:labels"]} == {
        "parcel-1": "refund", "parcel-2": "screen",
    }  # fmt: skip
    assert [hit.id for hit in shop.search("x", mode="dense", where="\"correction:labels\" = 'refund'")] == ["parcel-1"]
    shop.rename_run("labels", "kinds", kind="label")
    assert len(corrections(shop.stored, "kinds")) == 2 and corrections(shop.stored) == []
    changed = [row | {"text": "parcel depot other words"} if row["id"] == "parcel-2" else row for row in rows()]
    collection(shop.path, changed)
    assert [each.id for each in corrections(shop.stored, "kinds")] == ["parcel-1", "parcel-2"], "also of a new text"
    shop.delete(["parcel-2"])
    assert [each.id for each in corrections(shop.stored, "kinds")] == ["parcel-1"]
    assert forget_corrections(shop.stored, ["parcel-1"], "kinds") == 0
    assert [run.kind for run in shop.runs()] == ["label"]
    with pytest.raises(SondeError, match="the run 'kinds' has no corrections"):
        forget_corrections(shop.stored, ["parcel-1"], "kinds")


def test_a_run_that_cannot_be_renamed_with_its_corrections_keeps_its_name(shop: Collection) -> None:
    shop.label(LABELS)
    shop.correct({"parcel-1": "battery"})
    assert shop.correct({"parcel-2": "screen"}, run="kinds").run == "kinds"
    with pytest.raises(UsageError, match="the correction run 'kinds' already exists: choose another name"):
        shop.rename_run("labels", "kinds", kind="label")
    assert sorted((run.kind, run.name) for run in shop.runs()) == [
        ("correction", "kinds"), ("correction", "labels"), ("label", "labels"),
    ]  # fmt: skip


def test_what_cannot_be_right_changes_nothing(shop: Collection) -> None:
    shop.label(LABELS)
    before = contents(shop.path)
    with pytest.raises(
        UsageError, match="the run 'labels' has no label 'money': there are parcel, battery, screen, refund"
    ):
        shop.correct({"parcel-1": "money"})
    with pytest.raises(UsageError, match="gives each text one label: choose one of parcel, screen"):
        shop.correct({"parcel-1": ["parcel", "screen"]})
    with pytest.raises(SondeError, match="no document with the id 'nobody': nothing was changed"):
        shop.correct({"nobody": "parcel"})
    for empty in ("", " ", [], ["parcel", ""]):
        with pytest.raises(
            UsageError, match=r"^document 'parcel-1' has an empty label: give a label, or 'none of these'$"
        ):
            shop.correct({"parcel-1": empty})
    with writer_lock(shop.path), pytest.raises(WriterBusyError, match="is being written to by"):
        shop.correct({"parcel-1": "screen"})
    assert contents(shop.path) == before


def test_labels_that_the_next_run_lacks_are_said(shop: Collection) -> None:
    shop.correct({"parcel-1": "spam", "parcel-2": "refund"})
    said: list[Any] = []
    report = shop.label(LABELS, progress=said.append)
    assert report.corrected == 1
    assert "corrections with labels that this run does not have are left out: spam" in said
    assert "using 1 correction" in said


def test_a_run_from_examples_is_reviewed_and_corrected_too(shop: Collection) -> None:
    examples = [LabelledExample(theme, id=f"{theme}-{n}") for theme in LABELS for n in range(3)]
    label_by_examples(shop.stored, examples, LabelSettings(name="few"))
    [first] = shop.unsure("few", k=1)
    shop.correct({first.id: first.other}, run="few")
    report = label_by_examples(shop.stored, examples, LabelSettings(name="few", replace=True))
    assert report.corrected == 1 and labels_of(shop, "few")[first.id] == first.other
    assert first.id not in {each.id for each in shop.unsure("few", k=200)}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "f.csv",
            "id,label\nd1,a\nd2,\n",
            "row 2 of f.csv gives 'd2' an empty label: give a label, or 'none of these'",
        ),
        ("f.csv", "id,label\nd1\n", "row 1 of f.csv gives 'd1' an empty label: give a label, or 'none of these'"),
        (
            "f.jsonl",
            '{"id": 1, "labels": []}\n',
            "row 1 of f.jsonl gives '1' an empty label: give a label, or 'none of ",
        ),
        ("f.jsonl", '{"id": 1, "labels": ["a", " "]}\n', "row 1 of f.jsonl gives '1' an empty label"),
        (
            "f.csv",
            "id,label\nd1,scala\nd2,qt\nd1,qt\n",
            "rows 1 and 3 of f.csv give 'd1' different labels, scala and qt: keep one row for each document; several "
            "labels need a run made with multi_label",
        ),
    ],
)
def test_a_file_of_corrections_that_is_not_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    with pytest.raises(UsageError, match=f"^{re.escape(said)}"):
        read_corrections(Path(name))


def test_a_row_that_comes_twice_is_one_correction(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("id,label\nd1,a\nd1,a\nd2,none of these\n")
    assert read_corrections(tmp_path / "f.csv") == {"d1": ["a"], "d2": ["none of these"]}


def test_a_label_run_that_does_not_exist_is_noted(shop: Collection, sonde: Command) -> None:
    ran = sonde("correct", shop.path, "parcel-1", "--label", "battery", "--run", "early")
    assert ran.said[1:] == ["note: there is no label run 'early' yet: there are none"]
    shop.label(LABELS)
    ran = sonde("correct", shop.path, "parcel-1", "--label", "battery", "--run", "label")
    ran.refused("there is no label run 'label': did you mean 'labels'?", code=2)
    ran = sonde("correct", shop.path, "parcel-1", "--label", "battery", "--run", "nope")
    assert ran.said[1:] == ["note: there is no label run 'nope' yet: there is only labels"]
    assert len(sonde("correct", shop.path, "parcel-1", "--label", "battery").said) == 1


def test_the_least_sure_come_first(shop: Collection) -> None:
    shop.label(LABELS)
    found = shop.unsure(k=200)
    assert len(found) == 120
    margins = [each.margin for each in found]
    assert margins == sorted(margins) and margins[0] < margins[-1]
    assert all(each.other != each.label for each in found)
    assert margins == pytest.approx([each.score - (each.other_score or 0) for each in found], abs=1e-6)
    shop.correct({found[0].id: found[0].other})
    assert [each.id for each in shop.unsure(k=3)] == [each.id for each in found[1:4]]
    assert [each.id for each in shop.unsure(k=2, offset=1)] == [each.id for each in found[2:4]]
    with pytest.raises(UsageError, match="k is 0"):
        shop.unsure(k=0)


def test_heeded_by_hand() -> None:
    texts, labels, scores = np.array([0, 1, 2]), np.array([1, 0, 1]), np.array([0.6, 0.7, 0.8])
    found = apply_corrections(texts, labels, scores, np.array([1, 2]), np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert [part.tolist() for part in found] == [[0, 1, 2], [1, 1, -1], [0.6, 1.0, 1.0]]


def test_an_adjustment_moves_what_is_alike_and_leaves_the_rest() -> None:
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 1, 2]]
    margins = np.tile([1.0, 0.0], (4, 1))
    moved = adjusted(margins, vectors, np.array([0]), np.array([[0.0, 1.0]]), False)
    assert moved[0].argmax() == moved[1].argmax() == 1
    assert np.abs(moved[2:] - margins[2:]).max() < 0.05
    assert adjusted(margins, vectors, np.zeros(0, np.int64), np.zeros((0, 2)), False) is margins


def test_corrections_from_the_command_line(shop: Collection, sonde: Command, tmp_path: Path) -> None:
    assert sonde("label", shop.path, "--labels", ",".join(LABELS)).code == 0
    refused = sonde("correct", shop.path, "labels", "--unsure")
    assert (refused.code, refused.err) == (2, "sonde: --unsure takes no ids: to name a run, write --run labels\n")
    [first] = [json.loads(line) for line in sonde("correct", shop.path, "--unsure", "-k", 1, "--json").out.splitlines()]
    ran = sonde("correct", shop.path, first["id"], "--label", first["other"])
    assert ran.said == ["labels: 1 document corrected, 1 correction kept"]
    listed = tmp_path / "more.csv"
    listed.write_text("id,label\nparcel-9,screen\nparcel-8,none of these\n")
    assert sonde("correct", shop.path, "--from", listed).said[-1].endswith("3 corrections kept")
    for name in ("kept.csv", "kept.jsonl"):
        assert sonde("correct", shop.path, "--to", tmp_path / name).code == 0
        assert sonde("correct", shop.path, "--from", tmp_path / name).said[-1].endswith("3 corrections kept")
    lines = sonde("correct", shop.path).out.splitlines()
    assert (lines[0], "screen         parcel-9" in lines) == ("label          id", True)
    ran = sonde("label", shop.path, "--labels", ",".join(LABELS), "--replace")
    assert "using 3 corrections" in ran.err and "3 documents as corrected" in ran.said[-3]
    assert "earlier documents differ from those in the replaced run" in ran.said[-2]
    assert "to 'none of these' changes only its own document" in ran.said[-1]
    assert labels_of(shop)["parcel-9"] == "screen"
    assert sonde("correct", shop.path, "parcel-9", "--forget").said == ["2 corrections kept"]
    sonde("correct", shop.path, "parcel-9").refused("needs ids and --label", code=2)
    assert sonde("correct", shop.path, "--unsure", "-k", 1).said[-1] == "run labels"
    sonde("correct", shop.path, "--unsure", "--forget").refused("choose one of", code=2)
    (tmp_path / "bad.csv").write_text("name,label\na,b\n")
    sonde("correct", shop.path, "--from", tmp_path / "bad.csv").refused(
        "must have the columns id and label, not name, label", code=2
    )
    (tmp_path / "bad.jsonl").write_text("{\n")
    sonde("correct", shop.path, "--from", tmp_path / "bad.jsonl").refused("cannot read")
    sonde("correct", shop.path, "--from", tmp_path / "absent.csv").refused("No such file")


def test_a_misspelt_run_is_not_corrected(shop: Collection) -> None:
    shop.label(LABELS, name="mine")
    shop.cluster("groups", k=2)
    with pytest.raises(UsageError, match="there is no label run 'mime': did you mean 'mine'"):
        shop.correct({"parcel-1": "battery"}, run="mime")
    with pytest.raises(UsageError, match="'groups' is a cluster run, without labels: there is only mine"):
        shop.correct({"parcel-1": "battery"}, run="groups")
    assert shop.runs("correction") == []
    with pytest.raises(UsageError, match=r"has no label 'none': .*none of these"):
        shop.correct({"parcel-1": "none"}, run="mine")
    assert shop.correct({"parcel-1": "None of these"}, run="mine").total == 1
    assert shop.corrections("mine")[0].labels == ()


def test_corrections_are_found_without_the_name_of_their_run(shop: Collection, tmp_path: Path) -> None:
    shop.label(LABELS, name="first")
    shop.correct({"parcel-1": "battery"}, run="first")
    shop.label(LABELS, name="zz second")
    assert [each.id for each in shop.corrections()] == ["parcel-1"]
    assert shop.save_corrections(tmp_path / "kept.jsonl") == 1
    shop.correct({"parcel-2": "battery", "parcel-3": "screen"}, run="zz second")
    for ask in (shop.corrections, lambda: shop.forget_corrections("parcel-1")):
        with pytest.raises(UsageError, match=r"several runs have corrections.*: first \(1\), zz second \(2\)"):
            ask()
    assert shop.forget_corrections("parcel-1", run="first") == 0
    assert [each.id for each in shop.corrections()] == ["parcel-2", "parcel-3"]


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_corrections_from_any_spreadsheet(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "corrections.csv"
    path.write_text(f'id{sign}label\n12{sign}"late, broken"\n13{sign}none of these\n')
    assert read_corrections(path) == {"12": ["late, broken"], "13": ["none of these"]}


def test_refused_texts_are_right_where_no_label_fits(shop: Collection) -> None:
    shop.label(LABELS[:3], name="three")
    forced = shop.evaluate_labels("three", "theme")
    foreign = [each.score or 0 for each in shop.assignments("three") if each.id.startswith("refund")]
    shop.label(LABELS[:3], name="refusing", threshold=sorted(foreign)[-5])
    given = {row["id"]: row["label:refusing"] for row in shop.rows()}
    truth = {row["id"]: row["theme"] for row in shop.rows()}
    right = sum(label == (truth[id] if truth[id] in LABELS[:3] else "none of these") for id, label in given.items())
    found = shop.evaluate_labels("refusing", "theme")
    assert found.accuracy == right / 120
    assert right > sum(label == truth[id] for id, label in given.items()) > 0
    assert forced.accuracy == 0.75
    assert found.notes[0].endswith("refund; 'none of these' counts as right for them")
    assert {each.label for each in found.classes} == {*LABELS[:3], "none of these"}


def test_two_labels_of_a_run_do_not_share_a_name(shop: Collection) -> None:
    shop.label(LABELS, name="mine")
    with pytest.raises(UsageError, match="the label run 'mine' already has a label named 'battery', number 1"):
        shop.rename_run("mine", "battery", item=0)
    shop.rename_run("mine", "parcel", item=0)  # its own


def test_the_name_of_a_run_does_not_begin_like_a_level(shop: Collection) -> None:
    shop.label(LABELS, name="mine")
    for name in ("fine:mine", "label:mine"):
        with pytest.raises(UsageError, match=f"'{name}' is not a valid run name"):
            shop.label(LABELS, name=name)
        with pytest.raises(UsageError, match=f"'{name}' is not a valid run name"):
            shop.rename_run("mine", name)
    shop.rename_run("mine", "a:b")

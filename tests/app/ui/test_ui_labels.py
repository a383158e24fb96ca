"""The Labels page: typed, tried, run, reviewed, corrected, compared."""
# ruff: noqa: F811  (fixtures that are imported)

from dataclasses import asdict
from pathlib import Path

import pytest
from tiny_pairs import build_pairs
from ui_overview import Started, shop, started  # noqa: F401  (fixture)
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (fixture)

from sonde.app.api import Collection
from sonde.app.ui import label_run
from sonde.app.ui.page import shown_score
from sonde.indexer.errors import UsageError
from sonde.indexer.store.lock import writer_lock
from sonde.pipelines.label import LabelSettings, NliJudge, corrections, label_collection
from sonde.pipelines.label.review import try_labels
from sonde.pipelines.pairs import PairModel

LABELS = ["parcel", "battery", "screen", "refund"]
TYPED = "\n".join(LABELS)


@pytest.mark.parametrize(("count", "said"), [(40, []), (41, ["and 1 more label"]), (42, ["and 2 more labels"])])
def test_labels_that_are_not_drawn_are_counted(count: int, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    captions: list[str] = []
    monkeypatch.setattr(label_run.st, "html", lambda _: None)
    monkeypatch.setattr(label_run.st, "caption", captions.append)
    label_run.show_counts({f"label {n}": 1 for n in range(count)}, count)
    assert captions == said


@pytest.fixture
def labelled(pages: Pages) -> Collection:
    made = shop(pages)
    made.label(LABELS)
    return made


def test_labels_are_tried_on_a_sample_and_run(pages: Pages, started: Started, tmp_path: Path) -> None:
    shop(pages)
    page = pages.open("labels", collection="shop")
    assert "No labels yet" in shown(page)
    page.text_area(key="labels").set_value("parcel: a box that is sent\nbattery\n\nscreen\nrefund").run()
    next(button for button in page.button if button.label == "Try on a sample").click().run()
    said = shown(page)
    assert "Sample of 50 documents" in said and "The labels are adapted to all documents" in said
    assert sum(int(line.split(" · ")[0].split("%")[-1]) for line in _bars(said)) == 50
    page.text_input(key="run_where").set_value("stars < 9").run()
    page.button(key="run_labels").click().run()
    words = started.commands[0]
    assert words[:3] == ["label", "shop.sonde", "--labels-file"]
    assert Path(words[3]).read_text() == "parcel: a box that is sent\nbattery\nscreen\nrefund\n"
    assert words[4:] == ["--engine", "similarity", "--name", "labels", "--where", "stars < 9"]


def test_several_labels_are_not_told_to_be_the_best_one(pages: Pages, started: Started) -> None:
    shop(pages)
    page = pages.open("labels", collection="shop")
    page.text_area(key="labels").set_value(TYPED).run()
    assert "chooses the best label" in shown(page) and "fits best" not in shown(page)
    page.toggle(key="several").set_value(True).run()
    assert "chooses the best label" not in shown(page) and "texts often get too many labels" in shown(page)


def _bars(said: str) -> list[str]:
    """The bars' texts, name and number in one: "parcel13 · 26.0%"."""
    import re

    block = next(line for line in said.splitlines() if line.startswith(tuple(LABELS)) and "%" in line)
    return [f"{count} · x" for count in re.findall(r"(\d+) · \d", block)]


def test_the_buttons_are_there_before_a_label_is_typed(pages: Pages, started: Started) -> None:
    shop(pages)
    page = pages.open("labels", collection="shop")
    assert "Try on a sample" in [button.label for button in page.button]
    assert "Type the labels first, one per line." in shown(page)
    assert not page.error
    next(button for button in page.button if button.label == "Try on a sample").click().run()
    assert page.error[0].value.replace("\\", "") == "Type the labels first, one per line."
    assert started.commands == []


def test_labels_by_similarity_over_a_static_model_have_a_warning(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(pages)
    page = pages.open("labels", collection="shop", labels=TYPED)
    assert not page.warning
    monkeypatch.setattr(Collection, "model", "static")
    page = pages.open("labels", collection="shop", labels=TYPED)
    assert "similarity labels are often wrong" in page.warning[0].value
    assert not pages.open("labels", collection="shop", labels=TYPED, engine="nli").warning


def test_probabilities_of_similarity_are_not_called_calibrated(pages: Pages, labelled: Collection) -> None:
    said = shown(pages.open("labels", collection="shop"))
    assert (
        "(not calibrated)" not in said
        and "If most texts fit none of the labels, the probabilities are still too high" in said
    )
    assert [shown_score(score) for score in (-0.001, 0.0, -0.25)] == ["0.00", "0.00", "-0.25"]


def test_documents_added_since_a_run_are_counted_and_labelled(
    pages: Pages, labelled: Collection, started: Started
) -> None:
    assert "not labelled" not in shown(pages.open("labels", collection="shop"))
    labelled.put([{"id": "new", "text": "A parcel that came later."}])
    page = pages.open("labels", collection="shop")
    assert "1 document of 121 is not labelled, because the run is older." in shown(page)
    page.checkbox(key="again_replace:labels").check().run()
    page.button(key="again_do").click().run()
    assert started.commands[-1][0] == "label" and started.commands[-1][-1] == "--replace"
    unread(page)


def test_a_judge_gets_a_budget(pages: Pages, started: Started) -> None:
    shop(pages)
    page = pages.open("labels", collection="shop", labels=TYPED, engine="nli")
    page.toggle(key="several").set_value(True).run()
    page.text_input(key="budget").set_value("200").run()
    page.button(key="run_labels").click().run()
    assert started.commands[0][4:] == [
        "--engine", "nli", "--name", "labels", "--multi-label", "--threshold", "0.5", "--budget", "200",
    ]  # fmt: skip


def test_labels_are_replaced_only_where_the_checkbox_says_so(
    pages: Pages, labelled: Collection, started: Started
) -> None:
    page = pages.open("labels", collection="shop", labels=TYPED, part="labels")
    page.button(key="run_labels").click().run()
    assert started.commands[-1][4:] == ["--engine", "similarity", "--name", "labels-2"]
    page = pages.open("labels", collection="shop", labels=TYPED, part="labels")
    page.text_input(key="run_name:labels-2").set_value("labels").run()
    assert "The label run labels already has this name: 120 documents" in shown(page)
    page.button(key="run_labels").click().run()
    assert len(started.commands) == 1 and "tick the box to replace the run" in shown(page)
    page.checkbox(key="run_name_replace:labels").check().run()
    page.button(key="run_labels").click().run()
    assert started.commands[-1][4:] == ["--engine", "similarity", "--name", "labels", "--replace"]


def test_what_is_typed_wrong_is_said(pages: Pages) -> None:
    shop(pages)
    page = pages.open("labels", collection="shop", labels="only one")
    assert "is the only label" in shown(page)
    page = pages.open("labels", collection="shop", labels="one\nOne")
    assert "repeats label" in shown(page)


def test_the_distribution_and_the_documents_of_a_label(pages: Pages, labelled: Collection) -> None:
    page = pages.open("labels", collection="shop")
    said = shown(page)
    counts = labelled.run("labels").run.report["counts"]
    for name, count in counts.items():
        assert f"{name}{count} · {count / 120:.1%}" in said
    assert "Documents 120" in said and "Corrected 0" in said
    page.selectbox(key="label").set_value("screen").run()
    assert "screen" in shown(page) and "probability" in shown(page)


def test_a_correction_is_kept_and_the_next_run_is_offered(pages: Pages, labelled: Collection, started: Started) -> None:
    [first, second] = labelled.unsure(k=2)
    page = pages.open("labels", collection="shop", part="review")
    assert first.text in shown(
        page
    ) and f"{first.label} {first.score:.2f} · else {first.other} {first.other_score:.2f}" in shown(page)
    page.selectbox(key=f"right {first.id}").set_value(first.other).run()
    page.button(key=f"keep {first.id}").click().run()
    page.button(key=f"keep {second.id}").click().run()
    assert {each.id: each.labels for each in corrections(labelled.stored)} == {
        first.id: (first.other,), second.id: (second.label,),
    }  # fmt: skip
    assert "2 corrections stored, 2 since this run" in shown(page)
    assert "Corrected 2" in shown(pages.open("labels", collection="shop", part="documents by label"))
    assert first.text not in shown(page)
    assert page.button(key="again_do").disabled
    page.checkbox(key="again_replace:labels").check().run()
    page.button(key="again_do").click().run()
    words = started.commands[0]
    assert words[:2] == ["label", "shop.sonde"]
    assert words[4:10] == ["--name", "labels", "--engine", "similarity", "--seed", "0"]
    assert words[10::2] == ["--shortlist", "--device", "--dtype", "--replace"]
    labelled.label(LABELS, replace=True)
    page = pages.open("labels", collection="shop", part="review")
    assert "2 corrections stored." in shown(page)
    page.multiselect(key="forget").set_value([first.id]).run()
    page.button(key="forget_do").click().run()
    assert [each.id for each in corrections(labelled.stored)] == [second.id]


def test_a_new_run_can_use_the_corrections_of_another_run(pages: Pages, labelled: Collection, started: Started) -> None:
    page = pages.open("labels", collection="shop", part="labels")
    assert [box.label for box in page.selectbox if box.label.startswith("Use")] == [], "no run has corrections"
    labelled.correct({"parcel-1": "battery", "screen-2": "none of these", "screen-3": "refund"}, "labels")
    page = pages.open("labels", collection="shop", part="labels")
    page.text_area(key="labels").set_value("parcel\nbattery\nscreen").run()
    box = page.selectbox(key="run_corrections_of")
    assert (box.label, box.value, box.options) == (
        "Use the corrections of",
        "no other run",
        ["no other run", "labels (2)"],
    )
    box.set_value("labels").run()
    page.button(key="run_labels").click().run()
    assert started.commands[-1][4:] == ["--engine", "similarity", "--name", "labels-2", "--corrections-of", "labels"]


def test_corrections_that_are_all_none_of_these_are_offered(pages: Pages, labelled: Collection) -> None:
    labelled.correct({"parcel-1": "none of these", "screen-2": "none of these"}, "labels")
    page = pages.open("labels", collection="shop", part="labels", labels="car\nboat")
    assert page.selectbox(key="run_corrections_of").options == ["no other run", "labels (2)"]


def test_the_form_begins_as_the_run_was_asked_for(pages: Pages, labelled: Collection) -> None:
    """After a reload the labels came back, but not None of these."""
    labelled.label(LABELS, none=True, replace=True)
    page = pages.open("labels", collection="shop", part="labels")
    assert (page.text_area(key="labels").value, page.toggle(key="none").value) == (TYPED, True)
    labelled.label(LABELS, multi_label=True, threshold=0.3, replace=True)
    page = pages.open("labels", collection="shop", part="labels")
    assert (page.toggle(key="several").value, page.slider(key="least_True").value) == (True, 0.3)
    page.toggle(key="several").set_value(False).run()
    assert (page.toggle(key="none").value, page.slider(key="least_False").value) == (False, 0.0)


def test_documents_are_reviewed_at_random(pages: Pages, labelled: Collection) -> None:
    first, second = labelled.unsure(k=2, random=True)
    page = pages.open("labels", collection="shop", part="review", review_order="At random")
    assert first.text in shown(page)
    next(button for button in page.button if button.key == f"keep {first.id}").click().run()
    assert [each.id for each in corrections(labelled.stored)] == [first.id]
    assert first.text not in shown(page) and second.text in shown(page)


def test_correcting_while_another_writes(pages: Pages, labelled: Collection) -> None:
    [first] = labelled.unsure(k=1)
    page = pages.open("labels", collection="shop", part="review")
    with writer_lock(labelled.path):
        page.button(key=f"keep {first.id}").click().run()
    assert "Another process is writing to this collection" in shown(page) and corrections(labelled.stored) == []


def test_several_labels_are_corrected_together(pages: Pages) -> None:
    made = shop(pages)
    made.label(LABELS, multi_label=True)
    [first] = made.unsure(k=1)
    page = pages.open("labels", collection="shop", part="review")
    page.multiselect(key=f"right {first.id}").set_value(["screen", "refund"]).run()
    page.button(key=f"keep {first.id}").click().run()
    assert [each.labels for each in corrections(made.stored)] == [("screen", "refund")]


def test_against_a_column_of_the_truth(pages: Pages, labelled: Collection) -> None:
    page = pages.open("labels", collection="shop", part="against a column")
    assert not page.error and page.selectbox(key="truth").value is None
    page.selectbox(key="truth").set_value("theme").run()
    right = sum(row["label:labels"] == row["theme"] for row in labelled.rows())
    assert f"Accuracy {right / 120:.3f}" in shown(page) and "Documents with both 120" in shown(page)
    assert len(page.get("plotly_chart")) == 1
    assert page.dataframe[0].value["documents"].tolist() == [30] * 4


def test_labels_are_renamed_and_deleted(pages: Pages, labelled: Collection) -> None:
    page = pages.open("labels", collection="shop")
    page.text_input(key="label_rename").set_value("kinds").run()
    page.button(key="label_rename_do").click().run()
    assert [run.name for run in labelled.runs()] == ["kinds"] and page.selectbox(key="run").value == "kinds"
    page.button(key="label_delete").click().run()
    assert "No labels yet" in shown(page)


def test_text_that_looks_like_markup_stays_text(pages: Pages) -> None:
    made = shop(pages, hostile=True)
    made.label([MARKUP.replace(":", ";"), "parcel"], name=MARKUP)
    made.correct({"parcel-1": "parcel"}, run=MARKUP)
    for part in ("labels", "documents by label", "review", "against a column"):
        page = pages.open("labels", collection="shop", part=part, truth="theme")
        unread(page)
    page = pages.open("labels", collection="shop", part="labels")
    next(button for button in page.button if button.label == "Try on a sample").click().run()
    unread(page)
    assert "Sample of 50 documents" in shown(page)


def test_a_run_that_is_gone(pages: Pages, labelled: Collection) -> None:
    page = pages.open("labels", collection="shop", run="gone", part="review")
    assert not page.exception
    labelled.delete_run("labels")
    page.run()
    assert "No labels yet" in shown(page)


def test_a_trial_gives_what_a_run_gives(pages: Pages) -> None:
    made = shop(pages)
    trial = try_labels(made.stored, LABELS, count=40)
    made.label(LABELS)
    given = {row["id"]: row["label:labels"] for row in made.rows()}
    assert [document.label for document in trial.documents] == [given[document.id] for document in trial.documents]
    assert trial.adapted and sum(trial.counts.values()) == 40
    margins = [document.margin for document in trial.documents]
    assert margins == sorted(margins)
    several = try_labels(made.stored, LABELS, LabelSettings(multi_label=True, threshold=0.999999), count=10)
    assert several.counts["none of these"] == 10 and not several.adapted
    with pytest.raises(UsageError, match="is the only label"):
        try_labels(made.stored, ["one"])


def test_labelling_again_repeats_every_setting_of_the_run(pages: Pages, labelled: Collection, started: Started) -> None:
    settings = LabelSettings(
        engine="nli", shortlist=2, device="cpu", dtype="float32", threshold=0.1, template="It is {}.", seed=3,
        budget=360, where="length > 0", replace=True,
    )  # fmt: skip
    words = _again_words(pages, labelled, started, settings, NliJudge(PairModel(*build_pairs("bert"), name="tiny")))
    kept = asdict(settings) | {"labels_file": words[words.index("--labels-file") + 1], "model": "tiny"}
    for name in ("multi_label", "corrections", "none", "promise", "corrections_of"):
        del kept[name]
    flags = {"--replace"}
    given = {word[2:].replace("-", "_"): words[place + 1] for place, word in enumerate(words)
             if word.startswith("--") and word not in flags}  # fmt: skip
    assert given == {name: str(value) for name, value in kept.items() if name != "replace"}
    assert "--replace" in words


def test_labelling_again_refuses_again_what_fits_no_label(pages: Pages, labelled: Collection, started: Started) -> None:
    words = _again_words(pages, labelled, started, LabelSettings(promise=0.1, replace=True), None)
    assert words[words.index("--promise") + 1] == "0.1"


def test_labelling_again_by_late_interaction(pages: Pages, labelled: Collection, started: Started) -> None:
    words = _again_words(pages, labelled, started, LabelSettings(engine="reranker", replace=True), None)
    assert words[words.index("--model") + 1] == "late"


def _again_words(
    pages: Pages, labelled: Collection, started: Started, settings: LabelSettings, judge: NliJudge | None
) -> list[str]:
    label_collection(labelled.stored, LABELS, settings, judge=judge)
    labelled.correct({next(labelled.rows())["id"]: "screen"})
    page = pages.open("labels", collection="shop", part="review")
    page.checkbox(key="again_replace:labels").check().run()
    page.button(key="again_do").click().run()
    return started.commands[0]

"""A taxonomy on the page Clusters and topics: made of a run, edited, undone."""
# ruff: noqa: F811  (fixtures that are imported)

import json
from typing import Any

import pytest
from reported import reported
from ui_overview import Started, shop, started  # noqa: F401  (fixture)
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (fixture)

from sonde.app.api import Collection


@pytest.fixture
def kept(pages: Pages) -> Collection:
    made = shop(pages)
    made.cluster("k", k=4, refits=0)
    made.make_taxonomy("k")
    return made


def test_a_run_becomes_a_taxonomy(pages: Pages) -> None:
    made = shop(pages)
    made.cluster("k", k=4, refits=0)
    page = pages.open("clusters", collection="shop")
    page.button(key="make_taxonomy").click().run()
    assert [(run.kind, run.name) for run in made.runs()] == [("cluster", "k"), ("taxonomy", "taxonomy")]
    assert page.selectbox(key="run").value == "taxonomy:taxonomy"
    assert len(page.dataframe[0].value) == 4
    unread(page)


def test_a_second_taxonomy_is_made_only_after_it_is_said_what_that_means(pages: Pages, kept: Collection) -> None:
    page = pages.open("clusters", collection="shop", run="cluster:k")
    said = shown(page)
    assert "This makes another taxonomy, 'taxonomy-2'. Your edits in other taxonomies stay there" in said
    assert "You cannot split merged clusters again" in said
    page.button(key="make_taxonomy").click().run()
    assert page.selectbox(key="run").value == "taxonomy:taxonomy-2"


def test_a_merge_says_what_is_lost_and_keeps_the_group_above(pages: Pages, kept: Collection) -> None:
    kept.edit_taxonomy("move", groups=[1], to=0)
    kept.edit_taxonomy("describe", groups=[1], description="about")
    above, below, *_ = [f"{group.number} {group.name}" for group in kept.taxonomy().groups]
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([below, above]).run()
    [box] = [box for box in page.selectbox if box.label == "Group to keep"]
    assert box.value == above, "although the one under it was chosen first"
    assert f"All documents move to {above}." in shown(page)
    assert f"{below}: its name, its description" in shown(page)
    page.button(key="tax_merge_do").click().run()
    assert [group.number for group in kept.taxonomy().groups] == [0, 2, 3]
    page.button(key="tax_undo").click().run()
    assert kept.taxonomy()[1].description == "about", "nothing is lost after an undo"


def test_groups_are_edited_and_the_last_edit_is_undone(pages: Pages, kept: Collection) -> None:
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    assert page.button(key="tax_undo").disabled
    names = [f"{group.number} {group.name}" for group in kept.taxonomy().groups]
    page.multiselect(key="tax_groups").set_value(names[:2]).run()
    assert [text for text in shown(page).splitlines() if text.endswith(": its name")] == [f"{names[1]}: its name"]
    page.button(key="tax_merge_do").click().run()
    assert [group.number for group in kept.taxonomy().groups] == [0, 2, 3]
    assert kept.taxonomy_log()[0].by == "web UI"
    page.button(key="tax_undo").click().run()
    assert [group.number for group in kept.taxonomy().groups] == [0, 1, 2, 3]
    page.multiselect(key="tax_groups").set_value(names[1:2]).run()
    name = kept.taxonomy()[1].name
    page.text_input(key=f"tax_name_1_{name}").set_value("Better").run()
    page.button(key="tax_name_do").click().run()
    assert kept.taxonomy()[1].name == "Better"
    page.text_input(key="tax_add_name").set_value("Above").run()
    page.button(key="tax_add_do").click().run()
    assert kept.taxonomy()[4].name == "Above"
    page.multiselect(key="tax_groups").set_value(["1 Better"]).run()
    page.selectbox(key="tax_move_to").set_value("Above").run()
    page.button(key="tax_move_do").click().run()
    assert kept.taxonomy()[1].path == "Above > Better"
    page.multiselect(key="tax_groups").set_value(["1 Better"]).run()
    page.button(key="tax_lock").click().run()
    assert kept.taxonomy()[1].locked
    unread(page)


def test_a_renamed_group_stays_chosen_with_the_description_that_was_typed(pages: Pages, kept: Collection) -> None:
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    name = kept.taxonomy()[1].name
    page.multiselect(key="tax_groups").set_value([f"1 {name}"]).run()
    page.text_input(key=f"tax_name_1_{name}").set_value("Better")
    page.text_input(key="tax_about_1_").set_value("my words")
    page.button(key="tax_name_do").click().run()
    assert page.multiselect(key="tax_groups").value == ["1 Better"]
    assert (kept.taxonomy()[1].name, page.text_input(key="tax_about_1_").value) == ("Better", "my words")
    page.button(key="tax_about_do").click().run()
    assert (kept.taxonomy()[1].description, page.multiselect(key="tax_groups").value) == ("my words", ["1 Better"])
    page.button(key="tax_remove").click().run()
    assert page.multiselect(key="tax_groups").value == []


def test_a_rule_is_shown_where_it_is_edited(pages: Pages, kept: Collection) -> None:
    """The boxes were empty, so to add an example one had to type the rule again."""
    name = f"1 {kept.taxonomy()[1].name}"
    some = [row["id"] for row in kept.rows()][:2]
    kept.edit_taxonomy("rule", groups=[1], where="length > 9000", examples=some, near=0.8)
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([name]).run()
    boxes = {each.label: each for each in page.text_input}
    assert boxes["Filter"].value == "length > 9000"
    assert boxes["Ids of examples, separated by commas"].value == ", ".join(some)
    assert next(each for each in page.slider if each.label == "Minimum cosine to an example").value == 0.8
    boxes["Filter"].set_value("length > 9999").run()
    page.button(key="tax_rule_do").click().run()
    found = kept.taxonomy()[1]
    assert (found.rule_where, found.rule_examples, found.rule_near) == ("length > 9999", tuple(some), 0.8)
    other = f"0 {kept.taxonomy()[0].name}"
    page.multiselect(key="tax_groups").set_value([other]).run()
    assert {each.label: each.value for each in page.text_input}["Filter"] == ""
    unread(page)


def test_documents_are_moved_and_stay_locked(pages: Pages, kept: Collection) -> None:
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"0 {kept.taxonomy()[0].name}"]).run()
    first = page.multiselect(key="tax_members").options[0]
    page.multiselect(key="tax_members").set_value([first]).run()
    page.selectbox(key="tax_members_to").set_value(kept.taxonomy()[2].path).run()
    page.button(key="tax_members_do").click().run()
    assert kept.taxonomy().locked == 1 and kept.taxonomy_log()[0].said.startswith("moved 1 document to 2 ")
    unread(page)


def test_updates_are_jobs(pages: Pages, kept: Collection, started: Started) -> None:
    pages.open("clusters", collection="shop", run="taxonomy:taxonomy").button(key="tax_update").click().run()
    pages.open("clusters", collection="shop", run="taxonomy:taxonomy").button(key="tax_refit").click().run()
    assert started.commands == [
        ["taxonomy", "update", "shop.sonde", "--name", "taxonomy"],
        ["taxonomy", "refit", "shop.sonde", "--name", "taxonomy"],
    ]


def test_what_cannot_be_is_said(pages: Pages, kept: Collection) -> None:
    kept.edit_taxonomy("lock", groups=[0])
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"0 {kept.taxonomy()[0].name}"]).run()
    page.button(key="tax_remove").click().run()
    assert "cannot be removed" in shown(page) and "unlock that first" in shown(page)


def test_a_group_that_was_changed_elsewhere_keeps_what_was_typed(pages: Pages, kept: Collection) -> None:
    """Its card was gone, and the click and the typed name with it, without a word."""
    kept.edit_taxonomy("describe", groups=[1], description="old")
    name = kept.taxonomy()[1].name
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"1 {name}"]).run()
    kept.edit_taxonomy("rename", groups=[1], name="Theirs")
    page.text_input(key=f"tax_name_1_{name}").set_value("Mine")
    page.text_input(key="tax_about_1_old").set_value("my words")
    for _ in range(2):  # a browser can leave the box in one run and click in the next one
        page.button(key="tax_name_do").click().run()
        assert "Nothing was saved here." in shown(page) and f"1 {name} is now called Theirs." in shown(page)
        assert kept.taxonomy()[1].name == "Theirs"
    assert page.multiselect(key="tax_groups").value == ["1 Theirs"]
    assert page.text_input(key="tax_name_1_Theirs").value == "Mine"
    assert page.text_input(key="tax_about_1_old").value == "my words"
    page.button(key="tax_changed").click().run()
    page.button(key="tax_name_do").click().run()
    assert kept.taxonomy()[1].name == "Mine" and "Nothing was saved" not in shown(page)


def test_a_group_that_was_removed_elsewhere_is_named_with_what_was_typed(pages: Pages, kept: Collection) -> None:
    name = kept.taxonomy()[1].name
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"1 {name}"]).run()
    kept.edit_taxonomy("remove", groups=[1])
    page.text_input(key=f"tax_name_1_{name}").set_value(MARKUP)
    page.button(key="tax_name_do").click().run()
    assert f"1 {name} is gone: removed or merged.\nYou typed: {MARKUP}" in shown(page)
    unread(page)


def test_hostile_names_are_text(pages: Pages) -> None:
    made = shop(pages, hostile=True)
    made.edit_taxonomy("add", name=MARKUP, description=MARKUP)
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"0 {MARKUP}"]).run()
    unread(page)


def test_a_chart_by_column_is_of_one_level_and_period(pages: Pages) -> None:
    made = reported(pages.shelf / "desk.sonde")
    page = pages.open("clusters", collection="desk", run="taxonomy:taxonomy", part="by column", column="received")

    def chart(page: Any = page) -> tuple[list[str], list[str]]:
        [found] = page.get("plotly_chart")
        lines = json.loads(found.proto.spec)["data"]
        return [line["name"] for line in lines], lines[0]["x"]

    days = ["2026-01-05", "2026-01-06", "2026-01-14", "2026-02-02", "2026-02-03"]
    assert chart() == (["0 · cards", "3 · cash"], days)
    page.selectbox(key="period").set_value("month").run()
    assert chart() == (["0 · cards", "3 · cash"], ["2026-01", "2026-02"])
    page.segmented_control(key="level of taxonomy:taxonomy").set_value("Anliegen").run()
    assert chart() == (["1 · lost", "4 · late", "2 · late"], ["2026-01", "2026-02"])
    made.edit_taxonomy("move", ids=["d0", "d1", "d7"], to="cards > late")
    assert chart(page.run()) == (["2 · late", "4 · late", "1 · lost"], ["2026-01", "2026-02"])
    unread(page)

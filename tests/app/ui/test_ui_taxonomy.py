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


def test_one_button_saves_the_name_and_the_description(pages: Pages, kept: Collection) -> None:
    """A description was lost where the button that saved the name was clicked."""
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    name = kept.taxonomy()[1].name
    page.multiselect(key="tax_groups").set_value([f"1 {name}"]).run()
    page.button(key="tax_name_do").click().run()
    assert "Change the name or the description first." in shown(page)
    page.text_input(key=f"tax_name_1_{name}").set_value("Better")
    page.text_input(key="tax_about_1_").set_value("my words")
    page.button(key="tax_name_do").click().run()
    assert page.multiselect(key="tax_groups").value == ["1 Better"]
    assert (kept.taxonomy()[1].name, kept.taxonomy()[1].description) == ("Better", "my words")
    page.text_input(key="tax_about_1_my words").set_value("others")
    page.button(key="tax_name_do").click().run()
    assert (kept.taxonomy()[1].name, kept.taxonomy()[1].description) == ("Better", "others")
    assert [entry.operation for entry in kept.taxonomy_log()] == ["describe", "describe", "rename", "make"]
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


def documents(page: Any) -> Any:
    """Return the table of a group's documents, in which rows are ticked."""
    return next(each for each in page.dataframe if each.key and each.key.startswith("tax_documents_"))


def tick(page: Any, *rows: int) -> None:
    page.session_state[documents(page).key] = {"selection": {"rows": list(rows)}}
    page.run()


@pytest.mark.parametrize("to", ["another group", "no group"])
def test_several_documents_are_moved_in_one_edit_and_stay_locked(pages: Pages, kept: Collection, to: str) -> None:
    """They had to be picked one by one from a list of the first 50."""
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"0 {kept.taxonomy()[0].name}"]).run()
    ids = [member.id for member in kept.members("taxonomy", 0, kind="taxonomy", k=500)]
    assert documents(page).value["id"].tolist() == ids and page.button(key="tax_members_do").disabled
    tick(page, 0, 2, 3)
    assert page.button(key="tax_members_do").label == "Move 3 documents"
    where = kept.taxonomy()[2].path if to == "another group" else to
    page.selectbox(key="tax_members_to").set_value(where).run()
    page.button(key="tax_members_do").click().run()
    target = 2 if to == "another group" else -1
    numbers = {each.id: each.number for each in kept.assignments("taxonomy", kind="taxonomy")}
    assert [numbers[ids[place]] for place in (0, 1, 2, 3)] == [target, 0, target, target]
    assert kept.taxonomy().locked == 3 and kept.taxonomy_log()[0].said.startswith("moved 3 documents ")
    assert page.button(key="tax_members_do").disabled, "rows that took the places of others are not chosen"
    page.button(key="tax_undo").click().run()
    assert {each.id: each.number for each in kept.assignments("taxonomy", kind="taxonomy")}[ids[3]] == 0
    assert kept.taxonomy().locked == 0
    unread(page)


def test_all_that_a_search_in_a_group_finds_is_moved(pages: Pages, kept: Collection) -> None:
    kept.edit_taxonomy("move", groups=[1], to=0)
    inside = {each.id for each in kept.assignments("taxonomy", kind="taxonomy") if each.number in (0, 1)}
    query = kept.documents(sorted(inside)[:1])[sorted(inside)[0]].text
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"0 {kept.taxonomy()[0].name}"]).run()
    page.text_input(key="tax_find_0").set_value(query).run()
    found = documents(page).value
    assert set(found["id"]) <= inside and set(found.columns) == {"relevance", "document", "id"}
    sure = [id for id, relevance in zip(found["id"], found["relevance"], strict=True) if "weak" not in relevance]
    assert 1 < len(sure) < len(found)
    button = page.button(key="tax_members_all")
    assert button.label == f"Choose the {len(sure)} hits that are not weak"
    button.click().run()
    page.selectbox(key="tax_members_to").set_value(kept.taxonomy()[3].path).run()
    page.button(key="tax_members_do").click().run()
    numbers = {each.id: each.number for each in kept.assignments("taxonomy", kind="taxonomy")}
    assert {numbers[id] for id in sure} == {3} and kept.taxonomy_log()[0].documents == len(sure)
    page.text_input(key="tax_find_0").set_value("").run()
    unread(page)


def test_documents_are_locked_where_they_are(pages: Pages, kept: Collection) -> None:
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.multiselect(key="tax_groups").set_value([f"0 {kept.taxonomy()[0].name}"]).run()
    tick(page, 0, 1)
    page.button(key="tax_members_lock").click().run()
    assert kept.taxonomy().locked == 2


def test_a_taxonomy_is_renamed_and_deleted_after_it_is_said_what_is_lost(pages: Pages, kept: Collection) -> None:
    kept.edit_taxonomy("move", ids=[next(iter(kept.rows()))["id"]], to="none")
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.button(key="tax_rename_do").click().run()
    assert "Change the name first." in shown(page)
    page.text_input(key="tax_rename_taxonomy").set_value("ours").run()
    page.button(key="tax_rename_do").click().run()
    assert page.selectbox(key="run").value == "taxonomy:ours" and len(kept.taxonomy("ours").groups) == 4
    said = "Delete the taxonomy ours? You cannot undo this. You will lose 4 groups with names, descriptions and rules, "
    assert said + "the locks of 1 document, the log of 1 edit." in shown(page)
    assert "The documents are not changed." in shown(page)
    page.button(key="tax_delete_do").click().run()
    assert [(run.kind, run.name) for run in kept.runs()] == [("cluster", "k")]
    assert page.selectbox(key="run").value == "cluster:k"
    unread(page)


def test_the_name_of_a_taxonomy_that_is_taken_is_refused(pages: Pages, kept: Collection) -> None:
    kept.make_taxonomy("k", "other")
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    page.text_input(key="tax_rename_taxonomy").set_value("other").run()
    page.button(key="tax_rename_do").click().run()
    assert "other" in page.error[0].value and page.selectbox(key="run").value == "taxonomy:taxonomy"


def test_the_number_of_documents_comes_before_the_names(pages: Pages, kept: Collection) -> None:
    """On a phone, the names filled the table, and the numbers were outside of it."""
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    assert list(page.dataframe[0].value.columns)[:3] == ["number", "documents", "group"]


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

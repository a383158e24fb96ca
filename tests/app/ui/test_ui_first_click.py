"""Buttons beside a text box: the first click after typing counts, and a click without a name says what is missing.

A browser sends what was typed when the box is left. A button that is disabled until then misses the click that leaves
the box.
"""
# ruff: noqa: F811  (fixtures that are imported)

import datetime
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from ui_overview import Started, mapped, shop, started  # noqa: F401  (fixture)
from ui_pages import Pages, pages, shown  # noqa: F401  (fixture)

from sonde.app.api import Collection


@pytest.fixture
def made(pages: Pages) -> Collection:
    collection = shop(pages)
    collection.cluster("k", k=4, refits=0)
    return collection


def click(page: AppTest, key: str) -> list[str]:
    """Click a button, which must be enabled, and return the warnings that the page then shows."""
    assert not page.button(key=key).disabled
    page.button(key=key).click().run()
    assert not page.exception and not page.error
    return [each.value for each in page.warning]


def type_in(page: AppTest, key: str, value: str) -> None:
    """Type into a box without leaving it: the page is not drawn again."""
    page.text_input(key=key).set_value(value)


@pytest.mark.parametrize(
    ("name", "address", "box", "button"),
    [
        ("clusters", {}, "new_name_topics:topics", "new_start"),
        ("labels", {"labels": "parcel\nrefund"}, "run_name:labels", "run_labels"),
        ("data", {"do": "Check"}, "check-name:check", "check-start"),
        ("map", {"do": "cluster"}, "part_name:selection", "part_start"),
    ],
)
def test_a_run_without_a_name_is_not_started(
    pages: Pages, made: Collection, started: Started, name: str, address: dict[str, str], box: str, button: str
) -> None:
    mapped(made)
    page = pages.open(name, collection="shop", **address)
    type_in(page, box, " ")
    assert click(page, button) == ["Type a name."]
    assert started.commands == []
    type_in(page, box, "other")
    assert click(page, button) == []
    [words] = started.commands
    assert words[words.index("--name") + 1] == "other"


def test_a_run_whose_name_is_taken_is_not_started(pages: Pages, made: Collection, started: Started) -> None:
    page = pages.open("clusters", collection="shop")
    page.radio(key="new_method").set_value("kmeans").run()
    type_in(page, "new_name_kmeans:kmeans", "k")
    assert click(page, "new_start") == ["Type another name, or tick the box to replace the run."]
    assert started.commands == []


def test_what_is_new_needs_a_start(pages: Pages, made: Collection, started: Started) -> None:
    page = pages.open("data", collection="shop", do="What is new")
    assert click(page, "watch-start") == ["Choose since when documents are new."]
    page.selectbox(key="watch-since").set_value("a date").run()
    assert click(page, "watch-start") == ["Choose the first day of the new documents."]
    page.date_input(key="watch-day").set_value(datetime.date(2026, 11, 1))
    assert click(page, "watch-start") == []
    assert started.commands[0][:3] == ["watch", "shop.sonde", "--name"]


def test_a_tag_and_labels_of_a_selection(pages: Pages, made: Collection, started: Started) -> None:
    mapped(made)
    made.tag("mine", where="theme = 'refund'")
    page = pages.open("map", collection="shop", do="tag")
    assert click(page, "tag_keep") == ["Type a name."]
    type_in(page, "tag_name", "mine")
    assert click(page, "tag_keep") == ["Choose whether to add to the tag or to replace it."]
    type_in(page, "tag_name", "late")
    assert click(page, "tag_keep") == []
    assert sorted(run.name for run in made.runs("tag")) == ["late", "mine"]
    page = pages.open("map", collection="shop", do="label")
    assert click(page, "part_label") == ["Type the labels first, one per line."]
    page.text_area(key="part_labels").set_value("parcel\nrefund")
    assert click(page, "part_label") == []
    assert Path(started.commands[0][3]).read_text() == "parcel\nrefund\n"


def test_groups_and_runs_are_renamed(pages: Pages, made: Collection) -> None:
    made.label(["parcel", "refund"], name="l")
    page = pages.open("clusters", collection="shop")
    assert click(page, "rename_do") == ["Type a name."]
    type_in(page, "rename_to", "post")
    assert click(page, "rename_do") == []
    assert "post" in [item.name for item in made.run("k").items]
    page = pages.open("labels", collection="shop")
    assert click(page, "label_rename_do") == ["Type a name."]
    type_in(page, "label_rename", "kinds")
    assert click(page, "label_rename_do") == []
    assert [run.name for run in made.runs("label")] == ["kinds"]


def test_groups_of_a_taxonomy_are_named_described_and_given_a_rule(pages: Pages, made: Collection) -> None:
    made.make_taxonomy("k")
    page = pages.open("clusters", collection="shop", run="taxonomy:taxonomy")
    assert click(page, "tax_add_do") == ["Type a name."]
    type_in(page, "tax_add_name", "Above")
    assert click(page, "tax_add_do") == []
    assert made.taxonomy()[4].name == "Above"
    page.multiselect(key="tax_groups").set_value(["4 Above"]).run()
    assert click(page, "tax_rule_do") == ["Type a filter, or ids of examples."]
    assert click(page, "tax_name_do") == ["Change the name or the description first."]
    type_in(page, "tax_name_4_Above", "")
    assert click(page, "tax_name_do") == ["Type a name."]
    type_in(page, "tax_name_4_Above", "Below")
    assert click(page, "tax_name_do") == []
    assert made.taxonomy()[4].name == "Below"
    type_in(page, "tax_about_4_", "all else")
    assert click(page, "tax_name_do") == []
    assert made.taxonomy()[4].description == "all else"


def test_a_map_that_is_made_again_needs_a_name(pages: Pages, made: Collection, started: Started) -> None:
    mapped(made)
    ids = [row["id"] for row in made.rows()]
    pages.collection("shop", [{"id": id, "text": f"another text {id}"} for id in ids])
    page = pages.open("map", collection="shop")
    assert "This map is empty" in shown(page)
    [button] = [button for button in page.button if button.label == "Make the map"]
    assert not button.disabled
    type_in(page, "map_name:map-2", "")
    button.click().run()
    assert [each.value for each in page.warning] == ["Type a name."]
    assert started.commands == []

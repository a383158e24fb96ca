"""Titles of jobs: a word for what they do, and names in quotes."""
# ruff: noqa: F811  (fixtures that are imported)

from typing import Any

import pytest
from ui_overview import Started, kept_job, shop, started, topics  # noqa: F401  (fixture)
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (fixture)

from sonde.app.api import Collection


@pytest.fixture
def made(pages: Pages) -> Collection:
    collection = shop(pages)
    collection.cluster("k", k=4, refits=0)
    collection.make_taxonomy("k")
    topics(collection)
    collection.label(["parcel", "refund"])
    return collection


@pytest.mark.parametrize(
    ("name", "address", "button", "title"),
    [
        ("labels", {"part": "labels"}, "run_labels", "Label run 'labels-2'"),
        ("clusters", {}, "new_start", "Topics 'topics-2'"),
        ("clusters", {"run": "taxonomy:taxonomy"}, "tax_update", "Update the taxonomy 'taxonomy'"),
        ("clusters", {"run": "taxonomy:taxonomy"}, "tax_refit", "Refit the taxonomy 'taxonomy'"),
        ("data", {"do": "Check"}, "check-start", "Check 'check'"),
        ("evaluate", {"what": "Clusters", "run": "k"}, "measure_clusters", "Measure the run 'k'"),
        ("evaluate", {"what": "Labels"}, "measure_labels", "Measure the run 'labels'"),
    ],
)
def test_a_job_is_named_after_what_it_makes(
    pages: Pages, made: Collection, started: Started, name: str, address: dict[str, str], button: str, title: str
) -> None:
    page = pages.open(name, collection="shop", **address)
    page.button(key=button).click().run()
    assert started.titles == [title]


def test_what_is_new_is_named_like_its_task(pages: Pages, made: Collection, started: Started) -> None:
    page = pages.open("data", collection="shop", do="What is new")
    page.selectbox(key="watch-since").set_value("k").run()
    page.button(key="watch-start").click().run()
    assert started.titles == ["What is new 'watch'"]


def test_changes_of_a_run_name_it(pages: Pages, made: Collection, started: Started) -> None:
    pages.collection("shop", [{"id": "new", "text": "a new parcel"}])
    page = pages.open("clusters", collection="shop", run="cluster:k")
    names = page.multiselect(key="merge_which").options
    page.multiselect(key="merge_which").set_value(names[:2]).run()
    page.button(key="merge_do").click().run()
    next(button for button in page.button if button.label == "Add 1 new document").click().run()
    page = pages.open("clusters", collection="shop", run="topic:topics", part="hierarchy")
    page.slider(key="cut").set_value(2).run()
    next(button for button in page.button if button.label == "Apply").click().run()
    assert started.titles == [
        "Merge 2 groups of 'k'", "Add new documents to 'k'", "Reduce 'topics' to 2 topics",
    ]  # fmt: skip


def test_a_name_in_quotes_is_not_markup(pages: Pages, made: Collection) -> None:
    job = kept_job(pages, ["label"], title=f"Label run '{MARKUP}'")
    assert job.named == f"shop · Label run '{MARKUP}'"
    page = pages.open("data", collection="shop")
    assert f"shop · Label run '{MARKUP}'" in shown(page).replace("\\", "").replace(":small[]", "")
    unread(page)


def test_replacing_a_run_names_it_in_quotes(pages: Pages, made: Collection) -> None:
    page = pages.open("labels", collection="shop", part="labels")
    page.text_input(key="run_name:labels-2").set_value("labels").run()
    assert page.checkbox(key="run_name_replace:labels").label == "Replace the run 'labels'"


def test_a_collection_needs_a_name(pages: Pages) -> None:
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("a.csv", b"id,text\n1,some words\n2,other words\n", "text/csv")]).run()
    page.text_input(key="new-name").set_value("").run()
    assert [each.value for each in page.warning] == ["Type a name."]
    assert not page.error and "new-start" not in [button.key for button in page.button]

"""From a file to labelled, exported texts: in at most ten clicks, and by the keyboard alone."""

# ruff: noqa: F811  (fixtures that are imported)

import contextlib
import csv
import re
from pathlib import Path

import pytest
from in_chromium import chromium  # noqa: F401  (fixture)
from playwright.sync_api import Locator, Page, expect
from product_reviews import index, reviews
from served_ui import Server, Visit, server, visit, weightless  # noqa: F401  (fixtures)

MOST = 10
"""Clicks of the walk."""


class Clicks:
    """Clicks on a page, counted."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.count = visit, 0

    def on(self, control: Locator, leads_to: Locator | None = None) -> None:
        """Click; again, uncounted, if Streamlit lost the click because it was redrawing the page."""
        control.click()
        self.count += 1
        if leads_to is not None:
            with contextlib.suppress(AssertionError):
                expect(leads_to).to_be_visible(timeout=20_000)
            if not leads_to.is_visible():
                control.click()
        self.visit.settle()


def labelled(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return [row["label:labels"] for row in csv.DictReader(stream)]


@pytest.mark.long
def test_from_a_file_to_a_labelled_exported_selection_in_ten_clicks(visit: Visit, tmp_path: Path) -> None:
    page, clicks = visit.go("/"), Clicks(visit)
    expect(page.get_by_text("Sonde finds texts by meaning.")).to_be_visible()
    expect(page.get_by_role("button", name="Load the demo")).to_be_visible()
    with page.expect_file_chooser() as chooser:
        clicks.on(page.get_by_test_id("stFileUploader").get_by_role("button", name="Upload", exact=True))
    chooser.value.set_files(reviews(tmp_path / "reviews.csv"))
    start = page.get_by_role("button", name="Index 600 rows")
    expect(start).to_be_in_viewport(ratio=1)  # at 1280×800, nobody has to look for it
    expect(page.get_by_text(re.compile("about 600 documents in 600 passages"))).to_be_visible()
    clicks.on(start)
    expect(page.get_by_text("596 documents added.")).to_be_visible()
    box = page.get_by_role("textbox", name="Labels, one per line")
    clicks.on(page.get_by_test_id("stMain").get_by_role("link", name="Label", exact=True), box)
    clicks.on(box)
    page.keyboard.type("kettle\nphone\nfan")
    name = page.get_by_role("button", name="Label all documents")
    clicks.on(page.get_by_role("button", name=re.compile("^Run")))  # the first click outside the box
    expect(name).to_be_visible()
    clicks.on(name)
    expect(page.get_by_text("Label run 'labels': done")).to_be_visible()
    visit.settle()
    box, option = page.get_by_role("combobox", name=re.compile("Documents labelled")), page.get_by_role("option")
    clicks.on(box)
    with contextlib.suppress(AssertionError):  # the page is drawn again as the job ends, which may close an open list
        expect(option.first).to_be_visible(timeout=5_000)
    if not option.count():
        box.click()
    clicks.on(option.filter(has_text="phone"))
    export = page.get_by_role("button", name=re.compile(r"Download \d+ documents as CSV"))
    expect(export).to_be_visible()
    with page.expect_download() as download:
        clicks.on(export)
    found = labelled(download.value.path())
    assert set(found) == {"phone"} and len(found) == int((export.inner_text().split("Download ")[1]).split()[0])
    assert clicks.count <= MOST
    visit.check()


def reach(page: Page, control: Locator, key: str = "Tab", most: int = 120) -> None:
    """Press a key until a control has the focus, as somebody without a mouse does."""
    expect(control).to_be_visible()
    for _ in range(most):
        if control.evaluate("node => node === document.activeElement || node.contains(document.activeElement)"):
            return
        page.keyboard.press(key)
    pytest.fail(f"{control} cannot be reached with {key}")


@pytest.mark.long
def test_the_whole_walk_by_keyboard(visit: Visit, server: Server, tmp_path: Path) -> None:
    """Search, open a hit, label, correct a label, export: without a mouse."""
    index(server, tmp_path)
    page = visit.go("/search?collection=reviews")
    reach(page, page.get_by_label("Query", exact=True))
    page.keyboard.type("battery died")
    page.keyboard.press("Enter")
    visit.settle()
    expect(page.locator(".sonde-text").filter(has_text="the battery died after a week").first).to_be_visible()
    why = page.get_by_role("button", name="Why").first
    reach(page, why)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Explain in detail")).to_be_visible()
    page.keyboard.press("Escape")
    labels = page.get_by_test_id("stSidebarNav").get_by_role("link", name="Labels")
    reach(page, labels, "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No labels yet")).to_be_visible()
    visit.settle()
    reach(page, page.get_by_role("textbox", name="Labels, one per line"))
    page.keyboard.type("kettle\nphone\nfan")
    page.keyboard.press("Control+Enter")
    visit.settle()
    reach(page, page.get_by_role("button", name=re.compile("^Run")))
    page.keyboard.press("Enter")
    start = page.get_by_role("button", name="Label all documents")
    reach(page, start)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Label run 'labels': done")).to_be_visible()
    visit.settle()
    confirm = page.get_by_role("button", name="Confirm").first
    review = page.get_by_role("radiogroup", name="Show").get_by_role("radio", name="review")
    for _ in range(4):  # Streamlit can lose a choice, and the focus, while the page is drawn
        reach(page, page.get_by_role("radiogroup", name="Show"))
        reach(page, review, "ArrowRight")
        if review.get_attribute("aria-checked") == "false":
            page.keyboard.press("Space")
        with contextlib.suppress(AssertionError):
            expect(confirm).to_be_visible(timeout=15_000)
            break
    reach(page, confirm)
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("1 correction stored, 1 since this run"))).to_be_visible()
    visit.settle()
    export = page.get_by_role("button", name="Download", exact=True)
    expander = page.get_by_test_id("stExpander").filter(has_text="1 correction stored").locator("summary")
    reach(page, expander)
    page.keyboard.press("Enter")
    reach(page, export)
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.path().read_text().count("\n") == 1
    visit.check()

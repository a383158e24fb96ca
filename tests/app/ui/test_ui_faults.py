"""Faults that people found on a walk through the web UI, each in a real Chromium."""

# ruff: noqa: F811  (fixtures that are imported)

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from in_chromium import PATIENCE, activate, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Browser, BrowserContext, expect
from served_ui import Server, Visit, context, serving, visiting  # noqa: F401  (fixture)
from ui_overview import mapped, shop, topics
from ui_pages import Pages


def report(number: int) -> str:
    return " ".join(f"Sentence {n} of the long report {number} about parcels." for n in range(40)) + " Ending."


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place: Path = tmp_path_factory.mktemp("faults")
    (place / "shelf").mkdir()
    pages = Pages(place / "shelf", FakeEncoder())
    made = shop(pages)
    topics(made)
    mapped(made)
    made.label(["parcel", "battery", "screen", "refund"])
    made.close()
    pages.collection("long", [{"id": str(n), "text": report(n)} for n in range(40)]).close()
    with serving(place) as server:
        yield server


@pytest.fixture
def visit(context: BrowserContext, shelf: Server) -> Iterator[Visit]:
    with visiting(context, shelf) as visit:
        yield visit


def test_the_second_page_of_hits_opens_at_its_top(visit: Visit) -> None:
    page = visit.go("/search?collection=long&q=parcels")
    main = page.get_by_test_id("stMain")
    second = page.get_by_role("button", name="Page 2", exact=True)
    second.scroll_into_view_if_needed()
    assert main.evaluate("node => node.scrollTop") > 100
    activate(second)
    expect(page.locator(".sonde-rank").first).to_have_text("11")
    expect(page.locator(".sonde-rank").first).to_be_in_viewport()
    assert main.evaluate("node => node.scrollTop") == 0


def test_a_hit_whose_passage_is_cut_offers_its_whole_text(visit: Visit) -> None:
    page = visit.go("/search?collection=long&q=ending")
    whole = page.get_by_test_id("stExpander").filter(has_text="Whole text").first
    activate(whole.locator("summary"))
    expect(whole.get_by_text(re.compile(r"Sentence 39 of the long report \d+ about parcels. Ending"))).to_be_visible()


def test_labels_can_be_run_by_the_first_click_after_typing_them(visit: Visit) -> None:
    page = visit.go("/labels?collection=long")
    page.get_by_role("textbox", name="Labels, one per line").click()
    page.keyboard.type("parcel\nreport")
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(page.get_by_role("button", name="Label all documents")).to_be_enabled()


def test_a_popover_closes_when_its_work_is_done(visit: Visit) -> None:
    page = visit.go("/clusters?collection=shop&run=topic%3Atopics")
    activate(visit.open("Rename", page.get_by_label("New name")))
    page.get_by_label("New name").fill("parcels that came late")
    page.get_by_label("New name").press("Enter")
    button = page.get_by_test_id("stPopoverBody").get_by_role("button", name="Rename")
    expect(button).to_be_enabled()
    button.click()
    expect(page.get_by_test_id("stMain").get_by_text("parcels that came late").first).to_be_visible()
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)


@pytest.mark.long
def test_a_lost_server_is_told_in_our_words(visit: Visit, shelf: Server) -> None:
    page = visit.go("/search?collection=long")
    shelf.stop()
    try:
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text("Sonde is not running")).to_be_visible()
        expect(dialog).not_to_contain_text("Streamlit")
        expect(dialog).not_to_contain_text("streamlit")
        expect(dialog.get_by_text("The server does not answer.")).to_be_visible()
    finally:
        with page.expect_event("load"):  # a page that is closed while it loads can keep Chromium waiting for ever
            shelf.start()
    expect(dialog).to_have_count(0)
    visit.settle()


@pytest.mark.parametrize(
    ("address", "last"),
    [("data", "New collection"), ("labels", "against a column"), ("clusters", "compare"), ("search?q=parcel", "Why"),
     ("evaluate", "Nothing measured yet"), ("explain", "Is it safe")],
)  # fmt: skip
def test_nothing_is_cut_on_a_phone(context: BrowserContext, shelf: Server, address: str, last: str) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    page.set_default_timeout(PATIENCE)
    try:
        page.goto(f"{shelf.url}/{address}{'&' if '?' in address else '?'}collection=shop")
        expect(page.get_by_test_id("stMain").get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        expect(page.get_by_test_id("stMain").get_by_text(last).first).to_be_attached()
        cut = page.evaluate(
            """() => [...document.querySelectorAll('[data-testid=stMain] button, [data-testid=stMain] h1')]
            .filter(node => node.offsetParent && !node.closest('[data-testid=stDataFrame], .js-plotly-plot'))
            .filter(node => {
                const box = node.getBoundingClientRect();
                return box.left < 0 || box.right > innerWidth;
            })
            .map(node => node.innerText)"""
        )
        assert cut == []
    finally:
        page.close()


@pytest.mark.long
def test_a_page_loads_again_when_another_server_answers(visit: Visit, shelf: Server) -> None:
    page = visit.go("/map?collection=shop")
    page.get_by_role("searchbox", name="Search these documents").fill("parcel")
    page.keyboard.press("Enter")
    expect(page.locator(".wb[data-selected='100']")).to_be_visible()
    address = page.url
    shelf.stop()
    with page.expect_event("load"):
        shelf.start()
    visit.settle()
    expect(page.locator(".wb[data-selected='100']")).to_be_visible()
    assert page.url == address
    page.get_by_role("searchbox", name="Search these documents").fill("battery")
    page.keyboard.press("Enter")
    expect(page.locator(".wb-chip")).to_have_text(re.compile("^“battery”: best 100"))
    expect(page.locator(".wb[data-selected='100']")).to_be_visible()


def test_a_tap_on_a_point_opens_its_document(chromium: Browser, shelf: Server) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        page.goto(f"{shelf.url}/map?collection=shop")
        surface = page.locator(".wb-surface")
        expect(surface).to_be_visible()
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        surface.scroll_into_view_if_needed()
        across, down = page.locator(".place").evaluate("node => node.workbench.map.view.toScreen([119, 3])")
        box = surface.bounding_box()
        assert box is not None
        page.touchscreen.tap(box["x"] + across, box["y"] + down)
        expect(page.get_by_role("dialog").get_by_text("Nearest documents")).to_be_visible()
        assert re.search("doc=[a-z]+-29", page.url), page.url
    finally:
        context.close()

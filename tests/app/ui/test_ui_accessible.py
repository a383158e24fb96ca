"""Every page for people who do not see well: axe-core finds nothing serious, light or dark.

Contrast, names of controls, order of headings. Needs the package axe-playwright-python.
"""

# ruff: noqa: F811  (fixtures that are imported)

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fake_encoder import FakeEncoder
from in_chromium import PATIENCE, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Browser, Page, expect
from served_ui import Server, serving
from ui_overview import mapped, shop, topics
from ui_pages import Pages

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

SELECTED = quote('{"mode":"all","parts":[{"kind":"values","column":"theme","values":["parcel"]}]}')
PAGES = (
    "/map?collection=shop",
    f"/map?collection=shop&s={SELECTED}",
    f"/map?collection=shop&s={SELECTED}&doc=parcel-0",
    f"/map?collection=shop&s={SELECTED}&do=tag",
    "/search?collection=shop",
    "/search?collection=shop&q=parcel&filters=true",
    "/clusters?collection=shop",
    "/clusters?collection=shop&run=topic%3Atopics&part=hierarchy",
    "/clusters?collection=shop&part=compare",
    "/labels?collection=shop",
    "/labels?collection=shop&part=labels",
    "/labels?collection=shop&part=review",
    "/labels?collection=shop&part=against+a+column",
    "/explain?collection=shop",
    "/evaluate?collection=shop",
    "/data?collection=shop",
    "/data?collection=shop&do=New+collection",
    "/data?collection=shop&do=Delete",
    "/data?collection=shop&do=Check",
    "/data?collection=shop&do=Health",
    "/data?collection=nothing",
)
GRAVE = ("serious", "critical")
HEADINGS = ("heading-order", "page-has-heading-one", "empty-heading")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a collection that has topics and labels."""
    place: Path = tmp_path_factory.mktemp("accessible")
    (place / "shelf").mkdir()
    made = shop(Pages(place / "shelf", FakeEncoder()))
    topics(made)
    mapped(made)
    made.label(["parcel", "battery", "screen", "refund"])
    made.close()
    with serving(place) as server:
        yield server


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("empty")) as server:
        yield server


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    """One window for all addresses, in which Streamlit's scripts are read and compiled once: axe-core takes less."""
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def found(page: Page, url: str) -> list[str]:
    """Return what axe-core says against a page: what is grave, and headings that skip a level."""
    page.goto("about:blank")  # nothing of the test before is left, also where only the query differs
    page.goto(url)
    expect(page.get_by_test_id("stMain").get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    if "/map?" in url:
        expect(page.locator(f".wb[data-selected='{30 if '&s=' in url else 120}']")).to_be_visible()
    if "doc=" in url or "do=tag" in url:
        expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator("[data-stale=true], [data-testid=stSpinner], [data-testid=stSkeleton]")).to_have_count(0)
    violations: list[dict[str, Any]] = axe.Axe().run(page).response["violations"]
    bad = [each for each in violations if each["impact"] in GRAVE or each["id"] in HEADINGS]
    return [f"{each['id']}: {node['html'][:200]} {node['failureSummary']}" for each in bad for node in each["nodes"]]


@pytest.mark.parametrize(
    ("address", "scheme"),
    [
        *((address, "light") for address in PAGES),
        *((address, "dark") for address in PAGES[:2]),
        *(pytest.param(address, "dark", marks=pytest.mark.long) for address in PAGES[2:]),
    ],
)
def test_no_page_has_a_serious_fault(page: Page, shelf: Server, address: str, scheme: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme=scheme)
    assert found(page, f"{shelf.url}{address}") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_has_none_either(page: Page, empty: Server, scheme: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)
    assert found(page, empty.url) == []

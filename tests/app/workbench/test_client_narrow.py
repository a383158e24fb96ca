"""The workbench in a narrow window: the page scrolls past the map by wheel and by finger."""

# ruff: noqa: F811  (fixtures that are imported)

from pathlib import Path

import numpy as np
import pytest
from benched import table, write_page
from in_chromium import PATIENCE, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Browser, Page, expect
from shown_workbench import Show, show  # noqa: F401  (fixture)


def over_map(page: Page) -> tuple[float, float]:
    """Return the place of the middle of the map, and put the pointer there."""
    box = page.locator(".wb-surface").bounding_box()
    assert box is not None
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*place)
    return place


def state(page: Page) -> tuple[float, float]:
    """Return how far the page is scrolled, in pixels, and how far the map is zoomed."""
    return page.evaluate("[scrollY, document.querySelector('#root').workbench.map.view.zoomed]")


@pytest.mark.long
def test_the_wheel_scrolls_the_page_and_with_ctrl_it_zooms(show: Show) -> None:
    page = show()
    over_map(page)
    page.mouse.wheel(0, -120)
    page.wait_for_function("document.querySelector('#root').workbench.map.view.zoomed > 1.1")
    page.set_viewport_size({"width": 390, "height": 844})
    over_map(page)
    before = state(page)
    page.mouse.wheel(0, 200)
    page.wait_for_function("scrollY > 150")
    assert state(page)[1] == before[1], "the map has stayed as it was"
    over_map(page)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_function(f"document.querySelector('#root').workbench.map.view.zoomed > {1.1 * before[1]}")


def test_a_finger_scrolls_the_page_until_a_tool_is_chosen(chromium: Browser, tmp_path: Path) -> None:
    made = table()
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        page.goto(write_page(tmp_path, made))
        page.locator(f"[data-drawn='{int((~np.isnan(made.places[:, 0])).sum())}']").wait_for()
        expect(page.get_by_role("button", name="Move", exact=True)).to_have_attribute("aria-pressed", "true")
        swipe_up(page)
        page.wait_for_function("scrollY > 100")
        assert page.locator(".wb").get_attribute("data-selected") == "2000"
        page.get_by_role("button", name="Lasso", exact=True).tap()
        before = at_rest(page)
        swipe_up(page)
        assert at_rest(page) == before, "now the finger draws"
    finally:
        context.close()


def at_rest(page: Page) -> float:
    """Return how far the page is scrolled, in pixels, once it moves no more: a swipe goes on after the finger."""
    page.wait_for_function(
        "() => { const last = window.at; window.at = scrollY; return last === window.at; }", polling=200
    )
    return page.evaluate("scrollY")


def swipe_up(page: Page) -> None:
    """Move a finger up by 200 pixels, from the middle of the map."""
    across, down = over_map(page)
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *ys: float) -> None:
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": across, "y": y} for y in ys]})

    touch("touchStart", down)
    for step in range(10):
        touch("touchMove", down - 20 * (step + 1))
    touch("touchEnd")

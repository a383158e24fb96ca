"""The search of the workbench in a real Chromium: its query is a part of the selection, and what is typed stays."""

# ruff: noqa: F811  (fixtures that are imported)

from in_chromium import chromium  # noqa: F401  (fixture)
from playwright.sync_api import expect
from shown_workbench import Show, parts, selected, show  # noqa: F401  (show: a fixture)


def test_search_is_a_part_and_its_hits_come_first(show: Show) -> None:
    page = show()
    box = page.get_by_role("searchbox")
    box.fill("late parcels")
    box.press("Enter")
    page.locator("[data-selected='3']").wait_for()
    assert parts(page)["parts"] == [{"kind": "query", "query": "late parcels", "k": 100}]
    order = page.locator(".wb-doc")
    expect(order).to_have_count(3)
    assert [button.get_attribute("data-key") for button in order.all()] == ["row5", "row3", "row8"], "best first"
    box.fill("fail")
    box.press("Enter")
    expect(page.locator(".wb-chip")).to_contain_text("No model is available.")
    assert selected(page) == 0
    box.fill("")
    box.press("Enter")
    assert parts(page)["parts"] == [] and selected(page) == 2_000


def test_what_somebody_types_stays_when_the_page_is_drawn_again(show: Show) -> None:
    page = show()
    box = page.get_by_role("searchbox")
    box.fill("late parcels")
    page.evaluate("made.update({ options: {} })")
    expect(box).to_have_value("late parcels")
    box.press("Enter")
    page.locator("[data-selected='3']").wait_for()
    page.get_by_role("button", name="Undo").click()
    expect(box).to_have_value("")

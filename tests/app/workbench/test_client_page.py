"""The workbench in a real Chromium, on a page without a server: what hands and keys do, and what follows from it."""

# ruff: noqa: F811  (fixtures that are imported)

import json
from pathlib import Path

import numpy as np
import pytest
from benched import part_passes, passes, table, write_page
from in_chromium import activate, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Page, expect
from shown_workbench import Show, parts, selected, show  # noqa: F401  (show: a fixture)
from ui_pages import MARKUP

from sonde.pipelines.facets import Column, Facets

PLACED = 1_997
"""Documents of `table()` that have a place."""


def at(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where a place of the map is on the screen."""
    across, down = page.evaluate("([x, y]) => root.workbench.map.view.toScreen([x, y])", [x, y])
    box = page.locator(".wb-surface").bounding_box()
    assert box is not None
    return box["x"] + across, box["y"] + down


def drag(page: Page, *places: tuple[float, float]) -> None:
    page.mouse.move(*at(page, *places[0]))
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*at(page, *place), steps=8)
    page.mouse.up()


FOCUS = """() => {
  const active = document.activeElement, name = active.getAttribute("aria-label") ?? active.textContent.slice(0, 30);
  return [`${active.className}|${name}`, getComputedStyle(active).outlineStyle];
}"""
LEFT = ((1, 2), (4, 2), (4, 8), (1, 8), (1, 2.1))


def test_a_lasso_narrows_every_chart_and_the_table_exactly(show: Show) -> None:
    made = table()
    page = show(made)
    drag(page, *LEFT)
    selection = parts(page)
    expected = passes(made, selection)
    assert selected(page) == expected.sum() and 200 < expected.sum() < 600
    assert page.locator(".wb-selected").inner_text() == f"{expected.sum()} of 2,000 documents"
    group = made.columns[0]
    for code, name in enumerate(group.names):
        said = f"{name}: {(expected & (group.values == code)).sum()} of {(group.values == code).sum()}"
        expect(page.get_by_role("button", name=said, exact=True)).to_be_visible()
    expect(page.locator(".wb-count")).to_have_text(f"1 to 25 of {expected.sum()}")
    page.get_by_role("button", name="Previous page of documents").is_disabled()
    rows = page.locator(".wb-table tbody tr")
    expect(rows).to_have_count(25)
    first = np.flatnonzero(expected)[0]
    assert rows.first.locator("td").last.inner_text() == str(
        np.datetime64("1970-01-01") + int(made.columns[4].values[first])
    )


def test_bars_a_brush_and_an_area_narrow_each_other(show: Show) -> None:
    made = table()
    page = show(made)
    page.get_by_role("region", name="Charts").get_by_role("button", name="red:").click()
    drag(page, *LEFT)
    chart = page.get_by_role("region", name="stars", exact=True).locator("canvas")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.45, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + 20, steps=4)
    page.mouse.up()
    selection = parts(page)
    assert [part["kind"] for part in selection["parts"]] == ["values", "area", "range"]
    assert selection["parts"][2] == {"kind": "range", "column": "stars", "low": 3, "high": 5}
    expected = passes(made, selection)
    assert selected(page) == expected.sum() > 20
    page.get_by_label("Documents that match").select_option("any")
    anyhow = passes(made, {**selection, "mode": "any"})
    assert selected(page) == anyhow.sum() > expected.sum()
    page.get_by_label("Documents that match").select_option("all")
    page.locator(".wb-chiptext").first.click()
    assert parts(page)["parts"][0]["not"] is True
    dimmed = page.get_by_role("region", name="Charts").locator(".wb-left .wb-barname")
    expect(dimmed).to_have_text(["red"])  # which the inverted part leaves out
    expect(page.locator(".wb-legend .wb-left .wb-barname")).to_have_text(["red"])
    assert selected(page) == passes(made, parts(page)).sum() != expected.sum()
    page.get_by_role("button", name="Remove area").click()
    assert [part["kind"] for part in parts(page)["parts"]] == ["values", "range"]
    assert selected(page) == passes(made, parts(page)).sum()


def test_union_and_intersection_of_areas(show: Show) -> None:
    made = table()
    page = show(made)
    drag(page, *LEFT)
    page.keyboard.down("Shift")
    drag(page, (6, 6), (9, 6), (9, 9), (6, 9))
    page.keyboard.up("Shift")
    [part] = parts(page)["parts"]
    assert len(part["outlines"]) == 2
    union = part_passes(made, part)
    assert selected(page) == union.sum()
    page.keyboard.down("Alt")
    drag(page, (0, 5), (10, 5), (10, 10), (0, 10))
    page.keyboard.up("Alt")
    first, second = parts(page)["parts"]
    both = part_passes(made, first) & part_passes(made, second)
    assert selected(page) == both.sum() and 0 < both.sum() < union.sum()
    activate(page.get_by_role("button", name="Box"))
    drag(page, (2, 2), (5, 5))
    [box] = parts(page)["parts"]
    assert len(box["outlines"][0]) == 4
    assert selected(page) == part_passes(made, box).sum()


def test_undo_and_redo_by_buttons_and_keys(show: Show) -> None:
    page = show()
    drag(page, *LEFT)
    area = selected(page)
    page.get_by_role("region", name="Charts").get_by_role("button", name="red:").click()
    narrowed = selected(page)
    assert narrowed < area
    page.get_by_role("button", name="Undo").click()
    assert selected(page) == area
    page.keyboard.press("Control+z")
    assert selected(page) == 2_000
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.get_by_role("button", name="Redo").click()
    page.keyboard.press("Control+Shift+z")
    assert selected(page) == narrowed
    page.get_by_role("button", name="Clear", exact=True).first.click()
    assert selected(page) == 2_000


def test_the_legend_stays_and_a_click_isolates_a_group(show: Show) -> None:
    made = table()
    page = show(made)
    keys = page.get_by_role("group", name="Legend").locator(".wb-key")
    assert keys.count() == 4, "three groups, and none"
    keys.filter(has_text="green").click()
    assert parts(page) == {"mode": "all", "parts": [{"kind": "values", "column": "cluster:k", "values": ["green"]}]}
    assert selected(page) == (made.columns[0].values == 1).sum()
    assert keys.count() == 4
    expect(page.locator("[data-lit]")).to_have_attribute(
        "data-lit", str(((made.columns[0].values == 1) & ~np.isnan(made.places[:, 0])).sum())
    )
    keys.filter(has_text="none").click(modifiers=["Shift"])
    assert parts(page)["parts"][0]["values"] == ["green", None]
    assert selected(page) == np.isin(made.columns[0].values, [1, -1]).sum()
    keys.filter(has_text="none").click()
    keys.filter(has_text="none").click()
    assert parts(page)["parts"] == [], "a second click gives all back"


def test_a_cell_selects_its_value_and_a_row_opens_the_document(show: Show) -> None:
    made = table()
    page = show(made)
    row = page.locator(".wb-table tbody tr").nth(2)
    expect(row.locator(".wb-doc")).to_contain_text("a text")
    row.locator("td").nth(1).locator("button").click()
    part = parts(page)["parts"][0]
    name = made.columns[1].names[made.columns[1].values[2]]
    assert part["values"] == [{"other": True} if name == "kind 29" else name]
    page.locator(".wb-doc").first.click()
    drawer = page.get_by_role("dialog", name="Document")
    expect(drawer).to_be_visible()
    expect(drawer.get_by_role("heading")).to_have_text("A title")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()


def test_a_click_and_a_tap_on_a_point_open_it(show: Show) -> None:
    made = table(40)
    page = show(made)
    x, y = made.places[7].tolist()
    page.mouse.click(*at(page, x, y))
    expect(page.locator(".wb-facts")).to_contain_text("d7")
    assert page.evaluate("changes.length") == 0, "a click selects nothing"
    page.get_by_role("button", name="Close").click()
    page.mouse.move(*at(page, x, y))
    page.locator(".wb-tip").wait_for()
    assert page.locator(".wb-tip").inner_text().split() == ["A", "title", "a", "text"]


def test_another_table_of_the_same_collection_keeps_what_can_be_undone(show: Show) -> None:
    """A tag that was saved, or a run that ended, brings another table."""
    page = show()
    page.get_by_role("button", name="Box", exact=True).click()
    drag(page, (1, 2), (4, 8))
    count = selected(page)
    page.evaluate("made.update({ table: packed.slice(0), state: root.workbench.state })")
    assert selected(page) == count
    expect(page.get_by_role("button", name="Box", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Undo").click()
    assert selected(page) == 2_000


def test_the_parts_and_the_tools_are_whole_in_narrow_windows(show: Show) -> None:
    page = show(state={"s": json.dumps({"mode": "all", "parts": [
        {"kind": "values", "column": "kind", "values": ["kind 1", "kind 2", "kind 3"]},
        {"kind": "values", "column": "nothing of that name", "values": ["a value that no column has, in many words"]},
        {"kind": "ids", "ids": ["nowhere"]},
    ]})})  # fmt: skip
    wrong = json.dumps({"kind": "ids", "ids": ["nowhere"]}, separators=(",", ":"))
    page.evaluate("(key) => root.workbench.selector.problems.set(key, 'W'.repeat(200))", wrong)
    page.evaluate("root.workbench.refresh()")
    expect(page.get_by_text("W" * 200)).to_be_visible()
    for width in (1000, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for name in (".wb-chips", ".wb-chip", ".wb-wrong .wb-chiptext", ".wb-map", ".wb-tools"):
            for element in page.locator(name).all():
                assert element.evaluate("e => e.scrollWidth <= e.clientWidth + 1"), (width, name)
        assert page.evaluate("document.querySelector('.wb-tools').getBoundingClientRect().left") > 0
        for name in ("Lasso", "Reset view"):
            box = page.get_by_role("button", name=name, exact=True).bounding_box()
            around = page.locator(".wb-map").bounding_box()
            assert box is not None
            assert around is not None
            assert around["x"] < box["x"] and box["x"] + box["width"] < around["x"] + around["width"]


@pytest.mark.parametrize("empty", ["left", "right"])
def test_the_legend_lies_where_fewer_points_are_under_it(show: Show, empty: str) -> None:
    made = table()
    made.places[:, 0] += 8 if empty == "left" else -8
    made.places[0] = (-8, 9) if empty == "left" else (18, 9)  # one point alone, far from the others
    page = show(made)
    legend, around = page.locator(".wb-legend").bounding_box(), page.locator(".wb-map").bounding_box()
    assert legend is not None
    assert around is not None
    middle = legend["x"] + legend["width"] / 2 - around["x"]
    assert ("left" if middle < around["width"] / 2 else "right") == empty
    left, right, wide = page.evaluate(
        "(({ bounds, width, toScreen }) => [toScreen([bounds[0], 0])[0], toScreen([bounds[2], 0])[0], width])"
        "({ bounds: root.workbench.map.view.bounds, width: root.workbench.map.view.width,"
        "   toScreen: (place) => root.workbench.map.view.toScreen(place) })"
    )
    room = left if empty == "left" else wide - right
    assert room == pytest.approx(min(wide - (right - left) - 8, (wide - (right - left)) / 2 + 115), abs=0.5)
    assert page.evaluate("root.workbench.map.view.write()") == "", "it is the whole map"


def test_the_state_round_trips_and_going_back_shows_it_again(show: Show) -> None:
    made = table()
    page = show(made)
    drag(page, *LEFT)
    page.get_by_label("Colour by", exact=True).select_option("stars")
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function("changes.at(-1)[1]")
    state, count = page.evaluate("changes.at(-1)[0]"), selected(page)
    assert state["color"] == "stars" and state["view"]
    show(made, state=state)
    assert selected(page) == count
    assert page.get_by_label("Colour by", exact=True).input_value() == "stars"
    assert page.evaluate("root.workbench.map.view.write()") == state["view"]
    page.evaluate("made.update({ state: { s: '' } })")
    assert selected(page) == 2_000
    page.get_by_role("button", name="Undo").click()
    assert selected(page) == count, "what the address brought can be undone too"
    page.get_by_role("button", name="Tag", exact=True).click()
    assert page.evaluate("acts") == [["tag", state["s"]]]


def test_the_keyboard_reaches_everything_and_the_focus_is_seen(show: Show) -> None:
    page = show()
    reached: dict[str, bool] = {}
    page.keyboard.press("Tab")
    for _ in range(120):
        name, outline = page.evaluate(FOCUS)
        reached[name] = outline != "none"
        page.keyboard.press("Tab")
    kinds = {name.split("|")[0].split()[0] for name in reached if name.split("|")[0]}
    assert {
        "wb-search",
        "wb-tool",
        "wb-surface",
        "wb-key",
        "wb-link",
        "wb-bar",
        "wb-end",
        "wb-scroll",
        "wb-doc",
        "wb-cell",
    } <= kinds
    assert [name for name, seen in reached.items() if not seen and name.startswith("wb-")] == []
    page.get_by_role("region", name="Charts").get_by_role("button", name="red:").focus()
    page.keyboard.press("Enter")
    assert parts(page)["parts"][0]["values"] == ["red"]
    assert "red" in page.evaluate("document.activeElement.getAttribute('aria-label')"), "the focus stays on the bar"
    page.get_by_label("stars: from").fill("4")
    page.keyboard.press("Tab")
    assert parts(page)["parts"][1] == {"kind": "range", "column": "stars", "low": 4, "high": 5}
    page.locator(".wb-surface").focus()
    before = page.evaluate("root.workbench.map.view.x")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("root.workbench.map.view.x") > before
    page.keyboard.press("Escape")
    assert selected(page) == 2_000


def test_names_never_lie_over_selected_points(show: Show) -> None:
    made = table()
    page = show(made)
    name = page.locator(".wb-names span").filter(has_text="the middle")
    expect(name).to_be_visible()
    before = name.bounding_box()
    drag(page, (4, 4.5), (6, 4.5), (6, 5.5), (4, 5.5))
    page.wait_for_timeout(400)
    box = name.bounding_box()
    assert before is not None and box is not None
    inside = passes(made, parts(page)) & ~np.isnan(made.places[:, 0])
    spots = [at(page, x, y) for x, y in made.places[inside].tolist()]
    assert len(spots) > 20
    if name.is_visible():
        assert not any(
            box["x"] <= x <= box["x"] + box["width"] and box["y"] <= y <= box["y"] + box["height"] for x, y in spots
        )
    corner = page.locator(".wb-names span").filter(has_text="a corner")
    expect(corner).to_be_hidden()
    page.mouse.move(*at(page, 2, 2))
    for _ in range(6):
        page.mouse.wheel(0, -120)
    expect(corner).to_be_visible()


def test_texts_are_never_markup(show: Show) -> None:
    made = table(60, names=(MARKUP, "<img src=x onerror=alert(1)>", "plain"))
    hostile = [
        Column(column.name, MARKUP if column.name == "kind" else column.title, column.kind, column.values, column.names)
        for column in made.columns
    ]
    made = Facets("shop", "map", made.docs, made.places, hostile, made.regions, ())
    page = show(made, texts=[(MARKUP, f"{MARKUP} text")])
    page.locator(".wb-doc").first.click()
    expect(page.get_by_role("dialog", name="Document").get_by_role("heading")).to_have_text(MARKUP)
    page.get_by_role("group", name="Legend").locator(".wb-key").first.click()
    assert page.locator("#root").locator("script, img, b b, a, em").count() == 0
    assert MARKUP in page.locator("#root").inner_text()


def test_arabic_and_hebrew_texts_run_from_right_to_left(show: Show) -> None:
    made = table(60, names=("إلكترونيات", "books", "plain"))
    page = show(made, texts=[("مراجعة الهاتف", "البطارية لا تدوم."), ("Phone", "The battery died.")])
    direction = "element => getComputedStyle(element).direction"
    rows, legend = page.locator(".wb-doc"), page.get_by_role("group", name="Legend").locator(".wb-barname")
    assert [rows.nth(place).evaluate(direction) for place in (0, 1)] == ["rtl", "ltr"]
    assert {name.inner_text(): name.evaluate(direction) for name in legend.all()}["إلكترونيات"] == "rtl"
    rows.first.click()
    drawer = page.get_by_role("dialog", name="Document")
    assert drawer.get_by_role("heading").evaluate(direction) == "rtl"
    assert drawer.locator(".wb-drawertext").evaluate(direction) == "rtl"
    assert page.locator("#root").evaluate(direction) == "ltr"


def test_a_table_without_a_map_has_charts_and_documents(show: Show, tmp_path: Path) -> None:
    made = table(100)
    bare = Facets("shop", None, made.docs, np.full_like(made.places, np.nan), made.columns, [], ())
    page = show(table(50))
    page.goto(write_page(tmp_path, bare))
    expect(page.locator(".wb-doc")).to_have_count(25)
    assert page.locator(".wb-surface").count() == 0
    page.get_by_role("button", name="red:").click()
    assert selected(page) == (made.columns[0].values == 0).sum()


def test_full_screen_keeps_all_tools_and_panes_fold(show: Show) -> None:
    page = show()
    page.get_by_role("button", name="Full screen").click()
    page.wait_for_function("document.fullscreenElement")
    for name in ("Lasso", "Undo", "Tag", "Search"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()
    page.get_by_role("button", name="Full screen").click()
    page.wait_for_function("!document.fullscreenElement")
    page.get_by_role("button", name="Charts", exact=True).click()
    expect(page.get_by_role("region", name="Charts")).to_be_hidden()
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.locator(".wb-documents")).to_be_hidden()

"""The bars of a chart: a tree is shown as one, and no bar with hits is hidden behind empty ones."""

# ruff: noqa: F811  (fixtures that are imported)

from pathlib import Path
from typing import Any

import numpy as np
from benched import in_node
from in_chromium import chromium  # noqa: F401  (fixture)
from playwright.sync_api import Page, expect
from shown_workbench import Show, show  # noqa: F401  (fixture)

from sonde.pipelines.facets import Column, Facets

NAMES = ("cards", "lost", "cash", "stolen", "late", "abroad")
ABOVE = (-1, 0, -1, 0, 2, 1)
OWN = (0, 1, 1, 5, 3, 2, 4, 4, 2)
"""The group of each document: cards has 5 in and under it, lost 3, cash 4, late 2, stolen and abroad 1."""


def facets(*columns: Column) -> Facets:
    count = len(columns[0].values)
    places = np.stack([np.arange(count), np.arange(count) % 7], axis=1).astype(np.float32)
    return Facets("desk", "map", np.arange(count), places, columns, [], ())


def tree() -> Column:
    return Column("taxonomy:t", "Taxonomy: t", "class", np.array(OWN, np.int32), NAMES, above=ABOVE)


def many() -> Facets:
    """Return 30 kinds; kind n has 60 - n documents, all of them with the number n."""
    kinds = np.repeat(np.arange(30), 60 - np.arange(30)).astype(np.int32)
    column = Column("kind", "kind", "class", kinds, tuple(f"kind {n}" for n in range(30)))
    return facets(column, Column("number", "number", "number", kinds.astype(np.float64)))


def bars(page: Page) -> list[str]:
    return page.locator(".wb-bars").first.locator(".wb-barname").all_inner_texts()


def test_a_group_comes_before_those_under_it_and_the_largest_or_earliest_first(tmp_path: Path) -> None:
    program = """
    const table = unpack(await file("table"));
    const order = table.columns.map((column) => treeOrder(column).map((code) => column.names[code - 1]));
    console.log(JSON.stringify(order));
    """
    flat = Column("kind", "kind", "class", np.array([0, 1, 1, 2, 2, 2, 0, 2, 2], np.int32), ("a", "b", "c"))
    months = Column("month", "month", "class", flat.values, ("2026-04", "2025-12-24", "2026-01"))
    some = Column("some", "some", "class", flat.values, ("2026-Q2", "2026-Q1", "other"), cut=True)
    found = in_node(tmp_path, program, table=facets(tree(), flat, months, some).pack())
    assert found == [
        ["cards", "lost", "abroad", "stolen", "cash", "late"], ["c", "a", "b"],
        ["2025-12-24", "2026-01", "2026-04"], ["2026-Q1", "2026-Q2", "other"],
    ]  # fmt: skip


def test_the_chart_of_a_taxonomy_shows_the_tree(show: Show) -> None:
    page = show(facets(tree()))
    assert bars(page) == ["cards", "lost", "abroad", "stolen", "cash", "late"]
    names = page.locator(".wb-bars .wb-barname")
    indents: list[str] = [each.evaluate("(it) => getComputedStyle(it).paddingLeft") for each in names.all()]
    assert indents == ["0px", "12px", "24px", "12px", "0px", "12px"]
    expect(page.get_by_role("button", name="cards > lost > abroad: 1 of 1")).to_be_visible()


def test_the_name_of_a_group_has_more_room_than_its_bar_and_count(show: Show) -> None:
    page = show(many())
    page.set_viewport_size({"width": 1000, "height": 800})
    widths = "(it) => it.clientWidth / it.closest('button').clientWidth"
    assert page.locator(".wb-bars .wb-barname").first.evaluate(widths) > 0.5


def test_bars_with_hits_are_shown_and_keep_their_order(show: Show) -> None:
    page = show(many())
    assert bars(page) == [f"kind {n}" for n in range(10)]
    expect(page.get_by_role("button", name="Show all 30", exact=True)).to_be_visible()
    narrow(page, 18, 29)
    assert bars(page) == [f"kind {n}" for n in range(18, 28)]
    expect(page.get_by_role("button", name="Show all 30 (2 more with hits)")).to_be_visible()
    narrow(page, 27, 28)
    assert bars(page) == [*(f"kind {n}" for n in range(8)), "kind 27", "kind 28"], "the largest fill the chart up"
    page.get_by_role("button", name="Show all 30", exact=True).click()
    assert bars(page) == [f"kind {n}" for n in range(30)]


def test_a_chosen_bar_and_the_groups_above_it_stay(tmp_path: Path) -> None:
    names = (*(f"kind {n}" for n in range(12)), "above", "under")
    own = np.array([*np.repeat(np.arange(12), 5), 13], np.int32)
    column = Column("taxonomy:t", "t", "class", own, names, above=(*([-1] * 12), -1, 12))
    program = """
    const column = unpack(await file("table")).columns[0];
    const shown = fewOf(treeOrder(column), column.totals, new Set([14]), column);
    console.log(JSON.stringify(shown.map((code) => column.names[code - 1])));
    """
    found: Any = in_node(tmp_path, program, table=facets(column).pack())
    assert found == [*(f"kind {n}" for n in range(10)), "above", "under"]


def narrow(page: Page, low: int, high: int) -> None:
    selection = {"mode": "all", "parts": [{"kind": "range", "column": "number", "low": low, "high": high}]}
    page.evaluate("(s) => window.made.update({ state: { s: JSON.stringify(s) } })", selection)

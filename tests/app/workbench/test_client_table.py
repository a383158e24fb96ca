"""The table of the workbench in a real Chromium: sorted by a column; and levels that are shown once."""

# ruff: noqa: F811  (fixtures that are imported)

import json
from dataclasses import replace
from typing import Any

import numpy as np
from benched import passes, table
from in_chromium import activate, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Page
from shown_workbench import Show, show  # noqa: F401  (fixture)


def told(page: Page) -> dict[str, Any]:
    """The selection that the client told its host last."""
    return json.loads(page.evaluate("changes.at(-1)[0].s"))


def test_a_click_on_a_heading_sorts_the_table(show: Show) -> None:
    made = table()
    page = show(made)
    stars, head = made.columns[2].values, page.get_by_role("columnheader", name="stars")
    titles = {row: f"row{row}" for row in range(len(made))}

    def listed() -> list[str]:
        page.wait_for_timeout(100)  # a page of the table is filled a moment later
        keys = page.locator(".wb-doc").evaluate_all("found => found.map((each) => each.dataset.key)")
        return [str(key) for key in keys]

    def best(rows: np.ndarray) -> list[str]:
        return [titles[row] for row in rows[:25].tolist()]

    unsorted = listed()
    known = np.flatnonzero(~np.isnan(stars))
    activate(head.get_by_role("button"))
    assert listed() == best(known[np.argsort(stars[known], kind="stable")])
    assert (head.get_attribute("aria-sort"), page.evaluate("changes.at(-1)[0].sort")) == ("ascending", "stars")
    activate(head.get_by_role("button"))
    assert listed() == best(known[np.argsort(-stars[known], kind="stable")])
    assert (head.get_attribute("aria-sort"), page.evaluate("changes.at(-1)[0].sort")) == ("descending", "-stars")
    page.get_by_role("button", name="kind 3:").first.click()
    inside = np.flatnonzero(passes(made, told(page)) & ~np.isnan(stars))
    assert listed() == best(inside[np.argsort(-stars[inside], kind="stable")])
    activate(page.get_by_role("button", name="Clear", exact=True))
    activate(head.get_by_role("button"))
    assert listed() == unsorted
    assert (head.get_attribute("aria-sort"), page.evaluate("changes.at(-1)[0].sort")) == (None, "")


def test_names_are_sorted_as_in_a_dictionary_and_none_comes_last(show: Show) -> None:
    made = table()
    kinds = page_rows(show(made, state={"sort": "-kind"}), "kind")
    assert kinds == ["kind 29"] * 25
    few = table(60)
    page = show(few, state={"sort": "cluster:k"})
    for _ in range(2):
        activate(page.get_by_role("button", name="Next page of documents"))
    none = int((few.columns[0].values == -1).sum())
    assert none > 0 and page_rows(page, "Clusters: k")[-none:] == ["none"] * min(none, 10)


def page_rows(page: Page, title: str) -> list[str]:
    """What a column shows on the page of the table in sight."""
    page.wait_for_timeout(100)
    at = [head.strip() for head in page.locator("thead th").all_inner_texts()].index(title)
    return [each.strip() for each in page.locator(f"tbody tr > :nth-child({at + 1})").all_inner_texts()]


def test_a_level_with_the_groups_of_its_run_is_shown_once(show: Show) -> None:
    made = table()
    group = made.columns[0]
    level = replace(group, name="coarse:t", title="Coarse topics: t", part=True, same="topic:t")
    twins = [level, replace(group, name="topic:t", title="Topics: t"), *made.columns[1:]]
    picked = {"mode": "all", "parts": [{"kind": "values", "column": "coarse:t", "values": ["red"]}]}
    page = show(replace(made, columns=twins), state={"s": json.dumps(picked), "color": "coarse:t"})
    assert int(page.locator(".wb").get_attribute("data-selected") or -1) == int((group.values == 0).sum())
    assert page.locator(".wb-charttitle").all_inner_texts() == ["Topics: t", "kind", "stars", "price", "day"]
    assert page.get_by_label("Colour by").first.input_value() == "topic:t"
    assert page.locator(".wb-chart").first.locator("[aria-pressed=true]").count() == 1

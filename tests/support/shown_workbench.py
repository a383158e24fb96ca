"""The workbench in a window of a real Chromium, on a page without a server."""

# ruff: noqa: F811  (fixtures that are imported)

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benched import table, write_page
from in_chromium import PATIENCE, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Browser, Page

from sonde.pipelines.facets import Facets

Show = Callable[..., Page]


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Show]:
    """Show a table in a window of its own; whatever fails in the page, or leaves the machine, fails the test."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE)
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("dialog", lambda dialog: failed.append(dialog.message))
    page.on("request", lambda request: failed.append(request.url) if not request.url.startswith("file:") else None)

    def open_page(made: Facets | None = None, **given: Any) -> Page:
        made = made or table()
        page.goto(write_page(tmp_path, made, **given))
        page.locator(f"[data-drawn='{int((~np.isnan(made.places[:, 0])).sum())}']").wait_for()
        return page

    try:
        yield open_page
        assert failed == []
    finally:
        page.close()


def selected(page: Page) -> int:
    return int(page.locator(".wb").get_attribute("data-selected") or -1)


def parts(page: Page) -> dict[str, Any]:
    """The selection that the client told its host last."""
    state, _ = page.evaluate("changes.filter(([, replace]) => !replace).at(-1)")
    return json.loads(state["s"]) if state["s"] else {"mode": "all", "parts": []}

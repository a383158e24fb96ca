"""Pages of the web UI inside the test's process: each call opens an address as a new browser would.

A test takes the fixture `pages`, a folder of collections with a bi-encoder that needs no weights:

    def test_it(pages: Pages) -> None:
        pages.collection("reviews")  # ROWS, or rows of your own
        page = pages.open("search", q="battery")
        assert "The battery died after a week." in shown(page)
        page.button(key="more").click().run()
"""

import html
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from command_line import inject
from fake_encoder import FakeEncoder
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from sonde.app.api import Collection, index
from sonde.app.ui.launch import VARIABLE

SCRIPT = Path(__file__).resolve().parents[2] / "app" / "ui" / "script.py"
SECONDS = 30
component_manifests = cache(manifest_scanner.scan_component_manifests)
"""A server reads the metadata of every installed library once; AppTest would for every page: half of its time."""
ROWS: list[dict[str, Any]] = [
    {"id": "1", "title": "Phone", "text": "The battery died after a week.", "stars": 1, "kind": "phone", "ok": False},
    {"id": "2", "title": "Phone", "text": "Great phone, lasts for days.", "stars": 5, "kind": "phone", "ok": True},
    {"id": "3", "title": "Tablet", "text": "The screen broke. I was sad.", "stars": 2, "kind": "tablet", "ok": False},
]
MARKUP = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $x^2$ :red[y] <b>b</b> & `code`"
"""Text that some reader takes for markup; `unread` checks that none did."""


class Pages:
    """A shelf of collections, and the pages over it."""

    def __init__(self, shelf: Path, encoder: FakeEncoder) -> None:
        self.shelf = shelf
        self.encoder = encoder

    def collection(self, name: str = "reviews", rows: Sequence[dict[str, Any]] | None = None) -> Collection:
        """Make a collection on the shelf."""
        path = self.shelf / f"{name}.sonde"
        return index(list(rows or ROWS), path, id="id", encoder=self.encoder)  # type: ignore[arg-type]

    def open(self, page: str, /, **address: str | list[str]) -> AppTest:
        """Open `/page?name=value…` in a new session and run it; fails on any exception."""
        test = AppTest.from_file(SCRIPT, default_timeout=SECONDS)
        test._page_hash = calc_hash(page)  # AppTest.switch_page knows pages that are files only
        for name, value in address.items():
            test.query_params[name] = value
        test.run()
        assert not test.exception, test.exception
        return test

    def again(self, page: str, test: AppTest) -> AppTest:
        """Open the address that a session shows in a new one: nothing but the address comes along.

        What is bound to a widget is not in it: a browser puts that there, and no browser runs here.
        """
        return self.open(page, **dict(test.query_params.items()))


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """An empty shelf whose server uses the FakeEncoder."""
    encoder = FakeEncoder()
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    inject(monkeypatch, encoder)
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", component_manifests)
    monkeypatch.setattr("sonde.app.ui.workspace.load_encoder_for", lambda spec, **_: encoder)
    monkeypatch.setenv(VARIABLE, json.dumps({"shelf": str(shelf), "device": "cpu"}))
    st.cache_resource.clear()  # both caches belong to the process
    st.cache_data.clear()
    return Pages(shelf, encoder)


def shown(page: AppTest) -> str:
    """Return everything that the page says, a line each: texts, HTML without its tags, messages, titles, captions."""
    parts: list[str] = [text_of(each) for each in page.html]
    for kind in ("title", "header", "subheader", "text", "markdown", "caption", "info", "warning", "error", "success"):
        parts += [str(each.value) for each in getattr(page, kind)]
    for metric in page.metric:
        parts.append(f"{metric.label} {metric.value}")
    return "\n".join(parts)


def text_of(element: Any) -> str:
    """Return what a browser shows of an st.html element."""
    return html.unescape(re.sub(r"<(style|script)\b[^>]*>.*?</\1>|<[^>]*>", "", element.value, flags=re.DOTALL))


def unread(page: AppTest, text: str = MARKUP) -> None:
    """Check that the text stands nowhere as it is where Markdown or HTML is read."""
    dangerous = ("<script>", "<b>", "**bold**", "[x](javascript", "$x^2$", ":red[y]", "`code`")
    pieces = [piece for piece in dangerous if piece in text]
    markdown = ("markdown", "caption", "info", "warning", "error", "success", "title", "header", "subheader")
    read = [str(each.value) for kind in markdown for each in getattr(page, kind)]
    for kind in (
        "button",
        "checkbox",
        "toggle",
        "radio",
        "text_input",
        "selectbox",
        "multiselect",
        "slider",
        "expander",
    ):
        read += [str(each.label) for each in getattr(page, kind)]
    read += [str(tab.label) for tab in page.tabs] + [str(metric.label) for metric in page.metric]
    assert [line for line in read if any(piece in line for piece in pieces)] == []
    assert [each.value for each in page.html if "<script>" in each.value or "<b>b</b>" in each.value] == []

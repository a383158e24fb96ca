"""The notebook widget: its traits and answers without a browser, and the client in a real Chromium."""

# ruff: noqa: F811  (fixtures that are imported)

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from in_chromium import chromium  # noqa: F401  (fixture)
from linked import linked
from playwright.sync_api import Browser, expect

from sonde.app.api import Collection
from sonde.app.api.workbench import Desk
from sonde.app.workbench import notebook, style
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError

FEW = {"mode": "all", "parts": [{"kind": "range", "column": "stars", "low": 5, "high": 5}]}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return linked(tmp_path_factory.mktemp("widget") / "shop.sonde")


def test_the_kernel_answers_with_rows_hits_and_parts(shop: Collection) -> None:
    desk = Desk(shop, "first")
    (first, last) = desk.answer({"id": 1, "what": "rows", "rows": [59, 0, 60, -1]})["found"]
    assert (first["row"], first["id"], first["title"]) == (0, "d0", "Ticket 0")
    assert (last["row"], last["id"], last["text"]) == (59, "d59", "refund slow number 59")
    found = desk.answer({"id": 2, "what": "search", "query": "battery dead number 1", "k": 3})["found"]
    hits = shop.search("battery dead number 1", k=3, collapse=False)
    assert [f"d{row}" for row in found["rows"]] == [hit.id for hit in hits]
    assert found["scores"] == pytest.approx([hit.relevance for hit in hits], abs=1e-5)
    part = {"kind": "documents", "ids": ["d7", "d3", "nobody"], "not": True}
    assert desk.answer({"id": 3, "what": "part", "part": part}) == {"id": 3, "found": {"rows": [3, 7]}}


def test_what_the_kernel_cannot_answer_is_one_line(shop: Collection) -> None:
    desk = Desk(shop, None)
    assert desk.answer({"id": 1, "what": "search", "query": " ", "k": 3}) == {
        "id": 1, "error": "the query is empty: say what to look for",
    }  # fmt: skip
    for asked in (
        {"id": 1},
        {"id": 1, "what": "rows"},
        {"id": 1, "what": "rows", "rows": ["x"]},
        {"id": 1, "what": "z"},
    ):
        assert desk.answer(asked) == {"id": 1, "error": "this version of Sonde does not know the request"}
    assert (
        "there is no map run"
        in desk.answer(
            {"id": 1, "what": "part", "part": {"kind": "area", "map": "x", "outlines": [[[0, 0], [1, 1], [2, 0]]]}}
        )["error"]
    )


def test_a_selection_is_a_frame(shop: Collection) -> None:
    pytest.importorskip("pandas")
    frame = Desk(shop, None).selected(json.dumps(FEW))
    assert frame["id"].tolist() == [each.id for each in shop.numbered(shop.select(FEW).tolist())]
    assert set(frame["stars"]) == {5}
    assert "cluster:four name" in frame.columns
    assert len(Desk(shop, None).selected("")) == 60


def test_without_anywidget_one_line_says_what_to_install(shop: Collection) -> None:
    if find_spec("anywidget") is None:
        with pytest.raises(MissingExtraError, match=r"needs anywidget, .* pip install 'sonde\[notebook\]'"):
            shop.widget()


def test_traits_bring_the_selection_to_python(shop: Collection) -> None:
    pytest.importorskip("anywidget")
    pytest.importorskip("pandas")
    widget = shop.widget(map="first", selection=FEW)
    assert widget.table == shop.table("first").pack()
    assert (widget.selection, widget.selected["id"].tolist()[:1]) == (FEW, ["d4"])
    widget.state = {**widget.state, "s": ""}
    assert len(widget.selected) == 60
    sent: list[Any] = []
    widget.send = sent.append
    widget._handle_custom_msg({"id": "a/1", "what": "rows", "rows": [2]}, [])
    assert [each["id"] for each in sent[0]["found"]] == ["d2"]
    shop.tag("later", where="stars = 1")
    widget.refresh()
    assert widget.table == shop.table("first").pack()
    with pytest.raises(UsageError, match="height is 10: give 300 or more pixels"):
        shop.widget(height=10)
    with pytest.raises(SondeError, match="there is no column 'star'"):
        shop.widget(selection={"parts": [{**FEW["parts"][0], "column": "star"}]})


MODEL = """
const listeners = {};
const bytes = Uint8Array.from(atob(TABLE), (c) => c.charCodeAt(0));
const values = { table: new DataView(bytes.buffer), state: STATE, height: 600 };
const answer = (found) => (listeners["msg:custom"] ?? []).forEach((f) => f(JSON.parse(found)));
window.model = {
  get: (name) => values[name],
  set: (name, value) => { values[name] = value; },
  save_changes: () => window.kept(JSON.stringify(values.state)),
  send: (asked) => window.asked(JSON.stringify(asked)).then(answer),
  on: (name, f) => (listeners[name] ??= []).push(f),
  off: (name, f) => { listeners[name] = listeners[name].filter((each) => each !== f); },
  restore: (state) => { values.state = state; listeners["change:state"].forEach((f) => f()); },
};
"""
"""What anywidget gives a module, over functions that this test answers."""


def test_the_client_speaks_with_the_kernel(chromium: Browser, shop: Collection, tmp_path: Path) -> None:
    import base64

    desk, kept = Desk(shop, "first"), []
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.expose_function("asked", lambda text: json.dumps(desk.answer(json.loads(text))))
    page.expose_function("kept", lambda text: kept.append(json.loads(text)))
    state = {"s": json.dumps(FEW), "color": "", "names": "", "view": ""}
    table = json.dumps(base64.b64encode(desk.table.pack()).decode())
    model = MODEL.replace("TABLE", table).replace("STATE", json.dumps(state))
    ending = "window.close = render({ model: window.model, el: document.body });"
    page.set_content(
        f"<!doctype html><style>{style()}</style><body></body>"
        f"<script>{model}</script><script type=module>{notebook()}\n{ending}</script>"
    )
    shown = page.locator(".wb")
    expect(shown).to_have_attribute("data-selected", str(len(shop.select(FEW))))
    page.evaluate("window.model.restore({ s: '', color: '', names: '', view: '' })")
    expect(shown).to_have_attribute("data-selected", "60")
    page.get_by_role("searchbox").fill("battery dead")
    page.get_by_role("searchbox").press("Enter")
    expect(shown).to_have_attribute("data-waiting", "0")
    expect(page.locator(".wb-doc").first).to_contain_text("battery dead")
    chosen = json.loads(kept[-1]["s"])
    assert chosen["parts"][0]["query"] == "battery dead"
    expect(shown).to_have_attribute("data-selected", str(len(shop.select(chosen))))
    page.evaluate("window.close()")
    expect(shown).to_have_count(0)
    assert failed == []
    page.close()

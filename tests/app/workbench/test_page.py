"""The page that is one file: what is in it, and in a real Chromium without a network, opened as a file."""

# ruff: noqa: F811  (fixtures that are imported)

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from in_chromium import activate, chromium  # noqa: F401  (fixture)
from linked import linked
from playwright.sync_api import Browser, expect
from small_reviews import encoder, reviews, sonde  # noqa: F401  (fixtures)

from sonde.app.api import Collection, index
from sonde.app.api import workbench as api_workbench
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.facets.table import unpack_arrays

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return linked(tmp_path_factory.mktemp("page") / "shop.sonde")


def data_of(page: str) -> tuple[bytes, list[Any]]:
    """Return the table and the documents of a page."""
    found = re.findall(r'<script type="application/octet-stream" (.*?)>(.*?)</script>', page)
    contents = [zlib.decompress(base64.b64decode(content)) for _, content in found]
    blocks = [json.loads(content) for content in contents[1:]]
    firsts = [sum(map(len, blocks[:place])) for place in range(len(blocks))]
    assert [name for name, _ in found] == ['id="table"', *(f'data-first="{first}"' for first in firsts)]
    return contents[0], [document for block in blocks for document in block]


def test_a_page_holds_the_table_and_every_document(shop: Collection, tmp_path: Path) -> None:
    assert shop.write_page(tmp_path / "shop.html", title="Shop <b>") == 60
    page = (tmp_path / "shop.html").read_text("utf-8")
    table, documents = data_of(page)
    assert table == shop.table().pack()
    stored = {each.id: each for each in shop.numbered(shop.table().docs.tolist())}
    assert [(id, title, text) for id, title, text, _ in documents] == [
        (each.id, each.title, each.text) for each in stored.values()
    ]
    assert page.count("<script") == page.count("</script>") == 3
    assert "<title>Shop &lt;b&gt;</title>" in page
    assert "default-src 'none'; script-src 'sha256-" in page
    assert "unsafe" not in page.split("<title>")[0]


def test_a_page_of_a_selection(shop: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"parts": [{"kind": "range", "column": "stars", "low": 5, "high": 5}]}
    monkeypatch.setattr("sonde.pipelines.facets.table.BLOCK", 100)  # several blocks
    count = shop.write_page(tmp_path / "few.html", selection=few, map="first", length=6)
    table, documents = data_of((tmp_path / "few.html").read_text("utf-8"))
    expected = shop.numbered(shop.select(few).tolist())
    assert [id for id, *_ in documents] == [each.id for each in expected]
    assert {len(text) for _, _, text, _ in documents} == {6}
    header, arrays = unpack_arrays(table)
    assert (header["rows"], header["map"], count) == (len(expected), "first", len(expected))
    places = shop.table("first").places[shop.table().rows(shop.select(few))]
    assert arrays["x"][1:].tolist() == places[1:, 0].tolist()


def test_what_a_page_cannot_hold_is_said(shop: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = {"parts": [{"kind": "documents", "ids": []}]}
    for options, path, message in (
        ({}, "a.txt", "cannot write 'a.txt': the name must end in .html"),
        ({"map": "third"}, "a.html", "there is no map run 'third'"),
        ({"length": 0}, "a.html", "length is 0: give a whole number from 1"),
        ({"selection": nobody}, "a.html", "the selection holds no documents"),
        ({"selection": "x"}, "a.html", "the selection is not valid JSON"),
    ):
        with pytest.raises(SondeError, match=message):
            shop.write_page(tmp_path / path, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(api_workbench, "MOST", 59)
    with pytest.raises(UsageError, match="a page holds at most 59 documents, and these are 60: choose some with"):
        shop.write_page(tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_a_page(sonde: Command, reviews: Path, tmp_path: Path) -> None:
    ran = sonde("export", reviews, "--page", tmp_path / "r.html", "--where", "stars <= 2")
    assert (ran.code, ran.err.splitlines()[-1]) == (0, f"2 documents written to {tmp_path / 'r.html'}")
    _, documents = data_of((tmp_path / "r.html").read_text("utf-8"))
    assert [id for id, *_ in documents] == ["1", "3"]
    ran = sonde("export", reviews, "--page", tmp_path / "r.html", "--to", "a.csv")
    assert (ran.code, ran.err) == (2, "sonde: --page writes a page: leave out --to, --vectors and --raw-formulas\n")


def test_the_page_works_as_a_file_without_a_network(chromium: Browser, tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    words = ("Batterie leer", "Paket zu spät", "écran cassé")
    rows = [{"id": f"t{n}", "title": f"Ticket {n}", "text": f"{words[n % 3]} {n}", "stars": n % 5} for n in range(300)]
    rows.append({"id": "bad", "title": HOSTILE, "text": f"spaet {HOSTILE}", "stars": 1})
    made = index(rows, tmp_path / "t.sonde", id="id", title="title", text="text", encoder=encoder)
    made.write_page(tmp_path / "t.html", title=HOSTILE)
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 800})
    asked: list[str] = []
    failed: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto((tmp_path / "t.html").as_uri())
    shown = page.locator(".wb")
    expect(shown).to_have_attribute("data-selected", "301")

    def search(words: str, count: int) -> None:
        page.get_by_role("searchbox").fill(words)
        page.get_by_role("searchbox").press("Enter")
        expect(shown).to_have_attribute("data-selected", str(count))
        expect(shown).to_have_attribute("data-waiting", "0")

    search("ECRAN", 100)  # neither case nor accents matter
    expect(page.locator(".wb-doc").first).to_contain_text("écran cassé 2")
    search("batter", 100)  # no document has the word: those that begin so
    search("spat", 100)
    search("zzz", 0)
    search("spaet", 1)
    expect(page.locator(".wb-doc")).to_contain_text([HOSTILE])
    activate(page.locator(".wb-doc").first)
    expect(page.get_by_role("dialog", name="Document")).to_contain_text("document.title='taken'")
    assert page.title() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.evaluate("() => fetch('http://127.0.0.1:9/').catch(() => 'refused')") == "refused"
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(shown).to_have_attribute("data-selected", "1")
    assert [url for url in asked if not url.startswith(("file:", "about:"))] == []
    assert failed == []
    context.close()

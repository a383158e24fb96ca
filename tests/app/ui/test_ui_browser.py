"""The web UI in a real Chromium: what a person does, from a file to labelled and exported texts.

No request may leave this machine, no page may show a traceback, and every address must bring back what it showed.
"""

# ruff: noqa: F811  (fixtures that are imported)

import csv
import json
import re
import time
from pathlib import Path

import pytest
from in_chromium import activate, chromium  # noqa: F401  (fixture)
from playwright.sync_api import Page, expect
from product_reviews import index, reviews
from served_ui import Server, Visit, server, visit  # noqa: F401  (fixtures)


def make_reviews(visit: Visit, tmp_path: Path) -> None:
    page = visit.go("/data")
    expect(page.get_by_text("Sonde finds texts by meaning.")).to_be_visible()
    page.locator("input[type=file]").set_input_files(reviews(tmp_path / "reviews.csv"))
    expect(page.get_by_text("600 rows", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("about 600 documents in 600 passages"))).to_be_visible()
    visit.press("Index 600 rows")


@pytest.mark.long
def test_from_a_file_to_hits_and_back_by_the_address(visit: Visit, tmp_path: Path) -> None:
    make_reviews(visit, tmp_path)
    page = visit.page
    expect(page.get_by_text("596 documents added.")).to_be_visible()
    expect(page.get_by_text("4 rows skipped", exact=True)).to_be_visible()
    visit.check()
    visit.go_by_menu("Search")
    visit.fill("Query", "battery died")
    first = page.locator(".sonde-text").filter(has_text="the battery died after a week").first
    expect(first).to_be_visible()
    assert first.get_attribute("dir") == "auto", "texts in Arabic and Hebrew run from right to left"
    expect(page.locator("mark.sonde").filter(has_text="battery").first).to_be_visible()
    activate(page.get_by_test_id("stExpander").filter(has_text="Filters").locator("summary"))
    visit.fill("Condition", "product = 'fan'")
    expect(page.get_by_text("product = 'fan'").first).to_be_visible()
    expect(page.locator(".sonde-text").filter(has_text="fan:").first).to_be_visible()
    expect(page.locator(".sonde-text").filter(has_text="phone:")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"q=battery(\+|%20)died"))
    visit.settle()
    address, hits = page.url, page.locator(".sonde-text").all_inner_texts()
    visit.check()
    page.goto("about:blank")
    page.goto(address)
    visit.settle()
    expect(page.locator(".sonde-text")).to_have_text(hits, use_inner_text=True)
    page.goto(address.replace("/search?", "/?"))  # of the first page, which leads to Search
    visit.settle()
    expect(page.locator(".sonde-text")).to_have_text(hits, use_inner_text=True)


def test_back_returns_to_the_query_before(visit: Visit, server: Server, tmp_path: Path) -> None:
    index(server, tmp_path)
    page = visit.go("/search")
    box = page.get_by_label("Query").first
    for query in ("battery died", "parcel late"):
        visit.fill("Query", query)
        expect(page).to_have_url(re.compile(query.replace(" ", r"(\+|%20)")))
        visit.settle()
    hits = page.locator(".sonde-text").all_inner_texts()
    page.go_back()
    expect(box).to_have_value("battery died")
    expect(page.locator("mark.sonde").filter(has_text="battery").first).to_be_visible()
    visit.settle()
    page.go_back()
    expect(box).to_have_value("")
    expect(page.locator(".sonde-text")).to_have_count(0)
    visit.settle()
    page.go_forward()
    expect(box).to_have_value("battery died")
    visit.settle()
    page.go_forward()
    expect(page.locator(".sonde-text")).to_have_text(hits, use_inner_text=True)
    visit.check()


@pytest.mark.long
def test_a_job_goes_on_without_its_page_and_without_the_server(visit: Visit, server: Server, tmp_path: Path) -> None:
    server.hold.touch()
    make_reviews(visit, tmp_path)
    page = visit.page
    card = page.get_by_test_id("stMarkdown").get_by_text("Create reviews", exact=True)
    expect(card).to_be_visible()  # the table of collections says it too
    committed = page.get_by_text(re.compile(r"embedding: [1-9]\d* of"))
    expect(committed).to_be_visible()
    page.reload()
    expect(committed).to_be_visible()
    visit.check()
    page.goto("about:blank")
    server.stop()
    server.start()
    visit.go("/data")
    visit.press("Cancel")
    expect(page.get_by_text("Cancelled. What was committed is kept.")).to_be_visible()
    server.hold.unlink()
    visit.press("Resume")
    said = page.get_by_text(re.compile(r"\d+ documents added, \d+ documents unchanged\."))
    expect(said).to_be_visible()
    added, unchanged = map(int, re.findall(r"(\d+) documents", said.inner_text()))
    assert added + unchanged == 596 and 1 <= unchanged <= 256
    assert list((server.shelf / ".sonde-jobs" / "uploads").iterdir()) == []


@pytest.mark.long
def test_the_server_says_when_it_answers_and_whether_jobs_go_on(server: Server) -> None:
    server.stop()
    address = f"the collections in {server.shelf} are at {server.url}, stop with Ctrl-C"
    assert server.log.read_text().splitlines() == [address, "sonde: stopped"]
    job = server.shelf / ".sonde-jobs" / "1"
    job.mkdir(parents=True)
    kept = {"title": "Index", "collection": "c", "command": ["index"], "pid": 0, "started": time.time() + 60}
    (job / "job.json").write_text(json.dumps(kept))
    server.start()
    server.stop()
    assert server.log.read_text().splitlines()[2:] == [address, "sonde: stopped; running jobs continue"]


def lasso(page: Page) -> None:
    """Draw around the left half of the map and a little more."""
    activate(page.get_by_role("button", name="Lasso"))
    box = page.locator(".wb-surface").bounding_box()
    assert box is not None
    corners = [(0.02, 0.02), (0.6, 0.02), (0.6, 0.5), (0.6, 0.98), (0.02, 0.98), (0.02, 0.5), (0.02, 0.03)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()


@pytest.mark.long
def test_the_loop_on_the_page_explore(visit: Visit, server: Server, tmp_path: Path) -> None:
    """Select points, cluster just them, label them, export them, and find all of it again by the address."""
    index(server, tmp_path)
    visit.go("/explore?collection=reviews")
    page = visit.page
    expect(page.get_by_text("No map yet")).to_be_visible()
    assert page.url.endswith("/map?collection=reviews"), "the address of the page, which may be kept"
    visit.press("Make the map")
    expect(page.locator("[data-drawn='596']")).to_be_visible()
    visit.settle()
    lasso(page)
    selected = page.locator(".wb-selected")
    expect(selected).to_have_text(re.compile(r"^\d+ of 596 documents$"))
    count = int(selected.inner_text().split()[0])
    assert 50 < count < 590
    expect(page).to_have_url(re.compile("s=%7B"))
    visit.check()
    visit.press("Cluster")
    expect(page.get_by_role("dialog").get_by_text(f"{count} of 596 documents")).to_be_visible()
    visit.press("Cluster these documents")
    expect(page.get_by_text("Clusters of a selection: done")).to_be_visible()
    visit.settle()
    expect(selected).to_have_text(f"{count} of 596 documents")
    expect(page.get_by_role("region", name="Clusters: selection").locator(".wb-bars")).to_be_visible()
    visit.press(re.compile("^Label$"))
    page.get_by_label("Labels, one per line").fill("kettle\nphone\nfan")
    page.get_by_label("Labels, one per line").press("Control+Enter")
    expect(page.get_by_role("button", name="Label these documents")).to_be_enabled()
    visit.press("Label these documents")
    expect(page.get_by_text("Labels of a selection: done")).to_be_visible()
    visit.settle()
    visit.press("Export")
    export = page.get_by_role("button", name=f"Download {count} documents")
    expect(export).to_be_visible()
    with page.expect_download() as download:
        activate(export)
    assert download.value.path().read_bytes().startswith(b"\xef\xbb\xbf"), "Excel reads it as UTF-8"
    with download.value.path().open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == count
    assert {row["label:selection"] for row in rows} <= {"kettle", "phone", "fan"}
    assert len({row["cluster:selection"] for row in rows} - {""}) > 1
    visit.check()
    visit.settle()
    page.get_by_role("dialog").press("Escape")
    expect(page).not_to_have_url(re.compile("do="))
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(selected).to_have_text(f"{count} of 596 documents")
    for title in ("Clusters and topics", "Labels", "Explain", "Evaluate", "Data", "Search"):
        visit.go_by_menu(title)
        visit.check()


def test_linked_views_and_the_drawer_keep_the_page_as_it_is(visit: Visit, server: Server, tmp_path: Path) -> None:
    """Charts, search, back and forward and the drawer; the page is drawn once, and the table read once."""
    index(server, tmp_path)
    page = visit.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.split("/")[-1].split("?")[0]))
    visit.go("/map?collection=reviews")
    selected = page.locator(".wb-selected")
    expect(selected).to_have_text("596 documents")
    activate(page.get_by_role("button", name="kettle: 196 of 196", exact=True))
    expect(selected).to_have_text("196 of 596 documents")
    page.get_by_label("stars: from").fill("4")
    page.get_by_label("stars: from").press("Enter")
    expect(selected).to_have_text(re.compile(r"^\d+ of 596 documents$"))
    narrowed = selected.inner_text()
    assert narrowed != "196 of 596 documents"
    page.go_back()
    expect(selected).to_have_text("196 of 596 documents")
    page.go_forward()
    expect(selected).to_have_text(narrowed)
    box = page.get_by_role("searchbox", name="Search these documents")
    box.fill("the water boils slowly")
    box.press("Enter")
    expect(page.locator(".wb-chip")).to_have_count(3)
    expect(page.locator(".wb")).to_have_attribute("data-waiting", "0")
    row = page.locator(".wb-doc").first
    expect(row).to_contain_text("kettle:")
    text = row.inner_text().strip()
    activate(row)
    drawer = page.get_by_role("dialog")
    expect(drawer).to_be_visible()
    expect(drawer).to_contain_text(text)
    expect(page).to_have_url(re.compile("doc="))
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.locator(".wb-chip")).to_have_count(3)
    assert asked.count("table") == 1, "nothing that was done here reads the table again"
    visit.check()

"""Seconds until a page of the web UI stands still, in Chromium, each page visited several times after its first load.

    python benchmarks/ui_pages.py                                 100,000 arXiv sentences, static model, clusters, a map
    python benchmarks/ui_pages.py --documents 1000000              the same texts twice, words exchanged
    python benchmarks/ui_pages.py --collection C.sonde --queries "graph colouring" "robots that walk"

The clock runs from the click to the first of four looks, 40 ms apart, at which nothing runs and the page no longer
changes. Without a graphics card Chromium draws the map's points by software, which is part of the map's time.
"""

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow.parquet as pq
from _side_by_side import DATA, machine
from ten_million import make

import sonde

PAGES = ("Search", "Explore", "Clusters and topics", "Labels", "Explain", "Evaluate", "Data")
LOOK = """() => [
    !document.querySelector('[data-testid=stStatusWidget], [data-testid=stSpinner], [data-stale=true]'),
    document.querySelector('[data-testid=stMain]').innerHTML.length,
    document.querySelectorAll('canvas').length,
]"""
FIRST_CHANGE = """() => {
    window.changed = null
    window.addEventListener('pointerdown', () => { window.clicked = performance.now() }, { capture: true, once: true })
    const seen = new MutationObserver(() => { window.changed = performance.now(); seen.disconnect() })
    const all = { childList: true, characterData: true, subtree: true }
    seen.observe(document.querySelector('[data-testid=stMain]'), all)
}"""
CHROMIUM = "/usr/bin/chromium"


def main() -> None:
    """Start the UI beside the collection, walk, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--queries", nargs="+", default=["graph colouring", "robots that walk", "medical images"])
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    print(machine("sonde", "streamlit", "playwright"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sonde_command = Path(sys.executable).with_name("sonde")
    command = [sonde_command, "ui", given.collection or sentences(given.documents), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM if Path(CHROMIUM).exists() else None, args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            walk(page, f"http://127.0.0.1:{port}", given.turns, given.queries)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def walk(page: Any, address: str, turns: int, queries: list[str]) -> None:
    """Visit every page in turns, then ask new queries, and print the medians."""
    opened(page, address)
    times: dict[str, list[float]] = defaultdict(list)
    for turn in range(turns + 1):
        for name in PAGES:
            began = monotonic()
            page.get_by_test_id("stSidebarNav").get_by_text(name, exact=True).click()
            page.get_by_role("heading", name=name).first.wait_for()
            if name == "Explore":  # the page is idle for a moment before the chart is drawn
                page.locator("[data-drawn]").wait_for()
            if turn:
                times[name].append(settled(page) - began)
            else:
                page.wait_for_timeout(6_000)  # the first load
    page.get_by_test_id("stSidebarNav").get_by_text("Search", exact=True).click()
    for query in ("a first query", *queries):
        page.wait_for_timeout(2_000)
        before = page.locator(".sonde-excerpt").first.inner_text() if page.locator(".sonde-excerpt").count() else ""
        box = page.get_by_label("Query").first
        box.fill(query)
        began = monotonic()
        box.press("Enter")
        changed = "old => { const e = document.querySelector('.sonde-excerpt'); return e && e.innerText !== old }"
        page.wait_for_function(changed, arg=before, polling=20)
        if query in queries:
            times["a new query's hits"].append(monotonic() - began)
    actions(page, turns, times)
    workbench(page, turns, queries, times)
    for name, taken in times.items():
        print(f"{name}: {statistics.median(taken):.2f} s ({min(taken):.2f} to {max(taken):.2f})")


def actions(page: Any, turns: int, times: dict[str, list[float]]) -> None:
    """Choose and unchoose the first value of a facet, and leaf through the hits: the first change, and the last one."""
    facet = page.locator('[class*="st-key-facet"] button').first
    for turn in range(2 * turns):
        for name, button in (("a facet", facet), ("the next page", page.get_by_role("button", name="Next"))):
            if turn < 2 or not button.is_enabled():
                page.wait_for_timeout(1_000)
            page.evaluate(FIRST_CHANGE)
            began = monotonic()
            button.click()
            page.wait_for_function("window.changed !== null", polling=10)
            times[f"{name}: first change"].append(page.evaluate("window.changed - window.clicked") / 1_000)
            times[f"{name}: all"].append(settled(page) - began)
            page.wait_for_timeout(500)


def workbench(page: Any, turns: int, queries: list[str], times: dict[str, list[float]]) -> None:
    """Light up queries, click a bar and draw a lasso, until the counts and the texts of the first rows are there."""
    page.get_by_test_id("stSidebarNav").get_by_text("Explore", exact=True).click()
    page.locator("[data-drawn]").wait_for()
    settled(page)
    search, bar = page.get_by_role("searchbox"), page.locator(".wb-bars .wb-bar").first
    for turn in range(turns):
        search.fill(queries[turn % len(queries)])
        times["Explore: light up a query"].append(changed(page, lambda: search.press("Enter")))
        search.fill("")
        changed(page, lambda: search.press("Enter"))
        times["Explore: a bar"].append(changed(page, bar.click))
        changed(page, lambda: page.keyboard.press("Control+z"))
        draw(page)
        times["Explore: a lasso"].append(changed(page, page.mouse.up))
        changed(page, lambda: page.keyboard.press("Control+z"))


def changed(page: Any, act: Callable[[], object]) -> float:
    """Return the seconds from an action until another number is selected and the table shows texts of these documents.

    While hits are on their way, none is selected; while texts are, their cells hold an ellipsis.
    """
    count, first = page.locator(".wb-count"), page.locator(".wb-table tbody tr").first
    before, began = count.inner_text(), monotonic()
    act()
    while (now := count.inner_text()) == before or not now.startswith("1 to") or "…" in first.inner_text().split():
        page.wait_for_timeout(10)
    return monotonic() - began


def draw(page: Any) -> None:
    """Draw around the middle of the map; the button of the mouse stays down."""
    box = page.locator(".wb-surface").bounding_box()
    places = [(0.35, 0.35), (0.65, 0.35), (0.65, 0.65), (0.35, 0.65)]
    (first, *others) = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in places]
    page.mouse.move(*first)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place, steps=10)


def sentences(count: int) -> Path:
    """Return a collection of sentences with clusters and a map; what is there already is not made again."""
    folder = Path(tempfile.gettempdir()) / "sonde-ui"
    path, source = folder / f"arxiv{count}.sonde", DATA / "scale/arxiv_sentences.parquet"
    if not path.exists():
        if count > pq.read_metadata(source).num_rows:
            source = folder / "many.parquet"
            folder.mkdir(exist_ok=True)
            make(source, -(-count // 500_000))
        made = sonde.index(pq.read_table(source).slice(0, count), path, settings=sonde.BuildSettings(model="static"))
        made.cluster("kmeans", k=20, refits=0)
        made.map()
    return path


def opened(page: Any, address: str) -> None:
    """Open the UI as soon as it answers."""
    from playwright.sync_api import Error

    for _ in range(60):
        try:
            page.goto(f"{address}/data")
            page.get_by_test_id("stSidebarNav").wait_for()
        except Error:
            page.wait_for_timeout(500)
        else:
            return
    sys.exit("the UI does not start")


def settled(page: Any) -> float:
    """Return when the page began to stand still."""
    last, since, looks = None, monotonic(), 0
    while looks < 4:
        now = page.evaluate(LOOK)
        if not now[0] or now != last:
            last, since, looks = now, monotonic(), 0
        else:
            looks += 1
        page.wait_for_timeout(40)
    return since


if __name__ == "__main__":
    main()

"""Documents as columns, selections over them, and the page that is one file, at 100,000 and 200,000 documents.

    python benchmarks/facets.py                       the table and selections, 100,000 arXiv sentences, static model
    python benchmarks/facets.py --page                writes a page of 200,000 and opens it in Chromium as a file

Times are CPU seconds of this process, first and then the median of five; those of the browser are by the clock.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow.parquet as pq
from _side_by_side import DATA, machine
from ui_pages import CHROMIUM, sentences  # type: ignore[attr-defined]  # tests/support has another ui_pages

import sonde
from sonde.indexer.store.kinds import MAP
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run

T = TypeVar("T")
MOST = 200_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    print(machine("sonde", "numpy", "playwright"))
    measure_page(scattered(MOST)) if given.page else measure_selections(sentences())


def timed(name: str, work: Callable[[], T]) -> T:
    """Print the CPU seconds of the first call, and the median of five more."""
    began = time.process_time()
    found = work()
    taken = [time.process_time() - began]
    for _ in range(5):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    print(f"{name}: first {taken[0] * 1000:,.0f} ms, then {statistics.median(taken[1:]) * 1000:,.1f} ms", flush=True)
    return found


def measure_selections(path: Path) -> None:
    """Print what the table and selections cost."""
    shop = sonde.open(path)
    shop.search("a first query", k=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = timed("table", shop.table)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    kept = (table.docs.nbytes + table.places.nbytes + sum(column.values.nbytes for column in table.columns)) / 2**20
    print(
        f"{len(table):,} documents, {len(table.columns)} columns: {kept:.1f} MiB kept, {more:.0f} MiB more at the peak"
    )
    packed = timed("packed", table.pack)
    print(f"{len(packed) / 2**20:.1f} MiB packed")
    for name, parts in selections(table).items():
        selection = {"mode": "all", "parts": parts}
        found = timed(f"select: {name}", lambda selection=selection: shop.select(selection))
        print(f"    {len(found):,} documents")


def selections(table: Any) -> dict[str, list[dict[str, Any]]]:
    """Return one selection of each kind."""
    left, low, right, high = table.bounds
    turn = np.linspace(0, 2 * np.pi, 200)
    x, y = (left + right) / 2 + (right - left) / 3 * np.cos(turn), (low + high) / 2 + (high - low) / 3 * np.sin(turn)
    lasso = {"kind": "area", "map": table.map, "outlines": [np.stack([x, y], 1).tolist()]}
    column = next(each for each in table.columns if each.kind == "class")
    values = {"kind": "values", "column": column.name, "values": list(column.names[:3])}
    query = {"kind": "query", "query": "graph colouring", "k": 100}
    return {
        "a lasso of 200 corners": [lasso], "three values": [values], "a query of 100 hits": [query],
        "a query of 1,000 hits": [query | {"k": 1_000}], "all of them": [lasso, values, query],
    }  # fmt: skip


def scattered(count: int) -> Path:
    """Return a collection of sentences whose map is random: only its size matters here."""
    path = Path(tempfile.gettempdir()) / "sonde-ui" / f"scattered{count}.sonde"
    if not path.exists():
        table = pq.read_table(DATA / "scale/arxiv_sentences.parquet").slice(0, count)
        made = sonde.index(table, path, settings=sonde.BuildSettings(model="static"))
        with made.stored.view() as view:
            snapshot = Snapshot.of(view)
        places = np.random.default_rng(1).normal(size=(len(snapshot.docs), 2))
        write_run(made.stored, NewRun(MAP, "map", {}, places=(snapshot.docs, places)), snapshot)
    return path


def measure_page(path: Path) -> None:
    """Print what the page costs to write, to open and to search, without a network."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder) / "page.html"
        began = time.process_time()
        count = sonde.open(path).write_page(page_path)
        size = page_path.stat().st_size / 2**20
        print(f"{count:,} documents written in {time.process_time() - began:.1f} CPU s, {size:.1f} MiB", flush=True)
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM if Path(CHROMIUM).exists() else None, args=["--no-sandbox"]
        )
        context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800})
        page = context.new_page()
        began = time.monotonic()
        page.goto(page_path.as_uri())
        page.locator(".wb[data-selected]").wait_for()
        print(f"shown after {time.monotonic() - began:.2f} s", flush=True)
        for query in ("graph colouring", "the neural network of a robot", "zebra"):
            took = "async (query) => { const began = performance.now(); "
            took += "await document.getElementById('root').workbench.host.search(query, 100); "
            took += "return performance.now() - began; }"
            print(f"search for {query!r}: {page.evaluate(took, query):,.0f} ms", flush=True)
        print(f"{page.evaluate('performance.memory.usedJSHeapSize') / 2**20:,.0f} MiB of JavaScript")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
